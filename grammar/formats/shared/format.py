"""What makes a grammar format."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import atomic_path, write_text
from truesource.grammar.support.unpacking import read_text


@dataclass
class GrammarSource:
    """A grammar to read, of a format that is yet to be found."""

    path: Path  #: of the file, or what the names of several have in common

    @cached_property
    def first_bytes(self) -> bytes:
        """The first 16 bytes, packed or not; none where the file cannot be read."""
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
        return read_text(self.path, not_text="this is neither an .npz grammar nor UTF-8 text")

    @cached_property
    def first_line(self) -> str:
        """The first line that is not blank, of the first 20; empty where there is none or the file is not text."""
        if self.first_bytes.startswith(b"PK"):  # a zip file, which may be large
            return ""
        try:
            return next((line for line in self.text.split("\n", 20) if line.strip()), "")
        except InputError:
            return ""


@dataclass(frozen=True)
class ReadOptions:
    """How to read a grammar; see `truesource.grammar.formats.load_rules`."""

    start: str | None = None
    normalise: bool = False
    lenient: bool = False


def _one_file(path: Path, pcfg: GrammarRules | None = None) -> list[Path]:
    return [path]


@dataclass(frozen=True, kw_only=True)
class GrammarFormat:
    """One way to write a grammar; its name is that of its module."""

    read: Callable[[GrammarSource, ReadOptions], GrammarRules]
    write: Callable[[GrammarRules, Path], None]  #: over files that exist, too
    sniff: Callable[[GrammarSource], bool]  #: whether a file is of this format; for the default, of any that is text
    extensions: tuple[str, ...] = ()  #: of file names that are written so unless another format is given
    #: files to write for a name; of a grammar, where the grammar decides
    targets: Callable[[Path, GrammarRules | None], list[Path]] = _one_file
    sources: Callable[[Path], list[Path]] = _one_file  #: files that a name stands for, as far as they exist


def text_writer(form: Callable[[GrammarRules], str]) -> Callable[[GrammarRules, Path], None]:
    """A ``write`` for formats of one text, packed for ``.gz``."""

    def write(pcfg: GrammarRules, path: Path) -> None:
        text = form(pcfg)
        if path.suffix == ".gz":
            with atomic_path(path) as temporary:
                temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
        else:
            write_text(path, text)

    return write
