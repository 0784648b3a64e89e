"""Libraries that not everybody needs: the extra of the package that brings each, and what is said where one is missing.

Nothing else in truesource says how to install a library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import ClassVar

from truesource.grammar.support.errors import InputError

#: by extra, the modules that it brings and that truesource imports; tests compare this with ``pyproject.toml``
EXTRAS: dict[str, tuple[str, ...]] = {
    "lm": ("torch", "transformers", "tokenizers", "accelerate", "safetensors"),
    "report": ("matplotlib",),
    "datasets": ("datasets",),
    "dask": ("dask", "distributed"),
    "sentencepiece": ("sentencepiece",),
}
NAMED = 2  #: libraries that a message names; the extra brings all


class MissingExtraError(InputError):
    """A library of an extra is needed and not installed (code ``missing-extra``)."""

    default_code: ClassVar[str] = "missing-extra"


def require_extras(what: str, *extras: str) -> None:
    """Stop before any work where libraries of extras are not installed; none is imported.

    Args:
        what: what needs them, such as ``truesource train``; it begins the message.
        extras: of `EXTRAS`.

    Raises:
        MissingExtraError: one is missing.
    """
    missing = {extra: [module for module in EXTRAS[extra] if not _is_installed(module)] for extra in extras}
    found = {extra: modules for extra, modules in missing.items() if modules}
    if found:
        raise _missing(what, found)


@contextmanager
def extras_for(what: str) -> Iterator[None]:
    """Turn an import in the block that fails for want of an extra into one sentence.

    Args:
        what: what the block does, such as ``truesource train``; it begins the message.

    Raises:
        MissingExtraError: the block imports a module of an extra that is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        extra = _extra_of(error)
        if extra is None:
            raise
        require_extras(what, extra)  # names all that are missing
        raise _missing(what, {extra: [error.name or extra]}) from error  # a part of an installed library is missing


def _extra_of(error: ModuleNotFoundError) -> str | None:
    """The extra that brings the module that was not found; None: no extra does."""
    root = (error.name or "").partition(".")[0]
    return next((extra for extra, modules in EXTRAS.items() if root in modules), None)


def _missing(what: str, modules: dict[str, list[str]]) -> MissingExtraError:
    """The error about what is missing, by extra."""
    names = [name for each in modules.values() for name in each[:NAMED]]
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return MissingExtraError(f"{what} needs {listed}: pip install 'truesource[{','.join(modules)}]'")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a finder refuses it; it is half imported
        return False
