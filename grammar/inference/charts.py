"""Run the kernels on batches: charts of one grammar, or forward-backward over the automaton of a linear grammar.

With its unary rules closed, a right-linear grammar is an automaton that reads a token at every rule ``A -> tag spine``
from A to the spine, and ends with a lexical rule; a left-linear grammar begins with a lexical rule and reads a token at
every rule ``A -> spine tag`` from the spine to A.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import block_diag, csc_matrix, csr_matrix

from truesource.grammar._kernels.rules import (
    CausalPass,
    CellPass,
    ChartRules,
    LinearAutomaton,
    SparseRows,
    StateMoves,
    WideLexicon,
    WideRows,
    WideTable,
)
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference._kernels import causal, linear
from truesource.grammar.inference._kernels import open as open_kernels
from truesource.grammar.inference.batch import Batch, encoded_batches
from truesource.grammar.inference.cell_charts import CAP, CellCharts
from truesource.grammar.inference.certificate import Certificate
from truesource.grammar.inference.other_words import AfterOthers, OtherWords, after_others
from truesource.grammar.inference.rules import rule_groups, sparse_rows
from truesource.grammar.inference.tables import GrammarTables, LinearRules
from truesource.grammar.inference.wide_charts import Weights, WideCharts
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

HIGHEST_LOG = 600.0  #: largest log of a float64 weight that can still be multiplied
LONGEST_FLOAT32 = 30  #: words; few longer sentences of a treebank grammar can be certified in float32
OWED_BLOCK = 3  #: counts of tokens owed processed together, so that the sums stay in the cache
CAPS = {np.dtype(np.float64): CAP, np.dtype(np.float32): 1e18}  #: largest chart entry: its square is finite
SMALLEST_MASS = {np.dtype(np.float64): 1e-290, np.dtype(np.float32): 1e-12}  #: of a length range
ENDLESS = 2**62  #: more tokens than any sentence has


class CausalCharts(NamedTuple):
    """Certified result of one left-to-right pass over W sentences of n words."""

    log_conditional: FloatArray  #: (n, W) ln P(word | its left context); -inf from an impossible word on
    log_stop: FloatArray  #: (n+1, W) ln P(end | first j words)
    starts: FloatArray  #: (n+1-first, S, W) weight of each symbol starting after j words, given these, j from first on

    @property
    def whole(self) -> BoolArray:
        """Sentences of positive probability (and an allowed length), (W,)."""
        return np.asarray(np.isfinite(self.log_conditional).all(axis=0) & np.isfinite(self.log_stop[-1]))


class Leaves(NamedTuple):
    """Outside weights of the preterminal positions of W sentences of n words, unary chains above them included."""

    weights: FloatArray  #: (n, S, W), each position of a sentence in a scale of its own
    whole: BoolArray  #: (W,) whether the sentence is possible
    logs: dict[int, FloatArray]  #: columns beyond the range of one scale, (n, S) nats

    def put(self, columns: IntArray, again: Leaves) -> None:
        """Replace ``columns`` by recomputed values."""
        self.weights[:, :, columns], self.whole[columns] = again.weights, again.whole
        self.logs.update((int(columns[w]), logs) for w, logs in again.logs.items())


class Charts:
    """The chart kernels for one grammar and one precision.

    Args:
        tables: tables of the grammar.
        wide: returns the charts for weights beyond float64.
        dtype: float64 or float32, of charts; probabilities per token are always float64.
        double: the charts in float64, for weights beyond float32.
    """

    def __init__(
        self,
        tables: GrammarTables,
        wide: Callable[[], WideCharts],
        dtype: DTypeLike = np.float64,
        *,
        double: Charts | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self._tables, self._wide, self._double = tables, wide, double or self
        self._cells: CellCharts = double._cells if double else CellCharts(tables)
        self._start = tables.pcfg.start
        pairs, groups, lexicon = tables.pairs, rule_groups(tables.pcfg, 0, 1), tables.lexicon
        self._rules = ChartRules(
            self._rows(sparse_rows(tables.unary_closure)),
            pairs._replace(prob=self._cast(pairs.prob)),
            groups._replace(prob=self._cast(groups.prob)),
            lexicon._replace(prob=self._cast(lexicon.prob)),
        )
        self._cap = self._cast(np.array(CAPS[self.dtype]))[()]
        self._certificate = Certificate(tables, self.dtype.name)
        self._free: SparseRows | None = None
        self._corners: dict[LengthRange, SparseRows] = {}

    def _cast(self, values: FloatArray) -> FloatArray:
        return values.astype(self.dtype)

    def _rows(self, rows: SparseRows) -> SparseRows:
        return rows._replace(value=self._cast(rows.value))

    def bytes_per_sentence(self, n: int, owed: int, outside: bool) -> int:
        """Return the memory that the charts of one sentence of n words take."""
        states, spans = len(self._tables.pcfg.symbols), n * (n + 1) // 2
        cells = spans * (2 if outside else 1) + (n + 1) * (owed + 1) + 2 * owed + n
        return self.dtype.itemsize * states * cells

    def batches(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, outside: bool = False
    ) -> list[Batch]:
        """Return sentences as batches whose charts fit the memory budget: see `truesource.grammar.inference.batch`."""
        owed = 1 if lengths is None else lengths.high
        return encoded_batches(self._tables.pcfg.encode, sentences, lambda n: self.bytes_per_sentence(n, owed, outside))

    def causal(self, words: Int32Array, lengths: LengthRange | None = None, *, first: int = 0) -> CausalCharts:
        """Make one pass over ``words`` (n, W), -1 unknown; columns that are not certified are recomputed.

        Sentences with few nonzero cells are computed cell by cell in float64, the others in batches. Columns beyond
        float32 are recomputed in float64, and columns beyond float64 in `truesource.grammar.inference.wide_charts`.
        ``starts`` are given from position ``first`` on.
        """
        return self.causal_beside(words, OtherWords.of([]), lengths, first=first)[0]

    def causal_beside(
        self, words: Int32Array, others: OtherWords, lengths: LengthRange | None = None, *, first: int = 0
    ) -> tuple[CausalCharts, AfterOthers]:
        """Make the pass of `causal`, and continue beginnings of sentences with other words.

        A sentence that is computed cell by cell shares its beginning with them; others are left out.

        Args:
            words: (n, W), -1 unknown.
            others: the other words.
            lengths: condition on this range.
            first: position from which ``starts`` are given.

        Returns:
            The pass, and results for some of the other words: for which, depends on their sentence alone.
        """
        result, after = self._causal(words, lengths, others)
        return result._replace(starts=result.starts[first:]), after

    def _causal(
        self, words: Int32Array, lengths: LengthRange | None, others: OtherWords
    ) -> tuple[CausalCharts, AfterOthers]:
        if lengths is not None:
            self._weight(lengths)
        none, width = AfterOthers.none(len(self._tables.pcfg.symbols)), words.shape[1]
        if not self._cells.suit(len(words), lengths):
            return self._causal_batch(words, lengths), none
        taken = np.flatnonzero(others.after < len(words))
        others = others.take(taken)
        every = self._cells.passes(words, lengths, others=others)
        run = every.columns(slice(width))
        done = run.cells >= 0
        if not done.any():
            return self._causal_batch(words, lengths), none
        with np.errstate(divide="ignore"):
            result = CausalCharts(np.log(run.conditional), np.log(run.stop), np.moveaxis(run.starts, 0, -1))
        right = self._double._certificate.causal(words, run, lengths)
        self._causal_wide(words, lengths, result, np.flatnonzero(done & ~right))
        if not done.all():
            left = np.flatnonzero(~done)
            _put(result, left, self._causal_batch(np.ascontiguousarray(words[:, left]), lengths))
        after = after_others(every, words, others, partial(self._double._certificate.causal, lengths=lengths))
        return result, after._replace(number=taken[after.number])

    def _causal_batch(self, words: Int32Array, lengths: LengthRange | None) -> CausalCharts:
        """Make the pass of `causal` over all columns at once."""
        if self._too_long(words):
            return self._double._causal_batch(words, lengths)
        run = self._run(words, lengths)
        with np.errstate(divide="ignore"):
            result = CausalCharts(np.log(run.conditional), np.log(run.stop), run.starts)
        left = np.flatnonzero(~self._certificate.causal(words, run, lengths))
        if left.size and self.dtype == np.float32:
            result = result._replace(starts=run.starts.astype(np.float64))
            _put(result, left, self._double._causal_batch(np.ascontiguousarray(words[:, left]), lengths))
        else:
            self._causal_wide(words, lengths, result, left)
        return result

    def _causal_wide(self, words: Int32Array, lengths: LengthRange | None, run: CausalCharts, left: IntArray) -> None:
        """Recompute columns ``left`` of ``run``, at any range."""
        for w in left:
            for array, column in zip(run, self._wide().causal(words[:, w], lengths), strict=True):
                array[..., w] = column

    def _too_long(self, words: Int32Array) -> bool:
        """Return True if the sentences are too long to try float32."""
        return self.dtype == np.float32 and len(words) > LONGEST_FLOAT32

    def _run(self, words: Int32Array, lengths: LengthRange | None) -> CausalPass:
        """Run the kernel; the result is not certified."""
        if lengths is None:
            if self._free is None:
                self._free = self._rows(sparse_rows(self._tables.left_corner_closure))
            free: CausalPass = causal.free(words, self._start, self._cap, self._free, self._rules)
            return free
        weight, corners = self._conditioned(lengths)
        conditioned: CausalPass = causal.conditioned(
            words, self._start, lengths.low, lengths.high, weight, self._cap, OWED_BLOCK, corners, self._rules
        )
        return conditioned

    def _conditioned(self, lengths: LengthRange) -> tuple[float, SparseRows]:
        """Return ``1 / Z``, and the left-corner steps with the mass of d tokens owed after them."""
        if lengths not in self._corners:
            self._corners[lengths] = self._rows(self._tables.owed_corners(lengths.high))
        return self._weight(lengths), self._corners[lengths]

    def _weight(self, lengths: LengthRange) -> float:
        """Return ``1 / Z``.

        Raises:
            InputError: Z is zero, or too small.
        """
        z = self._tables.range_mass(lengths)
        if z < SMALLEST_MASS[self.dtype]:
            raise InputError(
                f"a length in {lengths} has probability {z:.3g}, too small for exact scores"
                + (" in float32" if self.dtype == np.float32 else "")
                + "; choose another range"
            )
        return 1.0 / z

    def open_constituents(
        self, words: Int32Array, lengths: LengthRange | None, label: IntArray, n_labels: int
    ) -> tuple[FloatArray, BoolArray]:
        """Return expected open constituents by label after each of ``words`` (n, W), and which are right, (W,).

        Args:
            words: -1 unknown.
            lengths: condition on this range.
            label: (S,) label of each symbol, -1 if it is not counted.
            n_labels: number of labels.

        Returns:
            (n, n_labels, W), relative to the probability of the words so far; and whether nothing under- or overflowed
            in float64.
        """
        run, rules = self._run(words, lengths), self._rules
        part = (run.inside, run.present, run.scales, run.begun)
        if lengths is None:
            assert self._free is not None
            counts = open_kernels.free(words, *part, self._free, rules, label, n_labels)
        else:
            _, corners = self._conditioned(lengths)
            low, high = lengths.low, lengths.high
            counts = open_kernels.conditioned(words, low, high, *part, corners, rules, label, n_labels)
        return counts, self._certificate.causal(words, run, lengths)

    def growth(self, words: Int32Array, lengths: LengthRange | None = None, *, outside: bool = False) -> int:
        """Return the exponent of the length in the time for sentences such as ``words`` (n, W)."""
        if not self._cells.suit(len(words), lengths):
            return 3
        return 1 if (self._cells.passes(words, lengths, outside=outside).cells >= 0).all() else 3

    def trial(self, words: Int32Array, lengths: LengthRange | None = None, *, outside: bool = False) -> None:
        """Fill the charts of ``words`` (n, W) and drop them, to measure the time of scoring such sentences."""
        if self.growth(words, lengths, outside=outside) == 1:
            return
        run = self._run(words, lengths)
        if outside:
            self._outside(run, len(words))

    def _outside(self, run: CausalPass, n: int) -> tuple[FloatArray, BoolArray]:
        """Return outside weights of the preterminals (n, S, W), not certified, and which had a capped entry (W,)."""
        weights, capped = causal.outside_leaves(
            run.inside, run.present, n, self._start, self._cap, self._rules.closure, self._rules.pairs
        )
        return weights, capped

    def leaves(self, words: Int32Array, *, whole_only: bool = False) -> Leaves:
        """Return outside weights of every preterminal position of ``words`` (n, W), certified as in `causal`.

        Args:
            words: -1 unknown.
            whole_only: weights of impossible sentences may be undefined.
        """
        if not self._cells.suit(len(words)):
            return self._leaves_batch(words, whole_only)
        run = self._cells.passes(words, outside=True)
        done = run.cells >= 0
        if not done.any():
            return self._leaves_batch(words, whole_only)
        result = Leaves(np.moveaxis(run.leaves, 0, -1), _whole(run), {})
        right = self._double._certified(words, run, result, run.capped[2], whole_only)
        self._leaves_wide(words, result, np.flatnonzero(done & ~right))
        if not done.all():
            left = np.flatnonzero(~done)
            result.put(left, self._leaves_batch(np.ascontiguousarray(words[:, left]), whole_only))
        return result

    def _leaves_batch(self, words: Int32Array, whole_only: bool) -> Leaves:
        """Compute `leaves` for all columns at once."""
        if self._too_long(words):
            return self._double._leaves_batch(words, whole_only)
        run = self._run(words, None)
        weights, capped = self._outside(run, len(words))
        result = Leaves(weights, _whole(run), {})
        left = np.flatnonzero(~self._certified(words, run, result, capped, whole_only))
        if left.size and self.dtype == np.float32:
            result = result._replace(weights=weights.astype(np.float64))
            result.put(left, self._double._leaves_batch(np.ascontiguousarray(words[:, left]), whole_only))
        else:
            self._leaves_wide(words, result, left)
        return result

    def _certified(
        self, words: Int32Array, run: CausalPass | CellPass, leaves: Leaves, capped: BoolArray, whole_only: bool
    ) -> BoolArray:
        """Return which columns of ``leaves`` are right, (W,); ``capped`` (W,) had a capped outside weight."""
        unknown = words < 0
        others = unknown.sum(axis=0) - unknown > 0  # another word is unknown: no word fits, whatever the charts say
        masked = (~capped & (self._certificate.masked(words, run, leaves.weights) | others)).all(axis=0)
        right: BoolArray = self._certificate.causal(words, run, None) & (masked | (whole_only & ~leaves.whole))
        return right

    def _leaves_wide(self, words: Int32Array, leaves: Leaves, left: IntArray) -> None:
        """Recompute columns ``left`` of ``leaves``, at any range."""
        for w in left.tolist():
            logs, leaves.whole[w] = self._wide().leaves(words[:, w])
            totals = np.logaddexp.reduce(logs + self._tables.log_lexical_sums, axis=1)
            shift = np.maximum(totals, logs.max(axis=1) - HIGHEST_LOG)
            leaves.weights[:, :, w] = np.exp(logs - np.where(np.isfinite(shift), shift, 0.0)[:, None])
            leaves.logs[w] = logs


def _whole(run: CausalPass | CellPass) -> BoolArray:
    """Return which sentences are possible, (W,), according to the charts."""
    return np.asarray((run.conditional > 0.0).all(axis=0) & (run.stop[-1] > 0.0))


def _put(charts: CausalCharts, columns: IntArray, again: CausalCharts) -> None:
    """Replace ``columns`` by recomputed values."""
    for array, values in zip(charts, again, strict=True):
        array[..., columns] = values


class LinearCharts:
    """The methods of `truesource.grammar.inference.charts.Charts` for a linear grammar, in time linear in the length.

    A forward vector holds the weight of the words so far by state, a backward vector the weight of the words to come;
    see `truesource.grammar.inference._kernels.linear`. Weights have no limits, so nothing needs a certificate.

    Args:
        tables: tables of the grammar.
        rules: its rules as a linear grammar.
    """

    def __init__(self, tables: GrammarTables, rules: LinearRules) -> None:
        self._tables, self._rules = tables, rules
        self._automaton = automaton(rules)
        self._lexicon = _lexicon(tables.emission.tocsc())
        after = rules.mass if rules.side == "right" else rules.above
        self._free = WideTable(*_weights(np.append(after, 1.0)[None, :]))
        self._given: dict[LengthRange, WideTable] = {}

    def bytes_per_sentence(self, n: int, owed: int, outside: bool) -> int:
        """Return the most memory that one sentence of n words takes, bytes."""
        cells = 8 + 20 * outside
        return n * cells * len(self._tables.pcfg.symbols)

    def batches(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, outside: bool = False
    ) -> list[Batch]:
        """Return sentences as batches that fit the memory budget: see `truesource.grammar.inference.batch`."""
        return encoded_batches(self._tables.pcfg.encode, sentences, lambda n: self.bytes_per_sentence(n, 1, outside))

    def causal(self, words: Int32Array, lengths: LengthRange | None = None, *, first: int = 0) -> CausalCharts:
        """Make one pass over ``words`` (n, W), -1 unknown; ``starts`` are given from position ``first`` on."""
        low, high = (1, ENDLESS) if lengths is None else (lengths.low, lengths.high)
        future = self._free if lengths is None else self._conditioned(lengths)
        return CausalCharts(*linear.causal(words, low, high, first, future, self._lexicon, self._automaton))

    def causal_beside(
        self, words: Int32Array, _: OtherWords, lengths: LengthRange | None = None, *, first: int = 0
    ) -> tuple[CausalCharts, AfterOthers]:
        """Make the pass of `causal`, and leave other words out."""
        return self.causal(words, lengths, first=first), AfterOthers.none(len(self._tables.pcfg.symbols))

    def _conditioned(self, lengths: LengthRange) -> WideTable:
        """Return the weight of all paths to a length of the range, by number of tokens read and state."""
        if lengths not in self._given:
            self._tables.range_mass(lengths)  # raises if no sentence has such a length
            self._given[lengths] = linear.futures(lengths.low, lengths.high, *self._any(None), self._automaton)
        return self._given[lengths]

    def _any(self, lexical: csr_matrix[np.float64] | None) -> Weights:
        """Return weights of every tag for any word, (2S,), by P(word | symbol) or else by ``lexical`` (S, V)."""
        sums = self._rules.lexical_sums if lexical is None else np.asarray(lexical.sum(axis=1)).ravel()
        return _weights(np.concatenate([self._rules.unary_closure @ sums, sums]))

    def growth(self, words: Int32Array, lengths: LengthRange | None = None, *, outside: bool = False) -> int:
        """Return the exponent of the length in the time for sentences such as ``words`` (n, W)."""
        return 1

    def trial(self, words: Int32Array, lengths: LengthRange | None = None, *, outside: bool = False) -> None:
        """Score ``words`` (n, W) and drop the result, to measure the time."""
        self.causal(words, lengths, first=len(words) + 1)
        if outside:
            self.masked(words)

    def leaves(self, words: Int32Array, *, whole_only: bool = False) -> Leaves:
        """Return outside weights of every preterminal position of ``words`` (n, W), -1 unknown.

        With ``whole_only`` weights of impossible sentences are undefined.
        """
        weights, whole, apart = linear.leaves(words, False, self._lexicon, self._automaton)
        result = Leaves(weights, whole, {})
        for w in np.flatnonzero(apart & (whole | (not whole_only))).tolist():
            column = np.ascontiguousarray(words[:, w : w + 1])
            result.logs[w] = linear.leaves(column, True, self._lexicon, self._automaton)[0][:, :, 0]
        return result

    def masked(self, words: Int32Array, lexical: csr_matrix[np.float64] | None = None) -> FloatArray:
        """Return ln P(word | all others and the length) of ``words`` (n, W), (n, W) nats; -inf in impossible sentences.

        Outside weights are multiplied with P(word | symbol), or with ``lexical`` (S, V) in its place.
        """
        scored = self._lexicon if lexical is None else _lexicon(lexical.tocsc())
        return np.asarray(linear.masked(words, self._lexicon, scored, *self._any(lexical), self._automaton))

    def rule_counts(self, words: Int32Array, weights: FloatArray) -> tuple[FloatArray, tuple[FloatArray, ...]]:
        """Return ln P(sentence) of ``words`` (n, W), and total expected uses of binary, unary and lexical rules.

        Each sentence counts ``weights`` (W,) times; an impossible one adds nothing.
        """
        pcfg = self._rules.pcfg
        order = np.argsort(pcfg.unary[:, 0], kind="stable")
        start = np.searchsorted(pcfg.unary[order, 0], np.arange(len(pcfg.symbols) + 1)).astype(np.int32)
        unary = WideRows(start, pcfg.unary[order, 1].copy(), *Weights.of_logs(pcfg.unary_logp[order]))
        right = self._rules.side == "right"
        log_prob, moved, chained, lexical = linear.rule_counts(
            words, weights, right, self._lexicon, unary, self._automaton
        )
        binary, unaries = np.zeros(len(pcfg.binary)), np.zeros(len(pcfg.unary))
        moves = np.argsort(self._rules.moves()[0], kind="stable")
        of_rules = moves < len(self._rules.numbers)
        binary[self._rules.numbers[moves[of_rules]]] = moved[of_rules]
        unaries[order] = chained
        return log_prob, (binary, unaries, lexical)


def automaton(rules: LinearRules) -> LinearAutomaton:
    """Return the automaton of a linear grammar."""
    n, start = len(rules.pcfg.symbols), rules.pcfg.start
    source, tag, target, logp = rules.moves()
    weights = Weights.of_logs(logp)
    closed = csr_matrix(block_diag([rules.unary_closure, np.ones((1, 1))]))
    below, above = _rows(closed), _rows(closed.T.tocsr())
    right = rules.side == "right"
    return LinearAutomaton(
        *((start, n) if right else (n, start)),
        _moves(source, tag, target, weights, below if right else above),
        _moves(target, tag, source, weights, above if right else below),
        above,
        below,
    )


def _moves(source: Int32Array, tag: Int32Array, target: Int32Array, weights: Weights, chains: WideRows) -> StateMoves:
    order = np.argsort(source, kind="stable")
    start = np.searchsorted(source[order], np.arange(len(chains.start))).astype(np.int32)
    return StateMoves(start, tag[order], target[order], weights.m[order], weights.e[order], chains)


def _rows(matrix: csr_matrix[np.float64]) -> WideRows:
    return WideRows(matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), *_weights(matrix.data))


def _lexicon(lexical: csc_matrix[np.float64]) -> WideLexicon:
    return WideLexicon(lexical.indptr.astype(np.int32), lexical.indices.astype(np.int32), *_weights(lexical.data))


def _weights(values: FloatArray) -> Weights:
    """Return weights of non-negative floats."""
    tiny = values < 2.0**-480
    return Weights(np.where(tiny, values * 2.0**960, values), np.where(tiny & (values > 0.0), -1, 0))
