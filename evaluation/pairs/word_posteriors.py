"""A sentence with one position left open: posteriors of spans as functions of the word."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from truesource.grammar.inference.posterior import Posterior, tables
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError


class WordPosteriors:
    """A sentence with one open position.

    With a derivation of the open position's tag A weighing ``o_A`` in its surroundings, ``P(w_1..v..w_n) = sum_A o_A
    P(A -> v)`` (see `SampledSentence.log_odds`). The derivations that have a node of a label over a span around the
    position are a linear function of the word as well: outside weights of the span's symbols, which do not depend on
    what is in it, are set at the top of the span instead of the start symbol, and carried down to the position.

    Args:
        posterior: the posterior of the unchanged sentence, from which the surroundings are taken.
        at: the position, from 0.

    Raises:
        InputError: the position is outside the sentence.
    """

    def __init__(self, posterior: Posterior, at: int) -> None:
        if not 0 <= at < len(posterior):
            raise InputError(f"position {at} is outside a sentence of {len(posterior)} tokens")
        self._found = posterior
        self._at = at

    def label_probs(self, label: str, begin: int, end: int) -> FloatArray:
        """Return P(a node of this label is over ``[begin, end)`` | the sentence with this word), every word, (V,).

        Unary chains count once, as in `Posterior.label_table`. NaN if the grammar cannot make that sentence.

        Raises:
            InputError: the position is not in the span, the span not in the sentence, or the label not the grammar's.
        """
        n = len(self._found)
        if not 0 <= begin <= self._at < end <= n:
            raise InputError(f"({begin}, {end}) is no span around position {self._at} of {n} tokens")
        if label not in self._found.labels:
            raise InputError(f"the grammar has no label {label!r}")
        label_tables = tables(self._found.pcfg.exact)
        number = label_tables.labels.index(label)
        states, once = label_tables.states[number], label_tables.once[number]
        around, power = self._carried(self._root, 0, n, begin, end)
        # weight of each state as the highest of its label over the span
        first = around[states] if once is None else np.maximum(around[states] @ once, 0.0)
        weights = np.zeros_like(around)
        weights[states] = first
        below, more = self._carried(weights, begin, end, self._at, self._at + 1)
        total, all_power = self._all
        joint = np.asarray(self._found.pcfg.exact.emission.T @ below, dtype=np.float64)
        shares = np.divide(joint, total, out=np.full(len(total), np.nan), where=total > 0.0)
        probs: FloatArray = np.clip(np.ldexp(shares, power + more - all_power), 0.0, 1.0)
        return probs

    @cached_property
    def _root(self) -> FloatArray:
        weights = np.zeros(len(self._found.pcfg.symbols))
        weights[self._found.pcfg.start] = 1.0
        return weights

    @cached_property
    def _all(self) -> tuple[FloatArray, int]:
        """P(the sentence with this word), every word, (V,), over a power of two."""
        leaf, power = self._carried(self._root, 0, len(self._found), self._at, self._at + 1)
        return np.asarray(self._found.pcfg.exact.emission.T @ leaf), power

    def _carried(self, weights: FloatArray, first: int, last: int, begin: int, end: int) -> tuple[FloatArray, int]:
        from truesource.evaluation.pairs._kernels.outside import outside_of_span

        posterior, exact = self._found, self._found.pcfg.exact
        closed, power = outside_of_span(
            weights, first, last, begin, end, posterior.chart, tables(exact).closure, exact.pairs
        )
        return closed, int(power)
