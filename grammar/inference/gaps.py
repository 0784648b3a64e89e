"""Charts of patterns, sentences of which some words are not known: see `truesource.grammar.inference._kernels.gaps`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truesource.grammar._kernels.kernel import WIDTH
from truesource.grammar._kernels.rules import GapRules, SparseRows
from truesource.grammar.inference._kernels import gaps
from truesource.grammar.inference.rules import sparse_rows
from truesource.grammar.inference.tables import GrammarTables
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray


class Filled(NamedTuple):
    """Of W patterns."""

    log_prob: FloatArray  #: (W,) ln P(all sentences that fit), nats; -inf where there is none
    right: BoolArray  #: (W,) whether no weight left the range of a float; else nothing is known of the pattern


class GapCharts:
    """Fills patterns of one length, with charts of no cell that is not part of a sentence that fits one of them.

    Args:
        tables: of the grammar.
    """

    def __init__(self, tables: GrammarTables) -> None:
        pcfg, pairs, emission = tables.pcfg, tables.pairs, tables.emission
        size = len(pcfg.symbols)
        order = np.argsort(pairs.parent, kind="stable")
        of_rules = np.repeat(np.arange(len(pairs.left), dtype=np.int32), np.diff(pairs.rule_start))
        self._start, self._words = pcfg.start, len(pcfg.terminals)
        self._rules = GapRules(
            sparse_rows(tables.unary_closure),
            sparse_rows(tables.unary_closure.T),
            pairs,
            np.searchsorted(pairs.parent[order], np.arange(size + 1)).astype(np.int32),
            of_rules[order],
            tables.lexicon,
            SparseRows(emission.indptr.astype(np.int32), emission.indices.astype(np.int32), emission.data),
            tables.lexical_sums,
        )
        likeliest = np.asarray(emission.max(axis=0).todense()).ravel()
        # a known word is as probable as a gap in the symbol that likes it best
        self._scales = np.append(1.0 / np.where(likeliest > 0.0, likeliest, 1.0), [1.0, 1.0])  # of a gap, and of none

    def bytes_per_pattern(self, n: int) -> int:
        """Memory that the charts of one pattern of n places take at most."""
        states = len(self._rules.sums)
        return n * (n + 1) // 2 * states * (6 + 16 * WIDTH) // WIDTH

    def fill(self, words: Int32Array, out: FloatArray | None = None, rows: IntArray | None = None) -> Filled:
        """Fill patterns side by side.

        Args:
            words: (n, W) numbers; that of the words, V, is a gap, and -1 nothing.
            out: (R, n, V) is added P(word | what is known) at each gap; None: it is not asked for.
            rows: (W,) of ``out``, of each pattern.
        """
        n, width = words.shape
        padded = np.full((n, -(-width // WIDTH) * WIDTH), -1, dtype=np.int32)
        padded[:, :width] = words
        places = np.zeros(padded.shape[1] if out is not None else 0, dtype=np.int64)
        if rows is not None:
            places[:width] = rows
        table = np.zeros((0, n, 0)) if out is None else out
        scales = self._scales[padded]
        totals, wrong = gaps.fill(padded, scales, self._start, self._rules, places, table)
        with np.errstate(divide="ignore"):
            logs = np.log(totals) - np.log(scales).sum(axis=0)
        return Filled(logs[:width], ~wrong[:width])
