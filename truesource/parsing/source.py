"""Sentences to parse, one after the other, from whatever holds them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol

from truesource.generator.corpus import Corpus
from truesource.generator.text import stream_sentences
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.decoding.folder import SampleFolder, is_sample_folder


class ParserInput(Protocol):
    """Where sentences come from; it can be pickled, and workers find the same sentences in it."""

    @property
    def path(self) -> Path:
        """The file or folder, absolute."""

    def sentences(self) -> Iterator[list[str]]:
        """The words of every sentence, from the first on; no words for an empty line."""


@dataclass(frozen=True)
class TextSource:
    """A text file, one tokenised sentence a line, packed or not."""

    path: Path

    def sentences(self) -> Iterator[list[str]]:
        """The words of every line."""
        return stream_sentences(self.path)


@dataclass(frozen=True)
class CorpusSource:
    """A split of a corpus folder."""

    path: Path
    split: str

    def sentences(self) -> Iterator[list[str]]:
        """The words of every sentence, in the order of the text."""
        return Corpus.load(self.path).stream(self.split)


@dataclass(frozen=True)
class SampleSource:
    """A folder of sentences sampled from a model; those that were cut are parsed as they are."""

    path: Path

    def sentences(self) -> Iterator[list[str]]:
        """The words of every sentence."""
        return iter(SampleFolder.load(self.path).sentences())


def open_source(path: Path, split: str) -> ParserInput:
    """What a path names: a corpus folder, a folder of samples, or a text file.

    Args:
        path: it.
        split: of a corpus folder.
    """
    path = path.absolute()
    if is_sample_folder(path):
        return SampleSource(path)
    return CorpusSource(path, split) if path.is_dir() else TextSource(path)


@dataclass(frozen=True)
class Survey:
    """What a source holds."""

    sentences: int
    words: int
    digest: (
        str  #: SHA-256 of the sentences as lines of text, hexadecimal: that of a packed file is that of the plain one
    )


def survey(source: ParserInput) -> Survey:
    """Read a source once, from its first sentence to its last.

    Raises:
        InputError: it cannot be read, or has no sentence, not even an empty one.
    """
    sentences = words = 0
    digest = hashlib.sha256()
    for sentence in source.sentences():
        sentences += 1
        words += len(sentence)
        digest.update(f"{' '.join(sentence)}\n".encode())
    if not sentences:
        raise InputError("there is no sentence to parse; expecting one tokenised sentence a line", source.path)
    return Survey(sentences, words, digest.hexdigest())


@dataclass
class ForwardReader:
    """Reads runs of sentences; one that follows the last is read without a new start."""

    source: ParserInput
    _next: int = 0
    _rest: Iterator[list[str]] = field(default_factory=lambda: iter(()))

    def take(self, first: int, count: int) -> list[list[str]]:
        """The sentences ``first`` .. ``first + count - 1``, from 0 on.

        Raises:
            InputError: there are fewer now than there were.
        """
        if first < self._next or self._next == 0:
            self._rest, self._next = self.source.sentences(), 0
        found = list(islice(self._rest, first - self._next, first - self._next + count))
        self._next = first + count
        if len(found) < count:
            raise changed(self.source)
        return found


def changed(source: ParserInput) -> InputError:
    """The error of a source that another program writes to."""
    return InputError("the sentences changed while they were parsed; parse them again", source.path)
