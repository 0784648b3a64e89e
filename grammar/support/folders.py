"""Kinds of folders that truesource makes, and the refusal of the wrong kind."""

from __future__ import annotations

from pathlib import Path

from truesource.grammar.support.errors import InputError

#: files that each kind of folder has, one of the alternatives; the first kind that fits is that of a folder
_KINDS = {
    "sweep": (("sweep.json",),),
    "run": (("stages.json",), ("results.json",)),
    "model": (("training.json",), ("config.json", "tokenizer.json")),
    "corpus": (("record.json", "grammar.npz"),),
    "variants": (("variants.json",),),
    "trees": (("record.json", "data/trees-*"),),
}
_PLURALS = {"corpus": "corpora"}
_CALLED = {"variants": "folder of parallel corpora", "trees": "folder of trees that truesource parse made"}
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
    """Kind of a folder, by the names of its files, such as ``run``, ``sweep``, ``model`` or ``corpus``; None: none.

    A run may be unfinished; ``variants`` are the parallel corpora of a grammar and of its variants, ``trees`` those of
    parsed sentences.
    """
    for kind, alternatives in _KINDS.items():
        if any(all(any(folder.glob(name)) for name in names) for names in alternatives):
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
