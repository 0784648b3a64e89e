"""Grammar files: one format a module, found by walking this folder; and loading by content.

A module has ``FORMAT``, a `truesource.grammar.formats.GrammarFormat`; its name is the name of the format.
"""

from __future__ import annotations

import gzip
import importlib
import os
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.grammar.read_options import AS_WRITTEN, ReadOptions
from truesource.grammar.support.atomic_files import atomic_path, write_text
from truesource.grammar.support.call_arguments import as_path
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import TO_UTF8, read_text, refuse_device, refuse_existing
from truesource.grammar.support.folders import refuse_other_kind

if TYPE_CHECKING:
    from truesource.grammar.rules import GrammarRules

DEFAULT = "text"  #: for content that no other format recognises, and for file names without another format


@dataclass
class GrammarSource:
    """A grammar file whose format is not yet known."""

    path: Path  #: path of the file, or the common prefix of several

    @cached_property
    def first_bytes(self) -> bytes:
        """The first 16 bytes, unpacked; empty if the file cannot be read.

        Raises:
            InputError: it is a device.
        """
        refuse_device(self.path)
        if self.path.is_fifo():
            return self.text.encode()[:16]
        try:
            with self.path.open("rb") as stream:
                return stream.read(16)
        except OSError:
            return b""

    @cached_property
    def text(self) -> str:
        """The whole text, unpacked.

        Raises:
            InputError: it cannot be read, or is not text.
        """
        return read_text(
            self.path, not_text=f"this is neither an .npz grammar nor UTF-8 text; if it is other text, {TO_UTF8}"
        )

    @cached_property
    def first_line(self) -> str:
        """The first line that is not blank; empty without one or if the file is not text."""
        return next((line for line in self._first_lines if line.strip()), "")

    @cached_property
    def first_rule(self) -> str:
        """The first line that is neither blank nor a comment; empty without one or if the file is not text."""
        return next((line.strip() for line in self._first_lines if line.strip() and line.strip()[0] != "#"), "")

    def refuse_trees(self) -> None:
        """Refuse a file that begins as treebanks do, in brackets or in other formats.

        Raises:
            InputError: it does (code ``treebank`` or ``foreign-format``).
        """
        from truesource.grammar.treebank.foreign import SURE, refuse_foreign

        for number, line in enumerate(self._first_lines, 1):
            refuse_foreign(line, self.path, number, SURE)
            if line.lstrip().startswith("(") and "->" not in line:
                remedy = f"induce a grammar from them: truesource induce {self.path} -o grammar.npz"
                raise InputError(f"these are trees, not a grammar; {remedy}", self.path, number, code="treebank")
            if line.strip() and not line.lstrip().startswith("#"):
                return

    @cached_property
    def _first_lines(self) -> list[str]:
        if self.first_bytes.startswith(b"PK"):  # a zip file, which may be large
            return []
        try:
            return self.text.split("\n", 200)[:200]
        except InputError:
            return []


def _one_file(path: Path, pcfg: GrammarRules | None = None) -> list[Path]:
    return [path]


@dataclass(frozen=True, kw_only=True)
class GrammarFormat:
    """One way to write a grammar; its name is the name of its module."""

    read: Callable[[GrammarSource, ReadOptions], GrammarRules]
    write: Callable[[GrammarRules, Path], None]  #: overwrites existing files
    sniff: Callable[[GrammarSource], bool]  #: whether a file has this format; for the default, whether it is text
    extensions: tuple[str, ...] = ()  #: extensions of file names for which this format is the default
    #: files to write for a name, and for a grammar if they depend on it
    targets: Callable[[Path, GrammarRules | None], list[Path]] = _one_file
    sources: Callable[[Path], list[Path]] = _one_file  #: existing files that a name refers to


def text_writer(form: Callable[[GrammarRules], str]) -> Callable[[GrammarRules, Path], None]:
    """Return a ``write`` for formats of one text, compressed for ``.gz``."""

    def write(pcfg: GrammarRules, path: Path) -> None:
        text = form(pcfg)
        if path.suffix == ".gz":
            with atomic_path(path) as temporary:
                temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
        else:
            write_text(path, text)

    return write


def names() -> list[str]:
    """Return the names of all formats, in alphabetical order, without importing them, for fast help."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)


def format_of(name: str) -> GrammarFormat:
    """Return the format of a name.

    Raises:
        InputError: no format has this name.
    """
    if name not in names():
        raise InputError(f"there is no grammar format {name!r}; choose one of {', '.join(names())}")
    result: GrammarFormat = importlib.import_module(f"{__name__}.{name}").FORMAT
    return result


def load_rules(
    path: str | Path,
    options: ReadOptions = AS_WRITTEN,
    *,
    format: str | None = None,  # noqa: A002
) -> GrammarRules:
    """Read a grammar; the content of the file decides the format, unless a format is given.

    Args:
        path: a file, compressed (``.gz``) or not; for a Berkeley pair either file, or their common prefix.
        options: how to read it. Formats whose files do not sum to one (Berkeley, EarleyX, weight first) have the
            weights of each symbol divided by their sum.
        format: one of `names`.

    Raises:
        InputError: the file is absent, damaged, or not a proper grammar; or it is a treebank.
    """
    source = GrammarSource(Path(path))
    if format is None:
        source.refuse_trees()
        others = (name for name in names() if name != DEFAULT)
        format = next((name for name in others if format_of(name).sniff(source)), DEFAULT)  # noqa: A001
    return format_of(format).read(source, options)


def source_files(path: str | Path) -> list[Path]:
    """Return the files of a grammar, sorted: one, or several for a Berkeley grammar; none for a language's name."""
    result = {file for name in names() for file in format_of(name).sources(Path(path)) if file.is_file()}
    return sorted(result)


def require_source(path: str | Path) -> None:
    """Refuse a path that is neither a grammar file nor the name of a language.

    Raises:
        InputError: it does not exist (code ``missing``), or is a folder of another kind, see
            `truesource.grammar.support.folders.refuse_other_kind`.
    """
    from truesource.grammar.languages import is_reference, missing

    refuse_other_kind(Path(path), "grammar")
    if not os.path.exists(path) and not is_reference(path) and not source_files(path):  # noqa: PTH110 - any length
        raise missing(path)


def target_format(path: str | Path) -> str:
    """Return the format that a file's name implies."""
    suffix = Path(path).suffix
    return next((name for name in names() if suffix in format_of(name).extensions), DEFAULT)


def target_files(path: str | Path, format: str | None = None) -> list[Path]:  # noqa: A002
    """Return the files that `save_grammar` writes: one, or a Berkeley pair."""
    return format_of(format or target_format(path)).targets(Path(path), None)


def save_grammar(
    pcfg: GrammarRules,
    path: str | Path,
    *,
    force: bool = False,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write a grammar: ``.npz`` for that suffix, else text, unless a format is given; ``.gz`` is compressed.

    Raises:
        InputError: a file exists and ``force`` is false, the format cannot hold the grammar, or it is unknown.
    """
    path = as_path(path, "a file to write")
    chosen = format_of(format or target_format(path))
    for target in chosen.targets(Path(path), pcfg):
        refuse_existing(target, force)
    chosen.write(pcfg, Path(path))
