"""Charts of single sentences: for those of which few cells are not zero, and for what batches cannot do exactly.

`CellCharts` hold no cell which is zero. `Certificate` says which sentences of a pass lost nothing that matters to a cap
or an underflow. `WideCharts` are exact at any range of probabilities, and slower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from truesource.grammar._kernels.rules import (
    CausalPass,
    CellPass,
    CellRules,
    OwedSteps,
    OwedWindow,
    SparseRows,
    WideLexicon,
    WidePairs,
    WideRows,
    WideSteps,
)
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference._kernels import wide
from truesource.grammar.inference.batch import require_memory
from truesource.grammar.inference.nonnegative_matrices import reachable
from truesource.grammar.inference.rules import (
    beginnings,
    extent,
    left_corner_matrix,
    rule_groups,
    sparse_rows,
    unary_matrix,
)
from truesource.grammar.inference.tables import GrammarTables
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

SHARE = 300  #: of the operations of a chart without zeros, a sentence may need one in so many
MANY = 2000  #: operations a word, with which no sentence is worth a try
DRAWN, DRAWN_WORDS = 16, 40  #: texts by which a grammar is judged, and the most words of each
CAP = 1e140  #: most a chart entry holds: its square is finite
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}  #: share of a probability that may be lost
LOWEST_LOG = -690.0  #: of a product that has all its digits in float64
CHUNK = 4096  #: words a block
LOG_UNIT = 960.0 * math.log(2.0)
BYTES = 16  #: of one weight


class CellCharts:
    """Passes over sentences one by one, in float64.

    Whether a sentence is tried depends on the grammar and the number of words alone, so that its scores are the same to
    the last bit whatever they are computed with.

    Args:
        tables: of the grammar.
    """

    def __init__(self, tables: GrammarTables) -> None:
        self._tables = tables
        self._steps: dict[LengthRange, OwedSteps] = {}
        self._narrow: dict[LengthRange, bool] = {}

    @cached_property
    def _rules(self) -> CellRules:
        tables, pcfg = self._tables, self._tables.pcfg
        by_parent, by_left, by_right = (rule_groups(pcfg, *order) for order in ((0, 1), (1, 0), (2, 1)))
        chains = sparse_rows(tables.unary_closure.T)
        return CellRules(sparse_rows(tables.unary_closure), chains, by_parent, by_left, by_right, tables.lexicon)

    @cached_property
    def _corners(self) -> SparseRows:
        return sparse_rows(self._tables.left_corner_closure)

    def _limit(self, n: int) -> int:
        """Operations that each of n words may take."""
        dense = len(self._tables.pairs.left) * n * n // 6 + len(self._tables.pcfg.binary) * n // 2
        return dense // SHARE

    def suit(self, n: int, lengths: LengthRange | None = None) -> bool:
        """Say whether passes over sentences of n words are worth a try, by what drawn texts take."""
        limit = self._limit(n)
        if self._least_rate > limit or self._rate > limit:
            return False
        if lengths is not None and lengths not in self._narrow:
            done = [self._passes(words, MANY, lengths).cells[0] >= 0 for words in self._drawn]
            self._narrow[lengths] = bool(np.mean(done) > 0.5)
        return lengths is None or self._narrow[lengths]

    @cached_property
    def _rate(self) -> float:
        """Mean number of operations a word of drawn texts."""
        runs = [self._passes(words, MANY) for words in self._drawn]
        rates = [np.inf if run.cells[0] < 0 else run.operations[0] / len(run.scales) for run in runs]
        return float(np.mean(rates)) if rates else math.inf

    @cached_property
    def _least_rate(self) -> float:
        """A lower bound of `_rate`: the operations over single words, which no kernel need be compiled to count."""
        rules, groups = self._rules, np.diff(self._rules.by_right.group_start)
        operations = {}
        for word in np.unique(np.concatenate([np.zeros((0, 1), np.int32), *self._drawn])).tolist():
            tags = rules.lexicon.parent[slice(*rules.lexicon.start[word : word + 2])]
            above = [rules.chains.column[slice(*rules.chains.start[tag : tag + 2])] for tag in tags]
            operations[word] = int((1 + groups[np.unique(np.concatenate(above))]).sum())
        rates = [sum(operations[word] for word in text[:, 0].tolist()) / len(text) for text in self._drawn]
        return float(np.mean(rates)) if rates else math.inf

    @cached_property
    def _drawn(self) -> list[Int32Array]:
        """The first words of some texts of the grammar, (n, 1) each."""
        return [text.reshape(-1, 1) for text in beginnings(self._tables.pcfg, DRAWN, DRAWN_WORDS) if len(text)]

    def passes(self, words: Int32Array, lengths: LengthRange | None = None, *, outside: bool = False) -> CellPass:
        """A pass over each column of ``words`` (n, W), not certified.

        Args:
            words: -1 unknown.
            lengths: condition on this range.
            outside: outside weights of preterminals, too.

        Returns:
            The pass; ``cells`` is -1 for the sentences of which too many cells are not zero.
        """
        return self._passes(words, self._limit(len(words)), lengths, outside=outside)

    def _passes(
        self, words: Int32Array, limit: int, lengths: LengthRange | None = None, *, outside: bool = False
    ) -> CellPass:
        from truesource.grammar.inference._kernels import cells

        rules, start = self._rules, self._tables.pcfg.start
        if lengths is None:
            window, corners = OwedWindow(0, 0, 1.0, True), self._corners
        else:
            window = OwedWindow(lengths.low, lengths.high, 1.0 / self._tables.range_mass(lengths), False)
            corners = rules.closure
        words = np.ascontiguousarray(words)  # one form of the kernel
        result: CellPass = cells.passes(words, start, window, CAP, limit, outside, self._owed(lengths), corners, rules)
        return result

    def _owed(self, lengths: LengthRange | None) -> OwedSteps:
        """Left-corner steps by what they start from, each with the masses of the tokens that it leaves owed."""
        size = len(self._tables.pcfg.symbols)
        if lengths is None:
            none = np.zeros(0, np.int32)
            return OwedSteps(np.zeros(size + 1, np.int32), none, np.zeros((0, 1)), none, none, none, none, none > 0)
        if lengths not in self._steps:
            start, parent, mass = self._tables.owed_corners(lengths.high)
            order = np.argsort(parent, kind="stable")
            child = np.repeat(np.arange(size, dtype=np.int32), np.diff(start))[order]
            starts = np.searchsorted(parent[order], np.arange(size + 1)).astype(np.int32)
            first, last = (place.astype(np.int32) for place in extent(mass[order]))
            self._steps[lengths] = OwedSteps(starts, child, mass[order], first, last, *self._left_corner_blocks)
        return self._steps[lengths]

    @cached_property
    def _left_corner_blocks(self) -> tuple[Int32Array, Int32Array, BoolArray]:
        """The order, blocks and loops of `OwedSteps`."""
        import networkx as nx

        pcfg = self._tables.pcfg
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(len(pcfg.symbols)))
        graph.add_edges_from(pcfg.unary[pcfg.unary[:, 0] != pcfg.unary[:, 1]].tolist())
        graph.add_edges_from(pcfg.binary[:, :2].tolist())
        condensed = nx.condensation(graph)
        blocks = [sorted(condensed.nodes[k]["members"]) for k in nx.topological_sort(condensed)]
        order = np.array([symbol for block in blocks for symbol in block], dtype=np.int32)
        loop = np.array([len(block) > 1 or graph.has_edge(block[0], block[0]) for block in blocks], dtype=np.bool_)
        return order, np.cumsum([0, *map(len, blocks)]).astype(np.int32), loop


@dataclass(frozen=True, eq=False)
class Certificate:
    """Certifies passes of one grammar: which sentences lost nothing that matters to a cap or an underflow.

    Charts add and multiply non-negative numbers, so a sentence can only lose. A product that underflows loses at most
    ``eta``, half the smallest subnormal number. Let ``s_t`` be the scale of column t, near ``1 / P(w_t | prefix)``. Let
    ``m_t`` be the largest probability that any symbol which can come next begins with ``w_t``: whatever its state, an
    analysis gives the words ``w_{j+1}..w_t`` at most the product ``m_{j+1} .. m_t``. So what is lost up to word j grows
    by at most ``m_t s_t`` a word, and relative to the probability of the prefix::

        loss_{j+1} = loss_j m_{j+1} s_{j+1} + eta * operations_{j+1}

    Each operation counts with the weight of the symbol above it. Weights of symbols that start at word i sum to
    ``totals[i]``, and the rule probabilities of one symbol sum to 1. So operations on inside entries count ``totals``
    times the splits and rules of one symbol, and operations on starting symbols count once each. A capped entry may
    have lost anything; it matters where its symbol can start. A masked distribution leaves out one word: the
    left-corner closure's largest row sum bounds the contexts to its right, and every capped entry matters.

    A probability of zero is right where no product can have underflowed: the smallest entries and rules are too large.

    Args:
        tables: of the grammar.
        dtype: name of the charts' type.
    """

    tables: GrammarTables
    dtype: str
    _lowest_masses: dict[int, float] = field(default_factory=dict, init=False)  #: by the longest length

    @property
    def tolerance(self) -> float:
        """Largest share of a probability that a certified sentence may have lost."""
        return TOLERANCE[self.dtype]

    @property
    def eta(self) -> float:
        """Half the smallest subnormal number, the most that an underflow loses (in float64 rounded up to it)."""
        return float(np.finfo(np.float32).smallest_subnormal) / 2 if self.dtype == "float32" else 5e-324

    @cached_property
    def best(self) -> FloatArray:
        """``m``: the largest probability that a start symbol or right child begins with each word, (V,)."""
        pcfg = self.tables.pcfg
        rows = np.unique(np.append(pcfg.binary[:, 2], pcfg.start))
        closure, emission = self.tables.left_corner_closure[rows], self.tables.emission.tocsc()
        parts = [
            (emission[:, at : at + CHUNK].T @ closure.T).max(axis=1) for at in range(0, len(pcfg.terminals), CHUNK)
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
        """``max(1, m_t s_t)``, (n, W)."""
        best = np.append(self.best, 0.0)[words]  # -1, an unknown word, reads the last
        return np.maximum(best * scales, 1.0)

    def _added(self, run: CausalPass | CellPass, owed: int) -> FloatArray:
        """``eta`` times the operations at each word, (n+1, W)."""
        n, size = len(run.scales), len(self.tables.pcfg.symbols)
        above, starting = self._widest
        symbols = np.cumsum(run.totals + 1.0, axis=0)  # 1: more than what the totals themselves may have lost
        return self.eta * (symbols * (n + above) * owed + owed * owed * (n * size + starting))

    def causal(self, words: Int32Array, run: CausalPass | CellPass, lengths: LengthRange | None) -> BoolArray:
        """Which sentences have every conditional probability right, (W,)."""
        n, width = words.shape
        begun = np.ones((1, width), dtype=np.bool_)
        possible = np.logical_and.accumulate(np.concatenate([begun, run.conditional > 0.0]), axis=0)
        ends = run.stop[n] > 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.cumsum(np.concatenate([0.0 * begun, np.log(self._growth(words, run.scales))]), axis=0)
            added = np.log(self._added(run, 1 if lengths is None else lengths.high))
            loss = grown + np.logaddexp.accumulate(added - grown, axis=0)  # of the recursion, in logs
            fine = ~run.capped[1] & ((loss <= math.log(self.tolerance)) | ~possible).all(axis=0)
            fine &= ~possible[-1] | ~ends | (loss[-1] <= math.log(self.tolerance) + np.log(run.stop[n]))
        for w in np.flatnonzero(fine & ~(possible[-1] & ends)).tolist():
            fine[w] = self._impossible(words[:, w], int(possible[1:, w].sum()), run, lengths, w)
        return np.asarray(fine)

    def _impossible(
        self, words: Int32Array, known: int, run: CausalPass | CellPass, lengths: LengthRange | None, w: int
    ) -> bool:
        """Say whether the zero after ``known`` possible words (n: at the end) is one: nothing can have underflowed."""
        n = len(words)
        if n == 0 or (known < n and words[known] < 0):
            return True  # no sentence is empty, and none has an unknown word
        if known == n and lengths is not None and n not in lengths:
            return True
        if self.dtype == "float32" or not self._sound:
            return False
        inside, begun = (math.log(least) if math.isfinite(least) else 0.0 for least in run.least(known, w))
        rule = self._lowest_rule
        unary, corner = self._lowest_chains
        step, chain = 0.0, corner
        if lengths is not None:
            if lengths.high not in self._lowest_masses:
                self._lowest_masses[lengths.high] = _lowest(self.tables.length_masses(lengths.high))
            masses = self._lowest_masses[lengths.high]
            step, chain = min(begun + rule + masses, 2.0 * masses + rule), unary
        scale = float(np.log(run.scales[: known + 1, w]).min())
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
        """Say whether no rule, and no entry of a closure, underflows."""
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
        """At which positions the masked distribution is right, (n, W), from its outside weights (n, S, W).

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
            own = np.append(self.best, 0.0)[words] * run.scales  # the observed word's weight is stop[n] / scale
            fine = lost <= self.tolerance * np.einsum("s,isw->iw", tables.lexical_sums, leaves)
            fine &= (lost * own <= self.tolerance * run.stop[n]) | (run.stop[n] == 0.0)
        return np.asarray(fine & ~run.capped[0])


def _lowest(values: FloatArray) -> float:
    """Logarithm of the smallest positive entry; 0 where there is none."""
    positive = values[values > 0.0]
    return float(np.log(positive.min())) if positive.size else 0.0


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
        """From natural logarithms, -inf for zero."""
        there = np.isfinite(logs)
        finite = np.where(there, logs, 0.0)
        e = np.round(finite / LOG_UNIT)
        return cls(np.where(there, np.exp(finite - e * LOG_UNIT), 0.0), np.where(there, e, 0.0).astype(np.int64))

    def logs(self) -> FloatArray:
        """Natural logarithms, -inf at zero."""
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
        tables: of the grammar.
    """

    def __init__(self, tables: GrammarTables) -> None:
        self._tables, pcfg = tables, tables.pcfg
        pairs, lexicon = tables.pairs, tables.lexicon
        self._size = len(pcfg.symbols)
        self._lexicon = WideLexicon(lexicon.start, lexicon.parent, *Weights.of_logs(pcfg.lexical_logp))
        self._binary = Weights.of_logs(pcfg.binary_logp)  # the arrays of `PairRules` have the order of the grammar
        self._pairs = WidePairs(*pairs[:-1], *self._binary)
        unary = np.full((self._size,) * 2, -np.inf)
        unary[pcfg.unary[:, 0], pcfg.unary[:, 1]] = pcfg.unary_logp
        self._unary = np.where(tables.mass > 0.0, unary, -np.inf)
        self._closure = self._star(self._unary, "unary closure")
        self._free: WideRows | None = None

    def _star(self, logs: FloatArray, what: str) -> WideRows:
        """Rows of ``(I - M)^-1``, of the logarithms of M."""
        weights = Weights.of_logs(logs)
        if not wide.star(*weights):
            raise InputError(
                f"the {what} of this grammar does not converge: some symbols rewrite to themselves for ever"
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
        """Ln P(sentence) over derivations whose spans are ``allowed`` (spans,), ``words`` (n,); -inf without any."""
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
        """Ln of the outside weight of every preterminal position, unary chains above it included, (n, S).

        Also whether the grammar can make the sentence, ``words`` (n,), -1 unknown.
        """
        n, start, chart = len(words), self._tables.pcfg.start, self._inside(words)
        leaves = Weights(*wide.outside_leaves(*chart, n, start, self._pairs, self._closure))
        return leaves.logs(), bool(chart.m[n * (n - 1) // 2, start] > 0.0)

    def causal(self, words: Int32Array, lengths: LengthRange | None = None) -> WideCausal:
        """One pass over ``words`` (n,), -1 unknown."""
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
        """Left-corner steps with the mass of d tokens after them, and ln P(a length in the range)."""
        pcfg = self._tables.pcfg
        leaf = np.full(self._size, -np.inf)
        np.logaddexp.at(leaf, pcfg.lexical[:, 0], pcfg.lexical_logp)
        log_masses = wide.length_masses(lengths.high, *Weights.of_logs(leaf), self._pairs, self._closure)
        masses = Weights(*log_masses).logs()
        a, b, c = pcfg.binary.T
        # one step for each rule: rules that share parent and left child need not be summed
        weights = Weights.of_logs(pcfg.binary_logp[:, None] + masses[: lengths.high, c].T)
        log_z = float(np.logaddexp.reduce(masses[lengths.low :, pcfg.start]))
        return WideSteps(np.ascontiguousarray(a), np.ascontiguousarray(b), *weights), log_z
