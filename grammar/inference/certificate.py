"""Certificate of a pass: which sentences lost no significant probability to a cap or an underflow."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from truesource.grammar._kernels.rules import CausalPass, CellPass
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.nonnegative_matrices import reachable
from truesource.grammar.inference.rules import left_corner_matrix, unary_matrix
from truesource.grammar.inference.tables import GrammarTables
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array

TOLERANCE = {"float64": 1e-12, "float32": 1e-5}  #: largest share of a probability that may be lost
LOWEST_LOG = -690.0  #: least log of a product that has all its digits in float64
CHUNK = 4096  #: words a block


@dataclass(frozen=True, eq=False)
class Certificate:
    """Checks passes of one grammar: which sentences lost no significant probability to a cap or an underflow.

    Charts add and multiply non-negative numbers, so a sentence can only lose. A product that underflows loses at most
    ``eta``, half the smallest subnormal number. Let ``s_t`` be the scale of column t, near ``1 / P(w_t | prefix)``. Let
    ``m_t`` be the largest probability that any symbol which can come next begins with ``w_t``: in any state, an
    analysis gives the words ``w_{j+1}..w_t`` at most the product ``m_{j+1} .. m_t``. So the loss up to word j grows
    by at most ``m_t s_t`` a word, and relative to the probability of the prefix::

        loss_{j+1} = loss_j m_{j+1} s_{j+1} + eta * operations_{j+1}

    Each operation is weighted by the symbol above it. Weights of symbols that start at word i sum to
    ``totals[i]``, and the rule probabilities of one symbol sum to 1. So operations on inside entries count ``totals``
    times the splits and rules of one symbol, and operations on starting symbols count once each. A capped entry may
    have lost anything; it matters if its symbol can start. A masked distribution excludes one word: the
    left-corner closure's largest row sum bounds the contexts to its right, and every capped entry matters.

    A probability of zero is correct if no product can have underflowed: the smallest entries and rules are too large.

    Args:
        tables: tables of the grammar.
        dtype: floating-point type of the charts.
    """

    tables: GrammarTables
    dtype: str
    _lowest_masses: dict[int, float] = field(default_factory=dict, init=False)  #: by the greatest length

    @property
    def tolerance(self) -> float:
        """Largest share of a probability that a certified sentence may have lost."""
        return TOLERANCE[self.dtype]

    @property
    def eta(self) -> float:
        """Half the smallest subnormal number, the most that an underflow loses (rounded up to it in float64)."""
        return float(np.finfo(np.float32).smallest_subnormal) / 2 if self.dtype == "float32" else 5e-324

    @cached_property
    def best(self) -> FloatArray:
        """``m``: the largest probability that a start symbol or right child begins with each word, (V,)."""
        pcfg = self.tables.pcfg
        rows = np.unique(np.append(pcfg.binary[:, 2], pcfg.start))
        closure, emission = self.tables.left_corner_closure[rows], self.tables.emission.tocsc()
        parts = [
            (emission[:, at : at + CHUNK].T @ closure.T).max(axis=1) for at in range(0, len(pcfg.vocabulary), CHUNK)
        ]
        return np.concatenate([np.zeros(0), *parts])

    @cached_property
    def _widest(self) -> tuple[int, int]:
        """Most operations above one symbol in one span, splits apart; operations on starting symbols at one word."""
        pcfg, size = self.tables.pcfg, len(self.tables.pcfg.symbols)
        rules = np.bincount(pcfg.binary[:, 0], minlength=size).max()
        chains = (self.tables.unary_closure > 0.0).sum(axis=1).max()
        words = np.bincount(pcfg.lexical[:, 0], minlength=1).max()
        return int(rules + chains + words + 2), len(pcfg.binary) + size * size

    def _growth(self, words: Int32Array, scales: FloatArray) -> FloatArray:
        """Return ``max(1, m_t s_t)``, (n, W)."""
        best = np.append(self.best, 0.0)[words]  # -1, an unknown word, indexes the last
        return np.maximum(best * scales, 1.0)

    def _added(self, run: CausalPass | CellPass, owed: int) -> FloatArray:
        """Return ``eta`` times the operations at each word, (n+1, W)."""
        n, size = len(run.scales), len(self.tables.pcfg.symbols)
        above, starting = self._widest
        symbols = np.cumsum(run.totals + 1.0, axis=0)  # 1 exceeds any loss of the totals themselves
        return self.eta * (symbols * (n + above) * owed + owed * owed * (n * size + starting))

    def causal(self, words: Int32Array, run: CausalPass | CellPass, lengths: LengthRange | None) -> BoolArray:
        """Return which sentences have correct conditional probabilities at every word, (W,)."""
        n, width = words.shape
        begun = np.ones((1, width), dtype=np.bool_)
        possible = np.logical_and.accumulate(np.concatenate([begun, run.conditional > 0.0]), axis=0)
        ends = run.stop[n] > 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.cumsum(np.concatenate([0.0 * begun, np.log(self._growth(words, run.scales))]), axis=0)
            added = np.log(self._added(run, 1 if lengths is None else lengths.high))
            loss = grown + np.logaddexp.accumulate(added - grown, axis=0)  # the recursion, in logs
            fine = ~run.capped[1] & ((loss <= math.log(self.tolerance)) | ~possible).all(axis=0)
            fine &= ~possible[-1] | ~ends | (loss[-1] <= math.log(self.tolerance) + np.log(run.stop[n]))
        for w in np.flatnonzero(fine & ~(possible[-1] & ends)).tolist():
            fine[w] = self._impossible(words[:, w], int(possible[1:, w].sum()), run, lengths, w)
        return np.asarray(fine)

    def _impossible(
        self, words: Int32Array, possible: int, run: CausalPass | CellPass, lengths: LengthRange | None, w: int
    ) -> bool:
        """Return True if the zero after ``possible`` words (n: at the end) is exact: nothing underflowed."""
        n = len(words)
        if n == 0 or (possible < n and words[possible] < 0):
            return True  # no sentence is empty, and none has an unknown word
        if possible == n and lengths is not None and n not in lengths:
            return True
        if self.dtype == "float32" or not self._sound:
            return False
        inside, begun = (math.log(least) if math.isfinite(least) else 0.0 for least in run.least(possible, w))
        rule = self._lowest_rule
        unary, corner = self._lowest_chains
        step, chain = 0.0, corner
        if lengths is not None:
            if lengths.high not in self._lowest_masses:
                self._lowest_masses[lengths.high] = _lowest(self.tables.length_masses(lengths.high))
            masses = self._lowest_masses[lengths.high]
            step, chain = min(begun + rule + masses, 2.0 * masses + rule), unary
        scale = float(np.log(run.scales[: possible + 1, w]).min())
        starting = min(begun + inside + rule, step) + chain
        return min(rule + 2.0 * inside + unary, starting, begun + rule, rule + scale) > LOWEST_LOG

    @cached_property
    def _lowest_chains(self) -> tuple[float, float]:
        return _lowest(self.tables.unary_closure), _lowest(self.tables.left_corner_closure)

    @cached_property
    def _lowest_rule(self) -> float:
        return min((float(logp.min()) for _, logp in self.tables.pcfg.tables() if len(logp)), default=0.0)

    @cached_property
    def _sound(self) -> bool:
        """True if no rule, and no entry of a closure, underflows."""
        tables, pcfg = self.tables, self.tables.pcfg
        if self._lowest_rule + min(_lowest(tables.mass), 0.0) < LOWEST_LOG:
            return False
        useful = tables.mass > 0.0
        corners = np.where(useful, left_corner_matrix(pcfg, tables.mass), 0.0)
        chains = np.where(useful, unary_matrix(pcfg), 0.0)
        return bool(
            ((tables.left_corner_closure > 0.0) == reachable(corners)).all()
            and ((tables.unary_closure > 0.0) == reachable(chains)).all()
        )

    def masked(self, words: Int32Array, run: CausalPass | CellPass, leaves: FloatArray) -> BoolArray:
        """Return the positions with a correct masked distribution, (n, W), from its outside weights (n, S, W).

        No entry of the outside chart may have been capped.
        """
        tables, pcfg, n = self.tables, self.tables.pcfg, len(words)
        operations = (
            n * n * (np.count_nonzero(tables.unary_closure) + 2 * n * (len(pcfg.binary) + len(tables.pairs.left)))
        )
        begins = float(tables.left_corner_closure.sum(axis=1).max())
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            logs = np.log(self._growth(words, run.scales))
            others = logs.sum(axis=0) - logs
            lost = np.exp(others) * begins * (self.eta * operations + self._added(run, 1).max(axis=0))
            observed = np.append(self.best, 0.0)[words] * run.scales  # the observed word's weight is stop[n] / scale
            fine = lost <= self.tolerance * np.einsum("s,isw->iw", tables.lexical_sums, leaves)
            fine &= (lost * observed <= self.tolerance * run.stop[n]) | (run.stop[n] == 0.0)
        return np.asarray(fine & ~run.capped[0])


def _lowest(values: FloatArray) -> float:
    """Return the logarithm of the smallest positive entry; 0 without one."""
    positive = values[values > 0.0]
    return float(np.log(positive.min())) if positive.size else 0.0
