"""What a person may have meant by a name that nothing has, or by a folder that does not belong where it is given."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.fields import fields_of


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean lengths?``, or nothing where no known name is similar."""
    near = get_close_matches(name.lower(), list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


#: files that each kind of folder has, one of the alternatives; the first kind that fits is that of a folder
_KINDS = {
    "run": (("stages.json",), ("results.json",)),
    "model": (("training.json",), ("config.json", "tokenizer.json")),
    "corpus": (("record.json", "grammar.npz"),),
    "variants": (("variants.json",),),
}
_PLURALS = {"corpus": "corpora"}
_CALLED = {"variants": "folder of parallel corpora"}
_SHOWN = 5  #: models that a message lists
#: where a run and a corpus have what else may have been meant
_PARTS = {
    ("run", "model"): "models/*",
    ("run", "corpus"): "corpus",
    ("run", "grammar"): "grammar/grammar.npz",
    ("corpus", "grammar"): "grammar.npz",
    ("variants", "corpus"): "*",
    ("variants", "grammar"): "*/grammar.npz",
}


def kind_of(folder: Path) -> str | None:
    """What a folder is, by the names of its files: ``run``, ``model``, ``corpus``, ``variants``; None: none.

    A run may be unfinished; ``variants`` are the parallel corpora of a grammar and of its variants.
    """
    for kind, alternatives in _KINDS.items():
        if any(all((folder / name).is_file() for name in names) for names in alternatives):
            return kind
    return None


def refuse_other_kind(folder: Path, wanted: str, *, code: str = InputError.default_code) -> None:
    """Stop before a folder of another kind than belongs here, and name what in it may have been meant.

    Args:
        folder: any path.
        wanted: ``run``, ``model``, ``corpus`` or ``grammar``.
        code: of the error.

    Raises:
        InputError: it is of a known kind, and not of the one wanted.
    """
    kind = kind_of(folder)
    if kind is None or kind == wanted:
        return
    remedy = f"name a {wanted}"
    if (pattern := _PARTS.get((kind, wanted))) is not None:
        inside = [str(each) for each in sorted(folder.glob(pattern)) if each.is_file() or kind_of(each) == wanted]
        those = f"its {_PLURALS.get(wanted, f'{wanted}s')} are" if len(inside) > 1 else f"its {wanted} is"
        listed = f"{those} {', '.join(inside[:_SHOWN])}{', ...' * (len(inside) > _SHOWN)}"
        remedy = listed if inside else f"it has no {wanted} yet"
    raise InputError(f"this is a {_CALLED.get(kind, kind)}; {remedy}", folder, code=code)


def require_run(folder: Path) -> None:
    """Stop where there is no folder of a run, finished or not.

    Raises:
        InputError: there is none, or a folder of another kind.
    """
    if not folder.is_dir():
        raise InputError("there is no such run folder", folder)
    refuse_other_kind(folder, "run")
    if kind_of(folder) is None:
        raise InputError("this is not the folder of a run; name one, such as runs/demo", folder, code="no-run")


def keys_at(model: Any, where: Iterable[str | int]) -> tuple[str, ...]:
    """The keys of a place in settings.

    Args:
        model: class of the settings: a pydantic model or a dataclass.
        where: keys and numbers of list entries that lead from ``model`` to the place.

    Returns:
        The keys; none where the place does not hold settings of a known class.
    """
    kinds = [model]
    for part in where:
        kinds = [inner for kind in kinds for inner in _inside(kind, part)]
    return tuple(key for kind in kinds for key in fields_of(kind))


def members(annotation: Any) -> list[Any]:
    """The classes that a type may stand for: of a union, each; of ``Annotated``, what is annotated."""
    if get_origin(annotation) is Annotated:
        return members(get_args(annotation)[0])
    if isinstance(annotation, type) or get_origin(annotation) in (list, tuple, dict):
        return [annotation]
    return [each for part in get_args(annotation) for each in members(part)]


def _inside(kind: Any, part: str | int) -> list[Any]:
    """The types at a key or number of a type."""
    if get_origin(kind) in (list, tuple, dict):
        return members(get_args(kind)[0 if isinstance(part, int) else -1])
    field = fields_of(kind).get(str(part))
    return [] if field is None else members(field.annotation)
