"""Charts of single sentences that are exact at any range of probabilities, but slower than batches."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from truesource.grammar._kernels.rules import WideLexicon, WidePairs, WideRows, WideSteps
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference._kernels import wide
from truesource.grammar.inference.batch import require_memory
from truesource.grammar.inference.rules import sparse_rows
from truesource.grammar.inference.tables import GrammarTables
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

LOG_UNIT = 960.0 * math.log(2.0)
BYTES = 16  #: bytes of one weight


class Weights(NamedTuple):
    """Weights ``m * 2^(960 e)``; see `truesource.grammar.inference._kernels.wide`."""

    m: FloatArray
    e: IntArray

    @classmethod
    def zeros(cls, *shape: int) -> Weights:
        """Make weights that are all zero."""
        return cls(np.zeros(shape), np.zeros(shape, np.int64))

    @classmethod
    def of_logs(cls, logs: FloatArray) -> Weights:
        """Convert natural logarithms; -inf is zero."""
        there = np.isfinite(logs)
        finite = np.where(there, logs, 0.0)
        e = np.round(finite / LOG_UNIT)
        return cls(np.where(there, np.exp(finite - e * LOG_UNIT), 0.0), np.where(there, e, 0.0).astype(np.int64))

    def logs(self) -> FloatArray:
        """Return natural logarithms, -inf at zero."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.m) + self.e * LOG_UNIT)


class WideCausal(NamedTuple):
    """One left-to-right pass over one sentence of n words, at any range."""

    log_conditional: FloatArray  #: (n,) ln P(word | its left context); -inf from the first impossible word on
    log_stop: FloatArray  #: (n+1,) ln P(end | first j words); -inf after an impossible word
    starts: FloatArray  #: (n+1, S) weight of each symbol starting after j words, given these


class WideCharts:
    """The wide-range charts of one grammar.

    Args:
        tables: tables of the grammar.
    """

    def __init__(self, tables: GrammarTables) -> None:
        self._tables, pcfg = tables, tables.pcfg
        pairs, lexicon = tables.pairs, tables.lexicon
        self._size = len(pcfg.symbols)
        self._lexicon = WideLexicon(lexicon.start, lexicon.parent, *Weights.of_logs(pcfg.lexical_logp))
        self._binary = Weights.of_logs(pcfg.binary_logp)  # the arrays of `PairRules` are in the order of the grammar
        self._pairs = WidePairs(*pairs[:-1], *self._binary)
        unary = np.full((self._size,) * 2, -np.inf)
        unary[pcfg.unary[:, 0], pcfg.unary[:, 1]] = pcfg.unary_logp
        self._unary = np.where(tables.mass > 0.0, unary, -np.inf)
        self._closure = self._star(self._unary, "unary closure")
        self._free: WideRows | None = None

    def _star(self, logs: FloatArray, what: str) -> WideRows:
        """Return the rows of ``(I - M)^-1`` from the logarithms of M."""
        weights = Weights.of_logs(logs)
        if not wide.star(*weights):
            raise InputError(
                f"the {what} of this grammar does not converge: some symbols rewrite to themselves forever"
            )
        rows = sparse_rows((weights.m > 0.0).astype(np.float64))
        at = np.repeat(np.arange(self._size), np.diff(rows.start)), rows.column
        return WideRows(rows.start, rows.column, weights.m[at], weights.e[at])

    def _left_corners(self) -> WideRows:
        if self._free is None:
            a, b, c = self._tables.pcfg.binary.T
            with np.errstate(divide="ignore"):
                steps = self._tables.pcfg.binary_logp + np.log(self._tables.mass)[c]
            logs = np.where((self._tables.mass > 0.0)[None, :], self._unary, -np.inf)
            np.logaddexp.at(logs, (a, b), np.where(self._tables.mass[b] > 0.0, steps, -np.inf))
            self._free = self._star(logs, "left-corner closure")
        return self._free

    def log_prob(self, words: Int32Array, allowed: BoolArray) -> float:
        """Return ln P(sentence) of ``words`` (n,) over derivations of ``allowed`` (spans,); -inf for none."""
        n, chart = len(words), self._inside(words, allowed)
        at = n * (n - 1) // 2, self._tables.pcfg.start
        return float(Weights(chart.m[at], chart.e[at]).logs())

    def _inside(self, words: Int32Array, allowed: BoolArray | None = None) -> Weights:
        n = len(words)
        require_memory(n, BYTES * n * (n + 1) // 2 * self._size)
        chart = Weights.zeros(n * (n + 1) // 2, self._size)
        for j in range(n):
            first = (j + 1) * j // 2
            here = np.ones(j + 1, np.bool_) if allowed is None else allowed[first : first + j + 1].copy()
            wide.inside_column(*chart, j, words[j], here, self._pairs, self._closure, self._lexicon)
        return chart

    def leaves(self, words: Int32Array) -> tuple[FloatArray, bool]:
        """Return ln of the outside weight of every preterminal position, unary chains above it included, (n, S).

        Also return whether the sentence, ``words`` (n,), -1 unknown, is possible.
        """
        n, start, chart = len(words), self._tables.pcfg.start, self._inside(words)
        leaves = Weights(*wide.outside_leaves(*chart, n, start, self._pairs, self._closure))
        return leaves.logs(), bool(chart.m[n * (n - 1) // 2, start] > 0.0)

    def causal(self, words: Int32Array, lengths: LengthRange | None = None) -> WideCausal:
        """Make one pass over ``words`` (n,), -1 unknown."""
        pcfg, n = self._tables.pcfg, len(words)
        high = 1 if lengths is None else lengths.high
        require_memory(n, BYTES * self._size * (n * (n + 1) // 2 + (n + 2) * high))
        if lengths is None:
            corners = WideSteps(np.zeros(0, np.int32), np.zeros(0, np.int32), *Weights.zeros(0, 1))
            chains, log_z = self._left_corners(), 0.0
        else:
            chains = self._closure
            corners, log_z = self._owed(lengths)
        chart, begun = Weights.zeros(n * (n + 1) // 2, self._size), Weights.zeros(n + 1, self._size, high)
        omega = Weights.zeros(self._size, high)
        omega.m[pcfg.start, 0] = 1.0
        conditional, stop = np.full(n, -np.inf), np.full(n + 1, -np.inf)
        starts = np.zeros((n + 1, self._size))
        before = log_z  # ln P(the first j words), times the probability of the range
        start, parent, lexm, lexe = self._lexicon
        for j in range(n + 1):
            room = 1 if lengths is None else max(high - j, 0)
            wide.spread_owed(*omega, corners, chains, room, begun.m[j], begun.e[j])
            low = 0 if lengths is None else max(lengths.low - j - 1, 0)
            here = np.array([wide.total(begun.m[j, a, low:room], begun.e[j, a, low:room]) for a in range(self._size)])
            allowed = Weights(here[:, 0].copy(), here[:, 1].astype(np.int64))
            starts[j] = np.exp(allowed.logs() - before)
            if j == n:
                break
            rules = slice(start[words[j]], start[words[j] + 1]) if words[j] >= 0 else slice(0, 0)
            which = parent[rules]
            mass = np.array(wide.dot(allowed.m[which], allowed.e[which], lexm[rules], lexe[rules]))
            joint = float(Weights(mass[0], mass[1]).logs())
            if joint == -math.inf:
                break
            conditional[j], before = joint - before, joint
            every = np.ones(j + 1, np.bool_)
            wide.inside_column(*chart, j, words[j], every, self._pairs, self._closure, self._lexicon)
            whole = (j + 1) * j // 2, pcfg.start
            if lengths is None or j + 1 in lengths:
                stop[j + 1] = float(Weights(chart.m[whole], chart.e[whole]).logs()) - before
            omega = Weights.zeros(self._size, high)
            rule = (np.ascontiguousarray(pcfg.binary[:, side]) for side in range(3))
            wide.advance(*chart, j + 1, *begun, *rule, *self._binary, *omega)
        return WideCausal(conditional, stop, starts)

    def _owed(self, lengths: LengthRange) -> tuple[WideSteps, float]:
        """Return left-corner steps with the mass of d tokens after them, and ln P(a length in the range)."""
        pcfg = self._tables.pcfg
        leaf = np.full(self._size, -np.inf)
        np.logaddexp.at(leaf, pcfg.lexical[:, 0], pcfg.lexical_logp)
        log_masses = wide.length_masses(lengths.high, *Weights.of_logs(leaf), self._pairs, self._closure)
        masses = Weights(*log_masses).logs()
        a, b, c = pcfg.binary.T
        # one step a rule: rules that share parent and left child need not be summed
        weights = Weights.of_logs(pcfg.binary_logp[:, None] + masses[: lengths.high, c].T)
        log_z = float(np.logaddexp.reduce(masses[lengths.low :, pcfg.start]))
        return WideSteps(np.ascontiguousarray(a), np.ascontiguousarray(b), *weights), log_z
