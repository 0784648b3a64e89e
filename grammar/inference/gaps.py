"""Charts of patterns, sentences with some unknown words: see `truesource.grammar.inference._kernels.gaps`."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from truesource.grammar._kernels.kernel import WIDTH
from truesource.grammar._kernels.rules import GapRules, SparseRows
from truesource.grammar.inference._kernels import gaps
from truesource.grammar.inference.batch import BUDGET, batches, require_memory
from truesource.grammar.inference.rules import sparse_rows
from truesource.grammar.inference.windows import with_any_word
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray


class GapCharts:
    """Fill patterns of one length, with charts that hold only cells of sentences that match one of them.

    Linear grammars, and patterns whose weights exceed the range of a float, use the passes over whole sentences.

    Args:
        pcfg: the grammar.
    """

    def __init__(self, pcfg: PCFG) -> None:
        self._pcfg, self._gap = pcfg, len(pcfg.vocabulary)

    @cached_property
    def hiding(self) -> PCFG:
        """The grammar with one further word, the last, that represents any word."""
        return with_any_word(self._pcfg)

    @cached_property
    def _rules(self) -> GapRules:
        exact = self._pcfg.exact
        pairs, emission = exact.pairs, exact.emission
        order = np.argsort(pairs.parent, kind="stable")
        of_rules = np.repeat(np.arange(len(pairs.left), dtype=np.int32), np.diff(pairs.rule_start))
        return GapRules(
            sparse_rows(exact.unary_closure),
            sparse_rows(exact.unary_closure.T),
            pairs,
            np.searchsorted(pairs.parent[order], np.arange(len(self._pcfg.symbols) + 1)).astype(np.int32),
            of_rules[order],
            exact.lexicon,
            SparseRows(emission.indptr.astype(np.int32), emission.indices.astype(np.int32), emission.data),
            exact.lexical_sums,
        )

    @cached_property
    def _scales(self) -> FloatArray:
        """Scale factors of words, of a gap and of an unknown word: the largest lexical weight of a word becomes 1."""
        likeliest = np.zeros(self._gap)
        np.maximum.at(likeliest, self._pcfg.lexical[:, 1], np.exp(self._pcfg.lexical_logp))
        return np.append(1.0 / np.where(likeliest > 0.0, likeliest, 1.0), [1.0, 1.0])

    def bytes_per_pattern(self, n: int) -> int:
        """Return the memory that each pattern of n positions adds, bytes."""
        if self._pcfg.exact.linear is not None:
            return self.hiding.exact.charts().bytes_per_sentence(n, 1, True)
        return self._bytes(n) // gaps.LANES

    def _bytes(self, n: int) -> int:
        """Return the memory of the charts of `LANES` patterns of n positions, if a quarter of the cells is needed."""
        return n * (n + 1) // 2 * len(self._pcfg.symbols) * (16 + 4 + 16 * WIDTH // 4)

    def fill(self, words: Int32Array, out: FloatArray | None = None, rows: IntArray | None = None) -> FloatArray:
        """Return ln P(all matching sentences) of each of W patterns, (W,) nats; -inf for none.

        Args:
            words: (n, W) word numbers; V, the vocabulary size, is a gap, and -1 an unknown word.
            out: (R, n, V), zeros, receives P(word at each position | the known words); None: skip this.
            rows: (W,) row of ``out`` of each pattern.
        """
        rows = np.zeros(0, dtype=np.int64) if out is None or rows is None else rows
        table = np.zeros((0, len(words), 0)) if out is None else out
        if self._pcfg.exact.linear is None:
            logs, right = self._sparse(words, table, rows)
        else:
            logs, right = np.full(words.shape[1], -np.inf), np.zeros(words.shape[1], dtype=np.bool_)
        left = np.flatnonzero(~right)
        if left.size:
            logs[left] = self._whole(words[:, left], table, rows[left] if rows.size else rows)
        if rows.size:
            at, column = np.nonzero((words >= 0) & (words < self._gap) & np.isfinite(logs))
            table[rows[column], at, words[at, column]] = 1.0
        return logs

    def _sparse(
        self, words: Int32Array, table: FloatArray, rows: IntArray, scale: FloatArray | None = None
    ) -> tuple[FloatArray, BoolArray]:
        """Compute `fill` without known words in ``out``; also return which patterns are right, (W,).

        Wrong ones are zero. Patterns whose weights exceed the range of a float are repeated with a
        ``scale`` (W,) per position that brings whole sentences near 1.
        """
        n, width = words.shape
        require_memory(n, self._bytes(n))
        padded = np.full((n, -(-width // WIDTH) * WIDTH), -1, dtype=np.int32)
        padded[:, :width] = words
        places = np.zeros(padded.shape[1] if rows.size else 0, dtype=np.int64)
        places[: len(rows)] = rows
        scales = self._scales[padded]
        if scale is not None:
            with np.errstate(over="ignore"):  # a second overflow is reported as wrong
                scales[:, :width] *= scale
        totals, wrong = gaps.fill(padded, scales, self._pcfg.start, self._rules, places, table)
        totals, right = totals[:width], ~wrong[:width]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(totals) - np.log(scales[:, :width]).sum(axis=0)
        if rows.size:
            table[rows[~right]] = 0.0
        again = np.flatnonzero(~right & (totals > 0.0))
        if again.size and scale is None:
            repeated = rows[again] if rows.size else rows
            logs[again], right[again] = self._sparse(words[:, again], table, repeated, totals[again] ** (-1.0 / n))
        return logs, right

    def _whole(self, words: Int32Array, table: FloatArray, rows: IntArray) -> FloatArray:
        """Compute `fill` without known words in ``out``, by passes over sentences with a word that represents any."""
        charts, logs = self.hiding.exact.charts(), np.full(words.shape[1], -np.inf)
        emission = self._pcfg.exact.emission_by_word
        columns = [np.ascontiguousarray(column) for column in words.T]
        for batch in batches(columns, lambda n: charts.bytes_per_sentence(n, 1, bool(rows.size)), BUDGET):
            run = charts.causal(batch.words, first=len(words) + 1)
            column, members = np.array([(x, i) for x, each in enumerate(batch.members) for i in each]).T
            logs[members] = (run.log_conditional.sum(axis=0) + run.log_stop[-1])[column] + len(words) * math.log(2.0)
            if rows.size:
                leaves = charts.leaves(batch.words, whole_only=True)
                for at, observed in enumerate(batch.words):
                    hidden = (leaves.whole & (observed == self._gap))[column]
                    joint = (emission @ leaves.weights[at][:, column[hidden]]).T
                    table[rows[members[hidden]], at] = joint / np.maximum(joint.sum(axis=1, keepdims=True), 5e-324)
        return logs
