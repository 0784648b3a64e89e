"""Exact scores by a linear grammar: forward-backward over its automaton, in place of charts.

Closed under unary rules, a right-linear grammar is an automaton that reads a token at every rule ``A -> tag spine``
from A to the spine, and ends with a lexical rule; a left-linear one begins with a lexical rule and reads a token at
every rule ``A -> spine tag`` from the spine to A.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import block_diag, csc_matrix, csr_matrix

from truesource.grammar._kernels.rules import LinearAutomaton, StateMoves, WideLexicon, WideRows, WideTable
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Batch, encoded_batches
from truesource.grammar.inference.charts import CausalCharts, Leaves
from truesource.grammar.inference.linear import LinearRules
from truesource.grammar.inference.tables import GrammarTables
from truesource.grammar.inference.wide import Weights
from truesource.grammar.support.arrays import FloatArray, Int32Array

ENDLESS = 2**62  #: tokens, more than any sentence has


class LinearCharts:
    """What `truesource.grammar.inference.charts.Charts` gives, for a linear grammar, in time linear in the length.

    A forward vector holds the weight of the words so far by state, a backward vector that of the words to come; see
    `truesource.grammar.inference._kernels.linear`. Weights have no limits, so that nothing need be certified.

    Args:
        tables: of the grammar.
        rules: its rules as those of a linear grammar.
    """

    def __init__(self, tables: GrammarTables, rules: LinearRules) -> None:
        self._tables, self._rules = tables, rules
        self._automaton = automaton(rules)
        self._lexicon = _lexicon(tables.emission.tocsc())
        after = rules.mass if rules.side == "right" else rules.above
        self._free = WideTable(*_weights(np.append(after, 1.0)[None, :]))
        self._given: dict[LengthRange, WideTable] = {}

    def bytes_per_sentence(self, n: int, owed: int, outside: bool) -> int:
        """Memory that one sentence of n words takes at most."""
        cells = 8 + 20 * outside
        return n * cells * len(self._tables.pcfg.symbols)

    def batches(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, outside: bool = False
    ) -> list[Batch]:
        """Sentences as batches that fit the memory budget: see `truesource.grammar.inference.batch`."""
        return encoded_batches(self._tables.pcfg, sentences, lambda n: self.bytes_per_sentence(n, 1, outside))

    def causal(self, words: Int32Array, lengths: LengthRange | None = None, *, first: int = 0) -> CausalCharts:
        """One pass over ``words`` (n, W), -1 unknown; ``starts`` are given from position ``first`` on."""
        from truesource.grammar.inference._kernels import linear as kernels

        low, high = (1, ENDLESS) if lengths is None else (lengths.low, lengths.high)
        future = self._free if lengths is None else self._conditioned(lengths)
        return CausalCharts(*kernels.causal(words, low, high, first, future, self._lexicon, self._automaton))

    def _conditioned(self, lengths: LengthRange) -> WideTable:
        """Weight of all ways to a length of the range, by number of tokens read and state."""
        from truesource.grammar.inference._kernels import linear as kernels

        if lengths not in self._given:
            self._tables.range_mass(lengths)  # raises where no sentence has such a length
            self._given[lengths] = kernels.futures(lengths.low, lengths.high, *self._any(None), self._automaton)
        return self._given[lengths]

    def _any(self, lexical: csr_matrix[np.float64] | None) -> Weights:
        """Weight of every tag for any word, (2S,), by P(word | symbol) or by ``lexical`` (S, V) in its place."""
        sums = self._rules.lexical_sums if lexical is None else np.asarray(lexical.sum(axis=1)).ravel()
        return _weights(np.concatenate([self._rules.unary_closure @ sums, sums]))

    def growth(self, words: Int32Array, lengths: LengthRange | None = None, *, outside: bool = False) -> int:
        """The power of the length as which time grows, for sentences such as ``words`` (n, W)."""
        return 1

    def trial(self, words: Int32Array, lengths: LengthRange | None = None, *, outside: bool = False) -> None:
        """Do what the scores of ``words`` (n, W) take, and drop it."""
        self.causal(words, lengths, first=len(words) + 1)
        if outside:
            self.masked(words)

    def leaves(self, words: Int32Array, *, whole_only: bool = False) -> Leaves:
        """Outside weights of every preterminal position of ``words`` (n, W), -1 unknown.

        With ``whole_only`` nothing is asked of sentences that the grammar cannot make.
        """
        from truesource.grammar.inference._kernels import linear as kernels

        weights, whole, apart = kernels.leaves(words, False, self._lexicon, self._automaton)
        found = Leaves(weights, whole, {})
        for w in np.flatnonzero(apart & (whole | (not whole_only))).tolist():
            column = np.ascontiguousarray(words[:, w : w + 1])
            found.logs[w] = kernels.leaves(column, True, self._lexicon, self._automaton)[0][:, :, 0]
        return found

    def masked(self, words: Int32Array, lexical: csr_matrix[np.float64] | None = None) -> FloatArray:
        """Ln P(word | all others and the length) of ``words`` (n, W), (n, W) nats; -inf in impossible sentences.

        Outside weights are multiplied with P(word | symbol), or with ``lexical`` (S, V) in its place.
        """
        from truesource.grammar.inference._kernels import linear as kernels

        scored = self._lexicon if lexical is None else _lexicon(lexical.tocsc())
        return np.asarray(kernels.masked(words, self._lexicon, scored, *self._any(lexical), self._automaton))

    def rule_counts(self, words: Int32Array, weights: FloatArray) -> tuple[FloatArray, tuple[FloatArray, ...]]:
        """Ln P(sentence) of ``words`` (n, W), and expected uses of binary, unary and lexical rules in all of them.

        Each sentence counts ``weights`` (W,) times; one that the grammar cannot make adds nothing.
        """
        from truesource.grammar.inference._kernels.linear import rule_counts

        pcfg = self._rules.pcfg
        order = np.argsort(pcfg.unary[:, 0], kind="stable")
        start = np.searchsorted(pcfg.unary[order, 0], np.arange(len(pcfg.symbols) + 1)).astype(np.int32)
        unary = WideRows(start, pcfg.unary[order, 1].copy(), *Weights.of_logs(pcfg.unary_logp[order]))
        right = self._rules.side == "right"
        log_prob, moved, chained, lexical = rule_counts(words, weights, right, self._lexicon, unary, self._automaton)
        binary, unaries = np.zeros(len(pcfg.binary)), np.zeros(len(pcfg.unary))
        moves = np.argsort(self._rules.moves()[0], kind="stable")
        of_rules = moves < len(self._rules.kept)
        binary[self._rules.kept[moves[of_rules]]] = moved[of_rules]
        unaries[order] = chained
        return log_prob, (binary, unaries, lexical)


def automaton(rules: LinearRules) -> LinearAutomaton:
    """The automaton of a linear grammar."""
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
    """Weights of non-negative floats."""
    tiny = values < 2.0**-480
    return Weights(np.where(tiny, values * 2.0**960, values), np.where(tiny & (values > 0.0), -1, 0))
