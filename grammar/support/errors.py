"""The one kind of error for users to correct, and the extras with optional libraries.

Only this module tells how to install a library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from truesource.grammar.support.printable import listed
from truesource.grammar.support.printable import message as shown

#: modules of each extra that truesource imports; tests compare this with ``pyproject.toml``
EXTRAS: dict[str, tuple[str, ...]] = {
    "lm": ("torch", "transformers", "tokenizers", "accelerate", "safetensors"),
    "report": ("matplotlib",),
    "datasets": ("datasets",),
    "dask": ("dask", "distributed"),
    "sentencepiece": ("sentencepiece",),
}
NAMED = 2  #: most libraries that a message names; the extra installs all


class InputError(ValueError):
    """Input (a file, a setting, a grammar) that cannot be used.

    The message is one sentence: what is wrong and what to do. With ``path`` (and ``line``, counted from 1) it ends in
    ``(path:line)``. Control characters in quotes are escaped, and long quotes are shortened. The command prints it
    without a traceback and exits with 2.

    ``code`` is the kind of error. Code and tests that depend on the kind compare it, never the sentence, which may
    change:

    * ``missing``: a required file does not exist;
    * ``damaged``: a file exists and has the wrong content;
    * ``unreadable``, ``unwritable``: the system refuses to read or to write;
    * ``exists``: a file or folder exists and must not be replaced;
    * ``busy``: another process writes the same file or folder (`truesource.grammar.support.locks.BusyError`);
    * ``foreign-format``, ``discontinuous``, ``loose-word``: trees that cannot be read unchanged, see
      `truesource.grammar.treebank`;
    * ``treebank``: trees where a text is expected;
    * ``inconsistent``: derivations of a grammar may not end, and no range of lengths is given;
    * ``too-long``, ``too-many-contexts``: more memory or work than allowed; with their own classes;
    * codes of `NothingToMeasureError`: what is missing for a measure;
    * ``no-bf16``: the device does not support it;
    * ``missing-extra``: a library is not installed, see `truesource.grammar.support.extras`;
    * ``missing-ability``: a model lacks a required method, see `truesource.generator.interface.abilities`; codes
      for numbers that are no probabilities, see `truesource.generator.interface.model_checks`;
    * codes for user-supplied code, see `truesource.lmtrain.references.load_code` and
      `truesource.lmtrain.models.require_model`; ``no-model``: a reference to no model;
    * codes for custom architectures, see `truesource.lmtrain.own.architecture` and its package;
      ``needs-code``: a folder is loaded only together with its code;
    * ``too-few-models``, ``repeated-name``, ``different-texts``, ``real-text``, ``unknown-baseline``,
      ``no-run``: models or runs that cannot be compared;
    * ``input``: all others.
    """

    default_code: ClassVar[str] = "input"

    def __init__(
        self, message: str, path: str | Path | None = None, line: int | None = None, *, code: str | None = None
    ) -> None:
        where = "" if path is None else f" ({path})" if line is None else f" ({path}:{line})"
        super().__init__(shown(message + where))
        self.reason = shown(message)  #: the message without the place
        self.path = path
        self.line = line
        self.code = code or self.default_code

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (type(self), self.args, self.__dict__)  # for any arguments of a subclass


def _remake(kind: type[InputError], args: tuple[Any, ...], state: dict[str, object]) -> InputError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class NothingToMeasureError(InputError):
    """A measure that is undefined on its input: no pairs, one label, no sentence possible under both sides.

    A command refuses it as any `InputError`. In a run, which has other measures, it is a note in the report. ``code``
    says what is missing.
    """

    def __init__(self, message: str, code: str, path: str | Path | None = None) -> None:
        super().__init__(message, path, code=code)


class MissingExtraError(InputError):
    """A missing library of an extra (code ``missing-extra``)."""

    default_code: ClassVar[str] = "missing-extra"


def require_extras(what: str, *extras: str) -> None:
    """Stop before any work if libraries of extras are not installed; none is imported.

    Args:
        what: what needs them, such as ``truesource train``; it begins the message.
        extras: keys of `EXTRAS`.

    Raises:
        MissingExtraError: one is missing.
    """
    missing = {extra: [module for module in EXTRAS[extra] if not _is_installed(module)] for extra in extras}
    result = {extra: modules for extra, modules in missing.items() if modules}
    if result:
        raise _missing(what, result)


@contextmanager
def extras_for(what: str) -> Iterator[None]:
    """Turn an import in the block that fails for lack of an extra into one sentence.

    Args:
        what: what the block does, such as ``truesource train``; it begins the message.

    Raises:
        MissingExtraError: the block imports a module of an extra that is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        root = (error.name or "").partition(".")[0]
        extra = next((extra for extra, modules in EXTRAS.items() if root in modules), None)
        if extra is None:
            raise
        require_extras(what, extra)  # names all missing libraries
        raise _missing(what, {extra: [error.name or extra]}) from error  # a part of an installed library is missing


def _missing(what: str, modules: dict[str, list[str]]) -> MissingExtraError:
    """Return the error about missing libraries, by extra."""
    names = listed([name for each in modules.values() for name in each[:NAMED]])
    return MissingExtraError(f"{what} needs {names}: pip install 'truesource[{','.join(modules)}]'")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a finder refuses it, or it is partly imported
        return False
