"""Exact expected counts of word pairs, kept as a product of small matrices and never as a table of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.word_pairs import emission_of, pair_weights
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LARGEST_TABLE = 5000  #: words, above which the table of all pairs is refused (200 MB)
CHUNK = 4096  #: pairs looked up at a time


@dataclass(frozen=True, eq=False)
class Bigrams:
    """Expected number of times one word stands right before another in a sentence: ``emission^T weight emission``.

    The rank is at most the number T of preterminals. What a sentence begins and ends with is kept beside it, so that
    ``row(v).sum() + ends[v]`` is the expected number of v.
    """

    words: tuple[str, ...]  #: (V,)
    weight: FloatArray  #: (T, T) expected number of neighbouring preterminals
    emission: csr_matrix[np.float64]  #: (T, V) P(word | preterminal)
    starts: FloatArray  #: (V,) probability that a sentence begins with each word
    ends: FloatArray  #: (V,) probability that it ends with it

    def counts(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Expected number of each (word, next word) in a sentence, (N,); 0 for words the grammar does not have."""
        ids = {word: i for i, word in enumerate(self.words)}
        table = np.array([[ids.get(v, -1), ids.get(w, -1)] for v, w in pairs], dtype=np.int64).reshape(-1, 2)
        found = np.zeros(len(table))
        known = np.flatnonzero((table >= 0).all(axis=1))
        by_word = self.emission.T.tocsr()
        for at in range(0, len(known), CHUNK):
            some = known[at : at + CHUNK]
            before = by_word[table[some, 0]] @ self.weight
            found[some] = np.asarray(by_word[table[some, 1]].multiply(before).sum(axis=1)).ravel()
        return found

    def row(self, word: str) -> FloatArray:
        """Expected number of each word right after ``word`` in a sentence, (V,).

        Raises:
            InputError: the grammar does not have the word.
        """
        before = self.emission[:, [self._id(word)]].toarray().ravel()
        return np.asarray((before @ self.weight) @ self.emission)

    def next_word(self, word: str) -> tuple[FloatArray, float]:
        """What a bigram model that knows the truth says after ``word``: each word's probability (V,), and the end's.

        Raises:
            InputError: the grammar does not have the word, or no sentence has it.
        """
        row, end = self.row(word), float(self.ends[self._id(word)])
        total = float(row.sum()) + end
        if not total > 0.0:
            raise InputError(f"no sentence has the word {word!r}; choose another")
        return row / total, end / total

    def table(self) -> FloatArray:
        """All pairs, (V, V).

        Raises:
            InputError: there are more than 5000 words.
        """
        if len(self.words) > LARGEST_TABLE:
            raise InputError(
                f"a table of all pairs of {len(self.words)} words is too large (at most {LARGEST_TABLE});"
                " ask for the pairs or rows you need"
            )
        return np.asarray((self.emission.T @ self.weight) @ self.emission)

    def _id(self, word: str) -> int:
        try:
            return self.words.index(word)
        except ValueError:
            raise InputError(f"the grammar does not have the word {word!r}") from None


def bigrams(pcfg: PCFG, lengths: LengthRange | None = None) -> Bigrams:
    """Expected counts of neighbouring words, exact, given a range of lengths or not.

    Raises:
        InputError: without ``lengths``, the spectral radius is 1 or more; with them, no sentence has such a length.
    """
    found = pair_weights(pcfg, lengths, neighbours=True)
    emission = emission_of(pcfg, found.tags)
    ends = (np.asarray(found.first @ emission), np.asarray(found.last @ emission))
    return Bigrams(pcfg.terminals, found.weight, emission, *ends)
