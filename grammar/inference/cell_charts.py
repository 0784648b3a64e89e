"""Charts of single sentences that hold only nonzero cells."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from truesource.grammar._kernels.rules import (
    Begun,
    Branches,
    CellPass,
    CellRules,
    Cells,
    ColumnSums,
    OwedSteps,
    OwedWindow,
    Space,
    SparseRows,
    Waiting,
)
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.components import strong_components
from truesource.grammar.inference.other_words import OtherWords
from truesource.grammar.inference.rules import beginnings, extent, rule_groups, sparse_rows
from truesource.grammar.inference.tables import GrammarTables
from truesource.grammar.support.arrays import BoolArray, Int32Array

SHARE = 300  #: a sentence may need one in this many of the operations of a dense chart
MANY = 2000  #: operations a word above which no sentence is tried
DRAWN, DRAWN_WORDS = 16, 40  #: number of texts sampled to estimate operations, and the most words of each
CAP = 1e140  #: largest chart entry: its square is finite


class CellCharts:
    """Passes over sentences one by one, in float64.

    Whether a sentence is tried depends on the grammar and the number of words alone, so that its scores are the same to
    the last bit in any batch.

    Args:
        tables: tables of the grammar.
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
        """Return the number of operations that each of n words may take."""
        dense = len(self._tables.pairs.left) * n * n // 6 + len(self._tables.pcfg.binary) * n // 2
        return dense // SHARE

    def suit(self, n: int, lengths: LengthRange | None = None) -> bool:
        """Return True if passes over sentences of n words are worth trying, from the operations of sampled texts."""
        limit = self._limit(n)
        if self._least_rate > limit or self._rate > limit:
            return False
        if lengths is not None and lengths not in self._narrow:
            done = [self._passes(words, MANY, lengths).cells[0] >= 0 for words in self._drawn]
            self._narrow[lengths] = bool(np.mean(done) > 0.5)
        return lengths is None or self._narrow[lengths]

    @cached_property
    def _rate(self) -> float:
        """Mean number of operations a word in sampled texts."""
        runs = [self._passes(words, MANY) for words in self._drawn]
        rates = [np.inf if run.cells[0] < 0 else run.operations[0] / len(run.scales) for run in runs]
        return float(np.mean(rates)) if rates else math.inf

    @cached_property
    def _least_rate(self) -> float:
        """A lower bound of `_rate`: the operations over single words, counted without compiling a kernel."""
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
        """The first words of some sampled texts, (n, 1) each."""
        return [text.reshape(-1, 1) for text in beginnings(self._tables.pcfg, DRAWN, DRAWN_WORDS) if len(text)]

    def passes(
        self,
        words: Int32Array,
        lengths: LengthRange | None = None,
        *,
        outside: bool = False,
        others: OtherWords | None = None,
    ) -> CellPass:
        """Make a pass over each column of ``words`` (n, W), not certified.

        Args:
            words: -1 unknown.
            lengths: condition on this range.
            outside: also compute outside weights of preterminals.
            others: words that continue beginnings of the sentences in another way: further columns of the pass. A
                beginning and the word may take as many operations a word as the sentence.

        Returns:
            The pass; ``cells`` is -1 for columns with too many nonzero cells.
        """
        return self._passes(words, self._limit(len(words)), lengths, outside=outside, others=others)

    def _passes(
        self,
        words: Int32Array,
        limit: int,
        lengths: LengthRange | None = None,
        *,
        outside: bool = False,
        others: OtherWords | None = None,
    ) -> CellPass:
        from truesource.grammar.inference._kernels import cells

        rules, start = self._rules, self._tables.pcfg.start
        if lengths is None:
            window, corners = OwedWindow(0, 0, 1.0, True), self._corners
        else:
            window = OwedWindow(lengths.low, lengths.high, 1.0 / self._tables.range_mass(lengths), False)
            corners = rules.closure
        words = np.ascontiguousarray(words)  # one compiled version of the kernel
        (n, width), size = words.shape, len(self._tables.pcfg.symbols)
        others = OtherWords.of([]) if others is None else others
        first = np.searchsorted(others.column, np.arange(width + 1)).astype(np.int64)
        branches = Branches(first, others.after, others.word)
        most = min(limit * n, n * (n + 1) // 2 * size)  # cells of a sentence
        space = _space(n, size, 1 if window.free else window.high, most, most if outside else 0)
        run = _pass(n, width, len(branches.word), size, outside=outside)
        steps = self._owed(lengths)
        cells.passes(words, start, window, CAP, limit, steps, corners, rules, space, run, branches)
        return run

    def _owed(self, lengths: LengthRange | None) -> OwedSteps:
        """Return left-corner steps by parent, each with the masses of the tokens that it leaves owed."""
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
        pcfg = self._tables.pcfg
        steps = pcfg.unary[pcfg.unary[:, 0] != pcfg.unary[:, 1]]
        above, below = np.concatenate([steps, pcfg.binary[:, :2]]).T
        components = strong_components(len(pcfg.symbols), above, below)
        blocks = components.from_the_top()
        order = np.concatenate(blocks).astype(np.int32)
        loop = components.cyclic[components.number[[block[0] for block in blocks]]]
        return order, np.cumsum([0, *map(len, blocks)]).astype(np.int32), loop


def _chart(most: int) -> Cells:
    places = (np.empty(most, np.int32) for _ in range(5))
    begin, end, symbol, same_end, same_begin = places
    return Cells(begin, end, symbol, np.empty(most), same_end, same_begin)


def _space(n: int, size: int, owed: int, most: int, waiting: int) -> Space:
    """Return the work arrays for sentences of n words, ``size`` symbols, ``most`` cells, and additions that wait."""
    column = ColumnSums(np.zeros((n, size)), np.empty((n, size), np.int32), np.zeros(n, np.int32))
    begun = Begun(
        np.empty(((n + 1) * size, owed)),
        np.empty((n + 1) * size, np.int32),
        np.full((n + 1, size), -1, np.int32),
        np.zeros(n + 1, np.int64),
        np.empty((size, owed)),
        np.empty(size, np.int32),
        np.zeros(1, np.int64),
        np.zeros(size, np.bool_),
    )
    nothing = np.full((n + 1, size), -1, np.int32)
    before, at, symbol = (np.empty(waiting, np.int32) for _ in range(3))
    return Space(
        _chart(most),
        column,
        begun,
        nothing,
        nothing.copy(),
        np.zeros(size),
        np.empty(size, np.int32),
        Waiting(before, at, symbol, np.empty(waiting)),
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1, np.int64),
    )


def _pass(n: int, width: int, branches: int, size: int, *, outside: bool) -> CellPass:
    """Return the arrays of a pass over ``width`` sentences of n words, and some branches, before it is made."""
    every = width + branches
    return CellPass(
        np.zeros((n, every)),
        np.zeros((n + 1, every)),
        np.empty((width, n + 1, size)),
        np.ones((n, every)),
        np.zeros((n + 1, every)),
        np.zeros((3, every), np.bool_),
        np.full((2, n + 1, every), np.inf),
        np.full(every, -1, np.int64),
        np.zeros(every, np.int64),
        np.empty((width, n if outside else 0, size)),
        np.empty((branches, size)),
    )
