"""What word-level scoring needs to know of a tokeniser that cuts words into pieces."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from truesource.grammar.support.arrays import BoolArray, IntArray


@dataclass(frozen=True)
class Pieces:
    """Sentences as pieces: T pieces of W words of S sentences, in order."""

    ids: IntArray  #: (T,) numbers of the pieces
    counts: IntArray  #: (W,) pieces of each word, at least 1
    words: IntArray  #: (S,) words of each sentence
    #: (W,) true for words that the pieces do not spell: one is ``<unk>`` or another special token
    unreadable: BoolArray

    @property
    def starts(self) -> IntArray:
        """(W+1,) where the pieces of each word start; the last entry is T."""
        return np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)

    @property
    def sentence(self) -> IntArray:
        """(W,) number of the sentence of each word."""
        return np.repeat(np.arange(len(self.words)), self.words)

    @property
    def bounds(self) -> IntArray:
        """(S+1,) where the pieces of each sentence start; the last entry is T."""
        bounds: IntArray = self.starts[np.concatenate([[0], np.cumsum(self.words)])]
        return bounds

    def rows(self) -> list[IntArray]:
        """The pieces of each sentence."""
        bounds = self.bounds
        return [self.ids[a:b] for a, b in itertools.pairwise(bounds.tolist())]


class Marks(NamedTuple):
    """The tokens that a tokeniser puts around a text."""

    before: tuple[int, ...]  #: a causal model reads at most one; none: nothing predicts the first piece
    after: tuple[int, ...]  #: a causal model predicts it (at most one) as the end of the sentence
    mask: int | None  #: None: the tokeniser has none
    pad: int  #: fills shorter rows on the right


class WordAligner(Protocol):
    """A tokeniser as scoring sees it."""

    @property
    def marks(self) -> Marks:
        """What stands around a text."""

    @property
    def begins(self) -> BoolArray | None:
        """(V,) tokens that can only follow a finished word: those that begin a word, and the end of the text.

        None: the marks stand at the ends of words, so that a word's own pieces tell that it is over.
        """

    def __len__(self) -> int: ...

    def align(self, sentences: Sequence[Sequence[str]]) -> Pieces:
        """The pieces of the words of each sentence.

        Raises:
            InputError: a word has no pieces of its own.
        """
