"""Sentences to parse, one after the other, from whatever holds them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

from truesource.generator.corpus import Corpus
from truesource.generator.text import RawTextReader, Splitting
from truesource.generator.text_files import stream_sentences
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.decoding.folder import SampleFolder, is_sample_folder


class SourceSentence(NamedTuple):
    """A sentence to parse."""

    words: list[str]  #: (L,), none for an empty line
    line: int = 0  #: of raw text, on which the sentence starts, from 1
    offsets: Sequence[tuple[int, int]] = ()  #: (L,) of raw text, start and end of each word in characters


class ParserInput(Protocol):
    """A source of sentences that can be pickled; workers read the same sentences from it."""

    @property
    def path(self) -> Path:
        """The file or folder, absolute."""

    @property
    def unit(self) -> str:
        """The unit that the number of a sentence counts: ``line`` or ``sentence``."""

    def sentences(self) -> Iterator[SourceSentence]:
        """Return every sentence, from the first on."""


@dataclass(frozen=True)
class TextSource:
    """A text file, one tokenised sentence a line, packed or not."""

    path: Path
    unit: str = "line"

    def sentences(self) -> Iterator[SourceSentence]:
        """Return every line."""
        return map(SourceSentence, stream_sentences(self.path))


@dataclass(frozen=True)
class RawSource:
    """A file of raw text, which is cut into sentences and these into the words of a grammar."""

    path: Path
    grammar_words: Collection[str]  #: words of the grammar
    splitting: Splitting
    language: str  #: of punkt's data
    unit: str = "sentence"

    def sentences(self) -> Iterator[SourceSentence]:
        """Return every sentence, with its place."""
        reader = RawTextReader(self.grammar_words, splitting=self.splitting, language=self.language)
        return (SourceSentence(sentence.tokens, sentence.line, sentence.offsets) for sentence in reader.read(self.path))


@dataclass(frozen=True)
class CorpusSource:
    """A split of a corpus folder."""

    path: Path
    split: str
    unit: str = "sentence"

    def sentences(self) -> Iterator[SourceSentence]:
        """Return every sentence, its words in the order of the text."""
        return map(SourceSentence, Corpus.load(self.path).stream(self.split))


@dataclass(frozen=True)
class SampleSource:
    """A folder of sentences sampled from a model; those that were cut are parsed as they are."""

    path: Path
    unit: str = "sentence"

    def sentences(self) -> Iterator[SourceSentence]:
        """Return every sentence."""
        return map(SourceSentence, SampleFolder.load(self.path).sentences())


def open_source(path: Path, split: str) -> ParserInput:
    """Return the source that a path names: a corpus folder, a folder of samples, or a text file.

    Args:
        path: a file or folder.
        split: of a corpus folder.
    """
    path = path.absolute()
    if is_sample_folder(path):
        return SampleSource(path)
    return CorpusSource(path, split) if path.is_dir() else TextSource(path)


@dataclass(frozen=True)
class Survey:
    """The contents of a source, counted."""

    sentences: int
    words: int
    digest: str  #: SHA-256 of the sentences as lines of text, hexadecimal: equal for packed and plain files


def survey(source: ParserInput) -> Survey:
    """Read a source once, from its first sentence to its last.

    Raises:
        InputError: it cannot be read, or has no sentence, not even an empty one.
    """
    sentences = words = 0
    digest = hashlib.sha256()
    for sentence in source.sentences():
        sentences += 1
        words += len(sentence.words)
        digest.update(f"{' '.join(sentence.words)}\n".encode())
    if not sentences:
        raise InputError("the input has no sentences; write one tokenised sentence a line", source.path)
    return Survey(sentences, words, digest.hexdigest())


@dataclass
class ForwardReader:
    """A reader of runs of sentences, which reads successive runs without a new start."""

    source: ParserInput
    _next: int = 0
    _rest: Iterator[SourceSentence] = field(default_factory=lambda: iter(()))

    def take(self, first: int, count: int) -> list[SourceSentence]:
        """Return the sentences ``first`` .. ``first + count - 1``, from 0 on.

        Raises:
            InputError: there are fewer sentences now.
        """
        if first < self._next or self._next == 0:
            self._rest, self._next = self.source.sentences(), 0
        sentences = list(islice(self._rest, first - self._next, first - self._next + count))
        self._next = first + count
        if len(sentences) < count:
            raise changed(self.source)
        return sentences


def changed(source: ParserInput) -> InputError:
    """Return the error of a source that another program writes to."""
    return InputError("the sentences changed while they were parsed; parse them again", source.path)
