"""Coarse-to-fine pruning: which symbols may cover which spans of a sentence, found level by level.

Petrov & Klein (2007), "Improved inference for unlexicalized parsing", section 3: a symbol may cover a span if the
symbol that it is a branch of, at the level before, is expected there often enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from truesource.grammar._kernels.lanes import WIDTH
from truesource.grammar._kernels.rules import LexicalRules, SpanPairs, SparseRows
from truesource.grammar.inference.batch import TooLongError, require_memory
from truesource.grammar.inference.posterior import posterior, tables
from truesource.grammar.parsing.levels import Level
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array
from truesource.grammar.support.errors import InputError

#: Expected number of nodes below which a symbol is left out, by pass from the coarsest; the last holds for all further
#: ones. Chosen on development data (docs/howto/parsing.md).
THRESHOLDS = (3e-4, 1e-3, 1e-3)


class CoarseToFine:
    """Prunes the charts of sentences with the levels of a grammar.

    Args:
        levels: from the coarsest to the grammar itself, two or more; see `truesource.grammar.parsing.levels`.
        thresholds: expected numbers of nodes, in (0, 1), by pass; the last holds for all further passes.

    Raises:
        InputError: a threshold is outside (0, 1), or there is none.
    """

    def __init__(self, levels: Sequence[Level], thresholds: Sequence[float] = THRESHOLDS) -> None:
        if not thresholds or not all(0.0 < threshold < 1.0 for threshold in thresholds):
            raise InputError(f"thresholds of pruning lie between 0 and 1, got {tuple(thresholds)}")
        self._levels = tuple(levels)
        n_passes = len(levels) - 1
        self._thresholds = (*thresholds, *[thresholds[-1]] * n_passes)[:n_passes]
        coarsest = levels[0].pcfg
        self._coarsest = coarsest
        self._closure, self._pairs, self._lexicon = _single(coarsest)

    def expected(self, sentences: Sequence[Sequence[str]]) -> Iterator[tuple[int, FloatArray]]:
        """The first pass: sentence by sentence, its number and the expected numbers of coarse nodes, (spans, S).

        Sentences come in the order of their length, side by side in memory; what is found for one does not depend on
        the others.

        Raises:
            TooLongError: the chart of a sentence does not fit the memory of this machine.
        """
        from truesource.grammar.parsing._kernels import coarsest as kernels

        require_memory(longest := max(map(len, sentences), default=0), self._bytes(longest))
        order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
        for first in range(0, len(order), WIDTH):
            numbers = order[first : first + WIDTH]
            words, sizes = self._side_by_side([sentences[number] for number in numbers])
            chart = kernels.inside(words, self._closure, self._pairs, self._lexicon)
            expected = kernels.posterior(
                chart, sizes, self._coarsest.start, self._thresholds[0], self._closure, self._pairs
            )
            for lane, number in enumerate(numbers):
                yield number, expected[: sizes[lane] * (sizes[lane] + 1) // 2, :, lane]

    def fits(self, n: int) -> bool:
        """Whether the first pass over a sentence of n words fits the memory of this machine."""
        try:
            require_memory(n, self._bytes(n))
        except TooLongError:
            return False
        return True

    def _bytes(self, n: int) -> int:
        """Of the first pass over sentences of n words side by side: three float32, and an int32 for all lanes."""
        return n * (n + 1) // 2 * len(self._coarsest.symbols) * (3 * WIDTH + 1) * 4

    def _side_by_side(self, sentences: Sequence[Sequence[str]]) -> tuple[Int32Array, Int32Array]:
        longest = max(map(len, sentences))
        words, sizes = np.full((longest, WIDTH), -1, dtype=np.int32), np.zeros(WIDTH, dtype=np.int32)
        for lane, sentence in enumerate(sentences):
            sizes[lane] = len(sentence)
            words[: len(sentence), lane] = self._coarsest.encode(sentence)
        return words, sizes

    def allowed(self, sentence: Sequence[str], expected: FloatArray, looser: float = 1.0) -> BoolArray:
        """Which symbols of the grammar may cover which spans, (spans, S).

        Args:
            sentence: its words.
            expected: of its first pass.
            looser: what the thresholds are multiplied by, at most 1.

        Raises:
            NothingLeftError: no derivation is left of the sentence.
        """
        from truesource.grammar.parsing._kernels import coarsest as kernels

        allowed: BoolArray = np.zeros((0, 0), dtype=np.bool_)
        n_spans = len(sentence) * (len(sentence) + 1) // 2
        last = len(self._levels) - 1
        for number, level in enumerate(self._levels[1:], start=1):
            threshold = self._thresholds[number - 1] * looser
            allowed = kernels.survivors(expected, n_spans, threshold, level.parent_of)
            if number < last:
                found = posterior(level.pcfg, sentence, allowed)
                expected = np.asarray(found.closed * found.chart.inside)
        return allowed


def _single(pcfg: PCFG) -> tuple[SparseRows, SpanPairs, LexicalRules]:
    """The rules of a grammar for the first pass, in float32."""
    exact, known = pcfg.exact, tables(pcfg.exact)
    pairs, n_states = exact.pairs, len(pcfg.symbols)
    binary = np.zeros(n_states, dtype=np.bool_)
    binary[pcfg.binary[:, 0]] = True
    long = np.asarray((exact.unary_closure[:, binary] > 0.0).any(axis=1))  # can cover more than one word
    order = np.lexsort((pairs.right, ~long[pairs.right], pairs.left))
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    start, end = pairs.by_left[:-1].copy(), pairs.by_left[1:].copy()
    until = (start + np.bincount(pairs.left[long[pairs.right]], minlength=n_states)).astype(np.int32)
    of_rule = place[np.repeat(np.arange(len(order)), np.diff(pairs.rule_start))]
    return (
        known.closure._replace(value=known.closure.value.astype(np.float32)),
        SpanPairs(start, until, end, pairs.right[order], of_rule, pairs.parent, pairs.prob.astype(np.float32)),
        exact.lexicon._replace(prob=exact.lexicon.prob.astype(np.float32)),
    )
