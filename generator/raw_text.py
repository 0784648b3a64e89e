"""Reading raw text: sentences of Penn tokens, each with its place in the text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import TypedDict

from truesource.generator.penn_tokens import PennTokeniser, fold_quotes, is_blank
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import write_json_lines
from truesource.grammar.support.unpacking import read_text_lines

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktTokenizer

_LANGUAGE = re.compile(r"[A-Za-z0-9_-]+")
_PARAGRAPH = 2**20  #: characters of a paragraph after which its first sentences are passed on


class Splitting(StrEnum):
    """What cuts raw text into sentences."""

    PUNKT = "punkt"  #: NLTK's punkt; a paragraph ends at an empty line
    LINES = "lines"  #: one sentence a line


class SentencePlace(TypedDict):
    """A row of a file of offsets; starts and ends count characters of the text without a byte order mark."""

    line: int
    """Line on which the sentence starts, from 1."""
    start: int
    end: int
    tokens: list[tuple[int, int]]
    """Start and end of each token."""


@dataclass(frozen=True, slots=True)
class RawSentence:
    """A sentence of raw text."""

    tokens: list[str]  #: (L,) as a grammar reads them, at least one
    offsets: list[tuple[int, int]]  #: (L,) start and end of each token in the text, in characters
    line: int  #: on which it starts, from 1

    def place(self) -> SentencePlace:
        """The row of this sentence in a file of offsets."""
        return {
            "line": self.line,
            "start": self.offsets[0][0],
            "end": self.offsets[-1][1],
            "tokens": self.offsets,
        }


class RawTextReader:
    r"""Cuts text into sentences and these into Penn tokens (`truesource.generator.penn_tokens`).

    Lines end in ``\n`` or ``\r\n``. Lines of white space are no sentences. All other characters of the text
    become part of a token.

    Args:
        known: words of the grammar that will read the sentences, ``pcfg.word_ids``; None: the Penn Treebank's spelling
            of everything.
        splitting: None: punkt, if its data is installed where NLTK looks for it (nothing is ever downloaded), else
            one sentence a line. The attribute says which it is.
        language: of punkt's data, as NLTK names it; of no use to ``LINES``.

    Raises:
        InputError: no such name of a language, damaged data, or (``missing``) no data where punkt is asked for.
    """

    splitting: Splitting

    def __init__(
        self,
        known: Collection[str] | None = None,
        *,
        splitting: Splitting | None = None,
        language: str = "english",
    ) -> None:
        if not _LANGUAGE.fullmatch(language):
            raise InputError(f"there is no language {language!r}; give a name of NLTK's punkt data, such as 'english'")
        self._tokeniser = PennTokeniser(known)
        self._punkt = None if splitting is Splitting.LINES else _load_punkt(language)
        if splitting is Splitting.PUNKT and self._punkt is None:
            raise InputError(
                f"NLTK's punkt data for {language!r} is not installed; run python -m nltk.downloader punkt_tab,"
                " or write one sentence a line",
                code="missing",
            )
        self.splitting = Splitting.LINES if self._punkt is None else Splitting.PUNKT

    def read(self, path: str | Path) -> Iterator[RawSentence]:
        """Yield the sentences of a UTF-8 file, unpacked if it is a gzip file.

        The file is never in memory as a whole: a line at a time, or with punkt a paragraph, of which at most about
        a million characters and a sentence are kept.

        Raises:
            InputError: the file is missing, cannot be read, is a damaged gzip file, has a line that is too long or not
                UTF-8 (with its number), once the place is reached; or it has no sentence.
        """
        sentence = None
        for sentence in self.sentences(read_text_lines(path)):
            yield sentence
        if sentence is None:
            raise InputError("the file has no text", path)

    def sentences(self, lines: Iterable[str]) -> Iterator[RawSentence]:
        """Yield the sentences of the lines of a text, given without the ``LF`` that ends each."""
        for part in _one_a_line(lines) if self._punkt is None else _by_punkt(lines, self._punkt):
            tokens, offsets = self._tokeniser.tokens(part.text, part.start)
            if tokens:
                line = part.line + part.text.count("\n", 0, offsets[0][0] - part.start)
                yield RawSentence(tokens, offsets, line)


def write_offsets(path: str | Path, sentences: Iterable[RawSentence]) -> None:
    """Write a line of JSON for each sentence (`SentencePlace`), in their order.

    Raises:
        InputError: the file cannot be written, or as the sentences are read.
    """
    write_json_lines(path, (sentence.place() for sentence in sentences))


class _TextPart(NamedTuple):
    """A part of a text, such as a sentence."""

    text: str
    start: int  #: in characters
    line: int  #: on which it starts, from 1


def _one_a_line(lines: Iterable[str]) -> Iterator[_TextPart]:
    start = 0
    for number, line in enumerate(lines, start=1):
        yield _TextPart(line, start, number)
        start += len(line) + 1


def _by_punkt(lines: Iterable[str], punkt: PunktTokenizer) -> Iterator[_TextPart]:
    """The sentences of paragraphs, which end at empty lines."""
    parts: list[_TextPart] = []
    size, limit = 0, _PARAGRAPH
    for part in _one_a_line(lines):
        if is_blank(part.text):
            yield from _sentences(parts, punkt)
            parts, size, limit = [], 0, _PARAGRAPH
            continue
        parts.append(part)
        size += len(part.text) + 1
        if size > limit:  # the last sentence may go on
            *whole, rest = _sentences(parts, punkt)
            yield from whole
            parts, size = [rest], len(rest.text)
            limit = max(_PARAGRAPH, 2 * size)
    yield from _sentences(parts, punkt)


def _sentences(parts: list[_TextPart], punkt: PunktTokenizer) -> Iterator[_TextPart]:
    """The sentences of parts that follow each other, one line end between two of them; nothing is left out."""
    if not parts:
        return
    text = "\n".join(part.text for part in parts)
    _, start, line = parts[0]
    places = [0, *(first for first, _ in punkt.span_tokenize(fold_quotes(text)) if first > 0), len(text)]
    for first, end in pairwise(places):
        yield _TextPart(text[first:end], start + first, line)
        line += text.count("\n", first, end)


def _load_punkt(language: str) -> PunktTokenizer | None:
    """NLTK's sentence splitter; None where its data is not installed."""
    from nltk.data import find
    from nltk.tokenize.punkt import PunktTokenizer

    try:
        find(f"tokenizers/punkt_tab/{language}/")
    except LookupError:
        return None
    try:
        return PunktTokenizer(language)
    except (LookupError, OSError, ValueError) as error:
        raise InputError(
            f"NLTK's punkt data for {language!r} is damaged; run python -m nltk.downloader --force punkt_tab, or"
            " write one sentence a line",
            code="damaged",
        ) from error
