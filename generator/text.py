"""Raw text as sentences of Penn tokens.

The rules for Penn tokens are from Robert MacIntyre's ``tokenizer.sed`` in the form of NLTK's ``TreebankWordTokenizer``;
on ASCII text both give the same tokens. Each rule applies to one run of characters without white space at a time, so
that the tokens of a run are cached. NLTK 3.10 applies its rules to every sentence anew, which takes three times as
long, and stops with an error if one of them takes more than five seconds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import TypedDict

from truesource.grammar.support.atomic_files import write_json_lines
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_text_lines

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktTokenizer


_RUNS = re.compile(r"[^\s\u200b\ufeff]+")  #: also separators: zero-width space, byte order mark of an appended file
_FOLD = str.maketrans("\u2018\u2019“”„«»", '`\'"""""')  #: each as one character of the rules
_APART = re.compile(r"…|[\u2013—―]+|\u2018{1,2}")  #: tokens in any position, which the rules lack
_INVISIBLE = re.compile("[\u00ad\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069]")
_DASHES = frozenset("\u2013—―")
#: the Penn spelling of a whole token; quotes in ASCII are opening or closing by their context
PENN_SPELLINGS: Mapping[str, str] = {
    **{"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"},
    **{"“": "``", "„": "``", "«": "``", "\u2018\u2018": "``", "”": "''", "»": "''", "\u2019\u2019": "''", "…": "..."},
}
BACKSLASHED = ("/", "*")  #: characters with a backslash before them in words of the Penn Treebank
#: rules in order: characters without which a rule changes nothing, its pattern, its replacement
_RULES = [
    (frozenset(triggers), re.compile(pattern), replacement)
    for triggers, pattern, replacement in (
        ('"', r'^"', "``"),
        ('"`', r"``", " `` "),
        ("\"'", r"([ (\[{<])(?:\"|'{2})", r"\1 `` "),
        (":,", r"([:,])([^\d])", r" \1 \2"),
        (":,", r"([:,])$", r" \1 "),
        (".", r"\.\.\.", " ... "),
        (";@#$%&", r"[;@#$%&]", r" \g<0> "),
        (".", r"([^.])(\.)([\])}>\"']*)$", r"\1 \2\3 "),  # the period that ends the sentence
        ("?!", r"[?!]", r" \g<0> "),
        ("'", r"([^'])' ", r"\1 ' "),
        ("[](){}<>", r"[\]\[(){}<>]", r" \g<0> "),
        ("-", r"--", " -- "),
        ("", r"^|$", " "),
        ("'", r"''", " '' "),
        ('"', r'"', " '' "),
        ("'", r"([^' ])('[sS]|'[mM]|'[dD]|') ", r"\1 \2 "),
        ("'", r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r"\1 \2 "),
        (
            "",
            r"(?i)\b(can(?=not)|gim(?=me)|lem(?=me)|gon(?=na)|got(?=ta)|wan(?=na\s)|d(?='ye)|more(?='n))"
            r"(not|me|na|ta|'ye|'n)\b",
            r" \1 \2 ",
        ),
        ("'", r"(?i) ('t)(is|was)\b", r" \1 \2 "),
    )
]
_TWO_WORDS = frozenset(["cannot", "gimme", "lemme", "gonna", "gotta", "wanna"])  #: split by the rules, in any case
_KEPT_RUNS = 2**16
_LONGEST_KEPT = 100  #: most characters of a cached run; longer ones rarely recur
_LANGUAGE = re.compile(r"[A-Za-z0-9_-]+")
_PARAGRAPH = 2**20  #: characters of a paragraph after which its first sentences are yielded


def is_blank(text: str) -> bool:
    """Return True if no part of a text is in a token."""
    return _RUNS.search(text) is None


def fold_quotes(text: str) -> str:
    """Return the text with curly and angled quotes as straight ones, at the same positions."""
    return text if text.isascii() else text.translate(_FOLD)


class Piece(NamedTuple):
    """A token inside a run of characters."""

    word: str
    start: int
    end: int


class PennTokeniser:
    r"""Splits sentences of raw text into Penn tokens.

    A token is spelled as in the text if the grammar has that word, else as in the Penn Treebank: brackets, quotes,
    dashes and ellipses by `PENN_SPELLINGS`, ``1/2`` as ``1\/2``, curly apostrophes as straight ones, composed
    characters (NFC), without invisible ones such as soft hyphens. Words with a slash or an asterisk are spelled like
    the grammar's other words with that character.

    Args:
        known: words of the grammar that will read the tokens; None: Penn Treebank spelling for all.
    """

    def __init__(self, known: Collection[str] | None = None) -> None:
        self._vocabulary: Collection[str] = frozenset() if known is None else known
        # characters spelled with a backslash as in the Penn Treebank, if the known words do so, or have none of them
        spelled = {c: [word for word in self._vocabulary if c in word] for c in BACKSLASHED}
        self._backslashed = [c for c, words in spelled.items() if not words or any(f"\\{c}" in word for word in words)]
        self._kept: dict[tuple[str, bool, bool], tuple[Piece, ...]] = {}

    def tokens(self, sentence: str, offset: int = 0) -> tuple[list[str], list[tuple[int, int]]]:
        """Return the words of a sentence, and the start and end of each.

        Every character that is neither white space nor a zero-width space is part of one token, in order.

        Args:
            sentence: text of one sentence, of any number of lines.
            offset: start of the sentence; added to all starts and ends.
        """
        words: list[str] = []
        places: list[tuple[int, int]] = []
        runs = list(_RUNS.finditer(sentence))
        for number, result in enumerate(runs, start=1):
            run = result[0]
            at = result.start() + offset
            if run.isascii() and run.isalnum() and run.lower() not in _TWO_WORDS:  # the usual case
                words.append(run)
                places.append((at, at + len(run)))
                continue
            for word, start, end in self._pieces(run, number == 1, number == len(runs)):
                words.append(word)
                places.append((at + start, at + end))
        return words, places

    def _pieces(self, run: str, first: bool, last: bool) -> tuple[Piece, ...]:
        pieces = self._kept.get((run, first, last))
        if pieces is None:
            pieces = self._cut(run, first, last)
            if len(run) <= _LONGEST_KEPT:
                if len(self._kept) == _KEPT_RUNS:
                    self._kept.clear()
                self._kept[run, first, last] = pieces
        return pieces

    def _cut(self, run: str, first: bool, last: bool) -> tuple[Piece, ...]:
        folded = fold_quotes(run)
        pieces = []
        end = 0
        for token in _penn_tokens(run, first, last):
            start = end
            if folded.startswith(token, start):
                end += len(token)
            else:  # a quote that the rules rewrote
                end += 1 if folded[start] == '"' else 2
            pieces.append(Piece(self._spelled(run[start:end], token), start, end))
        return self._with_abbreviation(pieces) if last else tuple(pieces)

    def _spelled(self, text: str, token: str) -> str:
        """Return the spelling of a token, given its text and its form by the rules."""
        plain = text if text.isascii() else unicodedata.normalize("NFC", _INVISIBLE.sub("", text)) or text
        for written in (text, plain):
            if written in self._vocabulary and (token != "``" or written != "''"):
                return written
        if plain in PENN_SPELLINGS and plain != "''":
            return PENN_SPELLINGS[plain]
        if _DASHES.issuperset(plain):
            return "--"
        if token in ("``", "''"):
            return token
        word = fold_quotes(plain)
        if word not in self._vocabulary:
            for character in self._backslashed:
                word = word.replace(character, "\\" + character)
        return word

    def _with_abbreviation(self, pieces: list[Piece]) -> tuple[Piece, ...]:
        """Return the last run of a sentence, if the period of an abbreviation ends it too: ``U.S.`` and ``.``."""
        for number, piece in enumerate(pieces[1:]):
            word, start, end = pieces[number]
            if piece.word == "." and word not in self._vocabulary and f"{word}." in self._vocabulary:
                pieces[number] = Piece(f"{word}.", start, end)
        return tuple(pieces)


def _penn_tokens(run: str, first: bool, last: bool) -> list[str]:
    """Return the tokens of a run of characters by the rules, at the beginning or end of a sentence or not."""
    text = (run if run.isascii() else _APART.sub(r" \g<0> ", run).strip()).translate(_FOLD)
    text = ("" if first else " ") + text + ("" if last else " x")
    there = set(text)
    for triggers, pattern, replacement in _RULES:
        if not triggers or not triggers.isdisjoint(there):
            text = pattern.sub(replacement, text)
    tokens = text.split()
    return tokens if last else tokens[:-1]


class Splitting(StrEnum):
    """The way to split raw text into sentences."""

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

    tokens: list[str]  #: (L,) tokens as a grammar reads them, at least one
    offsets: list[tuple[int, int]]  #: (L,) start and end of each token in the text, in characters
    line: int  #: first line, from 1

    def place(self) -> SentencePlace:
        """Return the row of this sentence in a file of offsets."""
        return {"line": self.line, "start": self.offsets[0][0], "end": self.offsets[-1][1], "tokens": self.offsets}


class RawTextReader:
    r"""Splits text into sentences and these into Penn tokens (`truesource.generator.text`).

    Lines end in ``\n`` or ``\r\n``. Lines of white space are no sentences. All other characters of the text
    become part of a token.

    Args:
        known: words of the grammar that will read the sentences, ``pcfg.word_ids``; None: Penn Treebank spelling for
            all.
        splitting: None: punkt, if its data is installed where NLTK looks for it (nothing is downloaded), else one
            sentence a line. The attribute holds the choice.
        language: language of punkt's data, in NLTK's notation; ignored by ``LINES``.

    Raises:
        InputError: unknown language, damaged data, or (``missing``) no data for requested punkt.
    """

    splitting: Splitting

    def __init__(
        self, known: Collection[str] | None = None, *, splitting: Splitting | None = None, language: str = "english"
    ) -> None:
        if not _LANGUAGE.fullmatch(language):
            raise InputError(f"there is no language {language!r}; use a name of NLTK's punkt data, such as 'english'")
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
        """Yield the sentences of a UTF-8 file, uncompressed if it is a gzip file.

        The file is never in memory as a whole: a line at a time, or with punkt a paragraph, of which at most about a
        million characters and a sentence are held.

        Raises:
            InputError: the file is missing, cannot be read, is a damaged gzip file, has a line that is too long or not
                UTF-8 (with its number), when the position is reached; or it has no sentence.
        """
        sentence = None
        for sentence in self.sentences(read_text_lines(path)):
            yield sentence
        if sentence is None:
            raise InputError("the file has no text; check the path", path)

    def sentences(self, lines: Iterable[str]) -> Iterator[RawSentence]:
        """Yield the sentences of the lines of a text, without the ``LF`` at the end of each."""
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
    start: int  #: start in characters
    line: int  #: first line, from 1


def _one_a_line(lines: Iterable[str]) -> Iterator[_TextPart]:
    start = 0
    for number, line in enumerate(lines, start=1):
        yield _TextPart(line, start, number)
        start += len(line) + 1


def _by_punkt(lines: Iterable[str], punkt: PunktTokenizer) -> Iterator[_TextPart]:
    """Yield the sentences of paragraphs, which end at empty lines."""
    parts: list[_TextPart] = []
    size, limit = 0, _PARAGRAPH
    for part in _one_a_line(lines):
        if is_blank(part.text):
            yield from _sentences(parts, punkt)
            parts, size, limit = [], 0, _PARAGRAPH
            continue
        parts.append(part)
        size += len(part.text) + 1
        if size > limit:  # the last sentence may continue
            *whole, rest = _sentences(parts, punkt)
            yield from whole
            parts, size = [rest], len(rest.text)
            limit = max(_PARAGRAPH, 2 * size)
    yield from _sentences(parts, punkt)


def _sentences(parts: list[_TextPart], punkt: PunktTokenizer) -> Iterator[_TextPart]:
    """Yield the sentences of consecutive parts, separated by one line end; nothing is dropped."""
    if not parts:
        return
    text = "\n".join(part.text for part in parts)
    _, start, line = parts[0]
    places = [0, *(first for first, _ in punkt.span_tokenize(fold_quotes(text)) if first > 0), len(text)]
    for first, end in pairwise(places):
        yield _TextPart(text[first:end], start + first, line)
        line += text.count("\n", first, end)


def _load_punkt(language: str) -> PunktTokenizer | None:
    """Return NLTK's sentence splitter; None if its data is not installed."""
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
