r"""Penn tokens of raw text: where each stands, and how a grammar spells it.

The rules are those of Robert MacIntyre's ``tokenizer.sed`` in the form of NLTK's ``TreebankWordTokenizer``; on ASCII
text both find the same tokens. Each rule looks at one run of characters without white space at a time, so that
what is found in a run is kept for the next time. NLTK 3.10 applies its rules to every sentence anew, which takes three
times as long, and stops with an error where one of them takes more than five seconds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import NamedTuple

_RUNS = re.compile(r"[^\s\u200b\ufeff]+")  #: also apart: zero-width space, byte order mark of a file that was appended
_FOLD = str.maketrans("\u2018\u2019“”„«»", '`\'"""""')  #: each as one character that the rules know
_APART = re.compile(r"…|[\u2013—―]+|\u2018{1,2}")  #: tokens wherever they stand, which the rules do not know
_INVISIBLE = re.compile("[\u00ad\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069]")
_DASHES = frozenset("\u2013—―")

#: the Penn spelling of a whole token; quotes in ASCII are opening or closing by what stands around them
PENN_SPELLINGS: Mapping[str, str] = {
    **{"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"},
    **{"“": "``", "„": "``", "«": "``", "\u2018\u2018": "``", "”": "''", "»": "''", "\u2019\u2019": "''", "…": "..."},
}
BACKSLASHED = ("/", "*")  #: characters with a backslash before them in words of the Penn Treebank

#: in their order: characters without one of which a rule changes nothing, what it looks for, what it puts there
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
_TWO_WORDS = frozenset(["cannot", "gimme", "lemme", "gonna", "gotta", "wanna"])  #: to the rules, without regard to case
_KEPT_RUNS = 2**16
_LONGEST_KEPT = 100  #: characters of a run; longer ones hardly come again


def is_blank(text: str) -> bool:
    """Whether nothing in a text is part of a token."""
    return _RUNS.search(text) is None


def fold_quotes(text: str) -> str:
    """The text with curly and angled quotes as straight ones, in the same places."""
    return text if text.isascii() else text.translate(_FOLD)


class Piece(NamedTuple):
    """A token inside a run of characters."""

    word: str
    start: int
    end: int


class PennTokeniser:
    r"""Cuts sentences of raw text into Penn tokens.

    A token is spelled as it stands in the text if the grammar knows it so, else as in the Penn Treebank: brackets,
    quotes, dashes and ellipses by `PENN_SPELLINGS`, ``1/2`` as ``1\/2``, curly apostrophes as straight ones,
    composed characters (NFC), without invisible ones such as soft hyphens. Words with a slash or an asterisk
    are spelled as the grammar spells others with that character.

    Args:
        known: the words of the grammar that will read the tokens; None: the Penn Treebank's spelling everywhere.
    """

    def __init__(self, known: Collection[str] | None = None) -> None:
        self._known: Collection[str] = frozenset() if known is None else known
        self._backslashed = [c for c in BACKSLASHED if _is_backslashed(c, [word for word in self._known if c in word])]
        self._kept: dict[tuple[str, bool, bool], tuple[Piece, ...]] = {}

    def tokens(self, sentence: str, offset: int = 0) -> tuple[list[str], list[tuple[int, int]]]:
        """The words of a sentence, and the start and end of each.

        Every character that is neither white space nor a zero-width space is part of one token, in order.

        Args:
            sentence: text of one sentence, of any number of lines.
            offset: where the sentence starts; added to all starts and ends.
        """
        words: list[str] = []
        places: list[tuple[int, int]] = []
        runs = list(_RUNS.finditer(sentence))
        for number, found in enumerate(runs, start=1):
            run = found[0]
            at = found.start() + offset
            if run.isascii() and run.isalnum() and run.lower() not in _TWO_WORDS:  # as most are
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
            else:  # a quote that the rules wrote in another way
                end += 1 if folded[start] == '"' else 2
            pieces.append(Piece(self._spelled(run[start:end], token), start, end))
        return self._with_abbreviation(pieces) if last else tuple(pieces)

    def _spelled(self, text: str, token: str) -> str:
        """How a token is written, given its text and what the rules made of it."""
        plain = text if text.isascii() else unicodedata.normalize("NFC", _INVISIBLE.sub("", text)) or text
        for written in (text, plain):
            if written in self._known and (token != "``" or written != "''"):
                return written
        if plain in PENN_SPELLINGS and plain != "''":
            return PENN_SPELLINGS[plain]
        if _DASHES.issuperset(plain):
            return "--"
        if token in ("``", "''"):
            return token
        word = fold_quotes(plain)
        if word not in self._known:
            for character in self._backslashed:
                word = word.replace(character, "\\" + character)
        return word

    def _with_abbreviation(self, pieces: list[Piece]) -> tuple[Piece, ...]:
        """The last run of a sentence, where the period of an abbreviation ends the sentence too: ``U.S.`` and ``.``."""
        for number, piece in enumerate(pieces[1:]):
            word, start, end = pieces[number]
            if piece.word == "." and word not in self._known and f"{word}." in self._known:
                pieces[number] = Piece(f"{word}.", start, end)
        return tuple(pieces)


def _penn_tokens(run: str, first: bool, last: bool) -> list[str]:
    """The tokens of a run of characters by the rules, whether or not it begins or ends the sentence."""
    text = (run if run.isascii() else _APART.sub(r" \g<0> ", run).strip()).translate(_FOLD)
    text = ("" if first else " ") + text + ("" if last else " x")
    there = set(text)
    for triggers, pattern, replacement in _RULES:
        if not triggers or not triggers.isdisjoint(there):
            text = pattern.sub(replacement, text)
    tokens = text.split()
    return tokens if last else tokens[:-1]


def _is_backslashed(character: str, words: Collection[str]) -> bool:
    """Whether words with this character are spelled as in the Penn Treebank; also where there are none."""
    return not words or any("\\" + character in word for word in words)
