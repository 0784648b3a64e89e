"""Kinds of folders of truesource, and the refusal of the wrong kind."""

from __future__ import annotations

from pathlib import Path

from truesource.grammar.support.errors import InputError

#: files of each kind of folder, with alternatives; the first kind that fits applies
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
_SHOWN = 5  #: most models that a message lists
#: location in a run or a corpus of alternatives that the user may have meant
_PARTS = {
    ("run", "model"): "models/*",
    ("run", "corpus"): "corpus",
    ("run", "grammar"): "grammar/grammar.npz",
    ("corpus", "grammar"): "grammar.npz",
    ("variants", "corpus"): "*",
    ("variants", "grammar"): "*/grammar.npz",
}


def kind_of(folder: Path) -> str | None:
    """Return the kind of a folder by its files, such as ``run``, ``sweep``, ``model`` or ``corpus``; None: none.

    A run may be unfinished; ``variants`` are the parallel corpora of a grammar and of its variants, ``trees`` the trees
    of parsed sentences.
    """
    for kind, alternatives in _KINDS.items():
        if any(all(any(folder.glob(name)) for name in names) for names in alternatives):
            return kind
    return None


def refuse_other_kind(folder: Path, expected: str, *, code: str = InputError.default_code) -> None:
    """Refuse a folder of the wrong kind, and name its contents that the user may have meant.

    Args:
        folder: any path.
        expected: ``run``, ``model``, ``corpus`` or ``grammar``.
        code: code of the error.

    Raises:
        InputError: it is of a known kind other than the expected one.
    """
    kind = kind_of(folder)
    if kind is None or kind == expected:
        return
    remedy = f"use a {expected}"
    if (pattern := _PARTS.get((kind, expected))) is not None:
        inside = [str(each) for each in sorted(folder.glob(pattern)) if each.is_file() or kind_of(each) == expected]
        those = f"its {_PLURALS.get(expected, f'{expected}s')} are" if len(inside) > 1 else f"its {expected} is"
        listed = f"{those} {', '.join(inside[:_SHOWN])}{', ...' * (len(inside) > _SHOWN)}"
        remedy = listed if inside else f"it has no {expected} yet"
    raise InputError(f"this is a {_CALLED.get(kind, kind)}; {remedy}", folder, code=code)


def require_run(folder: Path) -> None:
    """Refuse a path that is not the folder of a run, finished or not.

    Raises:
        InputError: it does not exist, or is a folder of another kind.
    """
    if not folder.is_dir():
        raise InputError("there is no such run folder; check the path", folder)
    refuse_other_kind(folder, "run")
    if kind_of(folder) is None:
        raise InputError("this is not the folder of a run; use one, such as runs/demo", folder, code="no-run")
