"""A language whose words are cut into pieces, as the truth of models that read pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.next_token import NextToken
from truesource.grammar.inference.next_words import NextWords, next_words
from truesource.grammar.pcfg import PCFG
from truesource.grammar.pieces.inference import PieceInference
from truesource.grammar.pieces.reading import read_pieces
from truesource.grammar.pieces.segmentation import SPACE, SPACE_BYTE, Cut, Segmentation, byte_cut, equal_words
from truesource.grammar.sentences import takes_sentence
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.truth import Truth
from truesource.grammar.word_numbers import decoded

SEPARATOR = ""  #: between the two cuts of a word; no piece is empty


class TokenisedTruth:
    """The truth of a language in which every word is replaced by its pieces; the tokens are the pieces.

    Each word has one segmentation, so a sentence of words and its pieces have the same probability. It is a
    `truesource.grammar.truth.Truth`. Length conditions are ranges of words.

    Args:
        truth: grammar, process or other truth of words.
        segmentation: the pieces of each of its words, in its order.
        merged: further words, each with the word of the truth that has the same pieces.

    Raises:
        InputError: the segmentation is of other words.
    """

    symbols: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    #: what it is, and what to do, in messages about abilities that need rules
    without_rules = "a language of pieces", "use a model of whole words"

    def __init__(self, truth: Truth, segmentation: Segmentation, merged: Mapping[str, str] | None = None) -> None:
        if segmentation.words != tuple(truth.vocabulary):
            raise InputError("the segmentation is of other words than the truth has; make it from its vocabulary")
        self.truth, self.segmentation, self.merged = truth, segmentation, merged or {}

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """(K,) the pieces."""
        return self.segmentation.pieces

    @property
    def meta(self) -> Mapping[str, Any]:
        """JSON values on how the truth of words was made."""
        return self.truth.meta

    @property
    def word_ids(self) -> dict[str, int]:
        """Number of each piece."""
        return self.segmentation.piece_ids

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the truth of words and the segmentation, hexadecimal."""
        return hashlib.sha256(f"{self.truth.digest} {self.segmentation.digest}".encode()).hexdigest()

    @property
    def identity(self) -> str:
        """Name of the truth of words, and 8 digits of the digest of the segmentation."""
        return f"{self.truth.identity} pieces {self.segmentation.digest[:8]}"

    @cached_property
    def exact(self) -> PieceInference:
        """Exact inference."""
        return PieceInference(self.truth, self.segmentation)

    @takes_sentence
    def encode(self, sentence: Sequence[str]) -> Int32Array:
        """Return piece numbers, (n,); -1 for an unknown piece."""
        return self.exact.encode(sentence)

    def decode(self, ids: ArrayLike) -> list[str]:
        """Return the pieces of some numbers, (n,); the way back from `encode`.

        Raises:
            InputError: there is no such piece.
        """
        return decoded(self.vocabulary, ids)

    @takes_sentence
    def pieces_of(self, sentence: Sequence[str]) -> list[str]:
        """Return the pieces of a sentence of words.

        Raises:
            InputError: the language does not have a word.
        """
        numbers = self.truth.encode([self.merged.get(word, word) for word in sentence]).tolist()
        if -1 in numbers:
            raise InputError(f"the language does not have the word {sentence[numbers.index(-1)]!r}")
        cuts = [self.segmentation.cuts if at else self.segmentation.first for at in range(len(numbers))]
        return [piece for number, cut in zip(numbers, cuts, strict=True) for piece in cut[number]]

    @takes_sentence
    def words_of(self, pieces: Sequence[str]) -> list[str]:
        """Return the words of a whole sentence of pieces; the way back from `pieces_of`.

        Raises:
            InputError: the pieces do not spell words.
        """
        if not pieces:
            return []
        (words,) = read_pieces(self.segmentation, [self.encode(pieces)]).texts
        result = self.truth.decode(np.array(words, dtype=np.int64))
        if self.pieces_of(result) != list(pieces):
            raise InputError(f"the pieces {list(pieces)!r} do not spell words")
        return result

    @takes_sentence
    def word_numbers(self, pieces: Sequence[str]) -> IntArray:
        """Return the number of the word that each piece of a sentence is in; for the end, the number of words, (n+1,).

        Raises:
            InputError: the pieces do not spell words.
        """
        words = self.truth.encode(self.words_of(pieces)).tolist()
        cuts = [self.segmentation.cuts if at else self.segmentation.first for at in range(len(words))]
        sizes = [len(cut[word]) for word, cut in zip(words, cuts, strict=True)]
        return np.repeat(np.arange(len(words) + 1), [*sizes, 1])

    def sizes(self) -> dict[str, int]:
        """Return counts for reports: pieces, and the counts of the truth of words."""
        return {"pieces": len(self.vocabulary), **self.truth.sizes()}

    def collapse(self, vocabulary: Iterable[str], unknown: str = "<unk>") -> Self:
        """Return the language itself, if all its pieces but ``unknown`` are in the vocabulary.

        Raises:
            InputError: a piece is not.
        """
        missing = sorted(set(self.vocabulary).difference(vocabulary, (unknown,)))
        if missing:
            raise InputError(
                f"pieces cannot be merged into {unknown}: the model lacks {', '.join(map(repr, missing[:3]))}"
                f"{' and others' if len(missing) > 3 else ''}",
                code="missing-ability",
            )
        return self

    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """Return the distribution of the next piece or the end after some pieces.

        Raises:
            InputError: no sentence (in the range) starts with them.
        """
        return self.exact.next_token(prefix, lengths)

    @takes_sentence
    def masked_piece(self, pieces: Sequence[str], position: int, lengths: LengthRange | None = None) -> FloatArray:
        """Return P(piece at ``position`` | all other pieces, and their number), (K,) probabilities.

        Raises:
            InputError: there is no such position, no piece fits there, or the language of words has no rules.
        """
        if not 0 <= position < len(pieces):
            raise InputError(f"position {position} is outside a sentence of {len(pieces)} pieces")
        (batch,) = self.exact.causal_batches([pieces])
        row: FloatArray = [*self.exact.masked_blocks(batch, lengths)][position].probability[0]
        if not row.any():
            raise InputError(f"no piece fits position {position} of {list(pieces)!r}")
        return row

    def next_words(self, sentences: Any, lengths: LengthRange | None = None) -> NextWords:
        """Return the distribution of the next piece at every position of some sentences of pieces, as one array.

        Arguments and errors are as in `truesource.grammar.inference.next_words.next_words`.
        """
        return next_words(self, sentences, lengths)

    def save(self, path: str | Path, *, force: bool = False) -> NoReturn:
        """Refuse to write a language of pieces.

        Raises:
            InputError: always; the truth of words and the tokeniser are its two files.
        """
        raise InputError("a language of pieces has no file; save its truth of words and the tokeniser", path)

    def __repr__(self) -> str:
        return f"TokenisedTruth({self.truth!r}, {len(self.vocabulary):,} pieces)"


def tokenised(truth: Truth, cut: Callable[[str], Cut], first: Callable[[str], Cut] | None = None) -> TokenisedTruth:
    """Return a language with its words cut into pieces; words with the same pieces are one word.

    Args:
        truth: grammar, process or other truth of words.
        cut: returns the pieces of a word after another one.
        first: returns the pieces of a word at the start of a text; None: as elsewhere.

    Raises:
        InputError: the truth is of pieces already.
        NothingToMeasureError: as `Segmentation`; or words of a process have the same pieces, which only rules can add
            up.
    """
    if isinstance(truth, TokenisedTruth):
        raise InputError(
            "the tokens of this language are pieces already; cut its language of words, the attribute truth"
        )
    cuts = {word: (cut(word), (first or cut)(word)) for word in truth.vocabulary}
    merged: dict[str, str] = {}
    groups = equal_words(truth.vocabulary, [(*inner, SEPARATOR, *start) for inner, start in cuts.values()])
    if groups:
        if not isinstance(truth, PCFG):
            raise NothingToMeasureError(
                f"the words {groups[0][0]!r} and {groups[0][1]!r} have the same pieces, but words of a process cannot"
                " be merged; choose a tokeniser that keeps them apart",
                "equal-pieces",
            )
        merged = {word: group[0] for group in groups for word in group}
        truth = truth.merge_words(merged)
    inner, start = zip(*(cuts[word] for word in truth.vocabulary), strict=True)
    return TokenisedTruth(truth, Segmentation(tuple(truth.vocabulary), inner, start), merged)


def by_characters(truth: Truth) -> TokenisedTruth:
    """Return a language of characters: words with ``▁`` before every word but the first.

    Raises:
        NothingToMeasureError: a word has the character ``▁`` (code ``no-boundary``).
    """
    return tokenised(truth, lambda word: (SPACE, *word), tuple)


def by_bytes(truth: Truth) -> TokenisedTruth:
    """Return a language of UTF-8 bytes, in the notation of `byte_cut`: words with a space before all but the first."""
    return tokenised(truth, lambda word: (SPACE_BYTE, *byte_cut(word)), byte_cut)
