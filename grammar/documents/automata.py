"""Right-linear grammars as automata, and several automata joined into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import spsolve

from truesource.grammar.documents._kernels.pool import NEARLY_NONE
from truesource.grammar.inference.tables import LinearRules
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

LARGEST_TABLE = 2 * 10**8  #: states times words of a pool


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearMoves:
    """An automaton of S states that begins in state 0, emits a word at each move, and ends at some moves."""

    states: int  #: S
    words: tuple[str, ...]  #: (V,)
    source: Int32Array  #: (T,)
    word: Int32Array  #: (T,)
    target: Int32Array  #: (T,) -1: the string ends with this word
    p: FloatArray  #: (T,) probabilities of a state sum to one

    @classmethod
    def of(cls, rules: GrammarRules) -> LinearMoves | None:
        """Return the automaton of a right-linear grammar; None if the grammar is not one or some strings never end."""
        linear = LinearRules.of(rules)
        if linear is None or linear.side != "right" or abs(linear.mass[rules.start] - 1.0) > 1e-9:
            return None
        n, v = len(rules.symbols), len(rules.vocabulary)
        parent, word = rules.lexical.T
        lexicon = csr_matrix((np.exp(rules.lexical_logp), (parent, word)), shape=(n, v))
        tagged = csr_matrix(linear.unary_closure @ lexicon)[linear.tag].tocoo()  # words of each binary rule
        after = linear.spine[tagged.row].astype(np.int64)
        p = np.exp(linear.logp[tagged.row]) * tagged.data
        at = np.concatenate([linear.parent[tagged.row], parent])
        column = np.concatenate([tagged.col * (n + 1) + after, word.astype(np.int64) * (n + 1) + n])
        first = csr_matrix((np.concatenate([p, np.exp(rules.lexical_logp)]), (at, column)), shape=(n, v * (n + 1)))
        moves = csr_matrix(linear.unary_closure @ first).tocoo()
        target = moves.col % (n + 1)
        inner = np.flatnonzero(target < n)
        steps = csr_matrix((np.ones(len(inner)), (moves.row[inner], target[inner])), shape=(n, n))
        reached = breadth_first_order(steps, rules.start, return_predecessors=False)
        number = np.full(n + 1, -1, dtype=np.int32)
        number[reached] = np.arange(len(reached), dtype=np.int32)
        possible = (number[moves.row] >= 0) & (moves.data > 0.0)
        return cls(
            states=len(reached),
            words=rules.vocabulary,
            source=number[moves.row[possible]],
            word=(moves.col[possible] // (n + 1)).astype(np.int32),
            target=number[target[possible]],
            p=moves.data[possible],
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Automata:
    """K automata together: G states, moves in the order of their sources and words."""

    words: tuple[str, ...]  #: (V,) of all automata
    first: IntArray  #: (K+1,) first state of each, in which it begins
    source: Int32Array  #: (T,)
    word: Int32Array  #: (T,)
    target: Int32Array  #: (T,) -1: the string ends
    p: FloatArray  #: (T,)

    @classmethod
    def join(cls, parts: Iterable[LinearMoves]) -> Self:
        """Join automata over the union of their words.

        Raises:
            InputError: they have too many states times words.
        """
        numbers: dict[str, int] = {}
        sizes: list[int] = []
        columns: list[tuple[IntArray | Int32Array | FloatArray, ...]] = []
        done = 0
        for part in parts:
            renumbered = np.array([numbers.setdefault(word, len(numbers)) for word in part.words], dtype=np.int32)
            target = np.where(part.target < 0, -1, part.target + done).astype(np.int32)
            columns.append((part.source + np.int32(done), renumbered[part.word], target, part.p))
            sizes.append(part.states)
            done += part.states
            if done * len(numbers) > LARGEST_TABLE:
                raise InputError(
                    f"the languages of this pool have more than {LARGEST_TABLE:,} states times words; use fewer or"
                    " smaller languages",
                    code="too-large",
                )
        source, word, target, p = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.lexsort((target, word, source))
        return cls(
            words=tuple(numbers),
            first=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            source=source[order],
            word=word[order],
            target=target[order],
            p=p[order],
        )

    @property
    def states(self) -> int:
        """Number G of states of all automata."""
        return int(self.first[-1])

    @cached_property
    def emission(self) -> FloatArray:
        """P(word | state), (G, V)."""
        place = self.source.astype(np.int64) * len(self.words) + self.word
        table = np.bincount(place, self.p, minlength=self.states * len(self.words)).astype(np.float64)
        return table.reshape(self.states, len(self.words))

    @cached_property
    def ending(self) -> FloatArray:
        """P(the string ends with the word | state, word), (G, V); nan if the word is impossible there."""
        last = self.target < 0
        place = self.source[last].astype(np.int64) * len(self.words) + self.word[last]
        ends = np.bincount(place, self.p[last], minlength=self.states * len(self.words)).reshape(self.emission.shape)
        shares = np.full(ends.shape, np.nan)
        np.divide(ends, self.emission, out=shares, where=self.emission > 0.0)
        return shares

    @cached_property
    def going(self) -> FloatArray:
        """P(the string continues after the word | state, word), (G, V); nan if the word is impossible there.

        Equal to 1 - `ending`, at full precision even if `ending` is near 1.
        """
        inner = self.target >= 0
        place = self.source[inner].astype(np.int64) * len(self.words) + self.word[inner]
        inside = np.bincount(place, self.p[inner], minlength=self.states * len(self.words)).reshape(self.emission.shape)
        shares = 1.0 - self.ending
        np.divide(inside, self.emission, out=shares, where=(self.emission > 0.0) & (shares < NEARLY_NONE))
        return shares

    @cached_property
    def deterministic(self) -> bool:
        """True if the automata are deterministic: a state and a word lead to at most one state."""
        inner = self.target >= 0
        same = (np.diff(self.source[inner]) == 0) & (np.diff(self.word[inner]) == 0)
        return not bool(same.any())

    @cached_property
    def end(self) -> float | None:
        """P(a string ends | its words, one or more) if it is the same for all words; None otherwise."""
        shares = self.ending[~np.isnan(self.ending)]
        middle = float(shares.mean())
        return middle if bool((np.abs(shares - middle) <= 1e-12).all()) else None

    @cached_property
    def _steps(self) -> csr_matrix[np.float64]:
        """P(next state, a word | state), transposed, (G, G)."""
        inner = self.target >= 0
        at = (self.target[inner], self.source[inner])
        return csr_matrix((self.p[inner], at), shape=(self.states, self.states))

    def length_pmf(self, high: int) -> FloatArray:
        """Return P(a string has m words) of each language, m = 0..``high``, (K, high+1)."""
        last = self.target < 0
        ends = np.bincount(self.source[last], self.p[last], minlength=self.states)
        result = np.zeros((len(self.first) - 1, high + 1))
        belief = self._begin(np.ones(len(self.first) - 1))
        for m in range(1, high + 1):
            result[:, m] = np.add.reduceat(belief * ends, self.first[:-1])
            belief = np.asarray(self._steps @ belief)
        return result

    def expected_words(self, weight: FloatArray) -> FloatArray:
        """Return the expected number of each word in a string, (V,); languages have probabilities ``weight`` (K,)."""
        unit = csr_matrix((np.ones(self.states), (np.arange(self.states),) * 2))
        visits = spsolve((unit - self._steps).tocsc(), self._begin(weight))
        return np.asarray(visits @ self.emission)

    def words_by_place(self, weight: FloatArray, high: int) -> FloatArray:
        """Return P(word i of a string is w | it has i words or more), (high, V), of a mixture; needs `end`."""
        assert self.end is not None
        result = np.zeros((high, len(self.words)))
        belief = self._begin(weight)
        for i in range(high):
            result[i] = belief @ self.emission
            belief = np.asarray(self._steps @ belief) / (1.0 - self.end)
        return result

    def _begin(self, weight: FloatArray) -> FloatArray:
        belief = np.zeros(self.states)
        belief[self.first[:-1]] = weight
        return belief

    def in_common(self) -> BoolArray:
        """Return which words two languages or more have, (V,)."""
        language = np.searchsorted(self.first, self.source, side="right") - 1
        pairs = np.unique(language * len(self.words) + self.word)
        return np.asarray(np.bincount(pairs % len(self.words), minlength=len(self.words)) > 1)


def named(languages: Sequence[str]) -> str:
    """Return some names for a message."""
    return f"{', '.join(languages[:2])}{' and others' if len(languages) > 2 else ''}"
