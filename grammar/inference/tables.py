"""Basic tables of a grammar, computed once: rules by child, closures, masses, lengths.

The derivations of a linear grammar extend on one side, so an automaton reads its sentences. It is right-linear if the
left child of every binary rule yields one token, by unary and lexical rules only, and left-linear if the right child
does. That child is the *tag* of the rule, the other its *spine*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components

from truesource.grammar._kernels.rules import LexicalRules, PairRules, SparseRows
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference._kernels.counts import star
from truesource.grammar.inference.log_masses import log_length_masses
from truesource.grammar.inference.masses import total_mass
from truesource.grammar.inference.nonnegative_matrices import (
    CRITICAL,
    certainly_decays,
    perron,
    reachable,
    reachable_from,
    solve,
)
from truesource.grammar.inference.rules import (
    left_corner_closure,
    length_masses,
    lexical_matrix,
    lexical_rules,
    mean_rows,
    pair_rules,
    require_table,
    unary_closure,
)
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

LOWEST_LOG = -690.0  #: least log probability of a rule that float64 holds with all its digits

SMALLEST = 1e-290  #: probabilities below this have lost some or all digits


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearRules:
    """The rules of a linear grammar, without rules to symbols that derive no sentence."""

    pcfg: GrammarRules
    side: Literal["right", "left"]  #: side of the spine
    numbers: IntArray  #: (K,) numbers of the binary rules
    parent: Int32Array  #: (K,) parents of these rules
    tag: Int32Array  #: (K,) child of one token
    spine: Int32Array  #: (K,) other child
    logp: FloatArray  #: (K,) nats
    productive: BoolArray  #: (S,) which symbols derive a finite string
    unary_closure: csr_matrix[np.float64]  #: (S, S) weight of all unary chains; 1 on the diagonal without any

    @classmethod
    def of(cls, pcfg: GrammarRules) -> Self | None:
        """Return the rules of a linear grammar.

        None if the grammar is not linear, or has probabilities of a rule or of a unary chain that are too small for
        float64.
        """
        lowest = min((float(logp.min()) for _, logp in pcfg.tables() if len(logp)), default=0.0)
        side = _side(pcfg)
        if side is None or lowest < LOWEST_LOG:
            return None
        n = len(pcfg.symbols)
        above, below = pcfg.unary.T
        preterminal = np.unique(pcfg.lexical[:, 0])
        parent, *children = pcfg.binary.T
        tag, spine = children if side == "right" else children[::-1]
        useful = _leading_to(preterminal, above, below, n)[tag]
        steps = np.concatenate([above, parent[useful]]), np.concatenate([below, spine[useful]])
        productive = _leading_to(preterminal, *steps, n)
        useful &= productive[spine]
        closed = _unary_closure(pcfg, productive[below])
        if closed is None:
            return None
        numbers = np.flatnonzero(useful)
        result = cls(
            pcfg=pcfg,
            side=side,
            numbers=numbers,
            parent=parent[numbers],
            tag=tag[numbers],
            spine=spine[numbers],
            logp=pcfg.binary_logp[numbers],
            productive=productive,
            unary_closure=closed,
        )
        return None if side == "left" and not result.above[result._reached].all() else result

    @cached_property
    def tokens(self) -> FloatArray:
        """P(symbol yields exactly one token), (S,)."""
        return np.asarray(self.unary_closure @ self.lexical_sums)

    @cached_property
    def lexical_sums(self) -> FloatArray:
        """Total lexical probability of each symbol, (S,)."""
        rules = self.pcfg.lexical
        sums = np.bincount(rules[:, 0], np.exp(self.pcfg.lexical_logp), minlength=len(self.pcfg.symbols))
        return sums.astype(np.float64)

    @cached_property
    def _down(self) -> csr_matrix[np.float64]:
        """Weight of a step down the spine, by a unary or a binary rule, (S, S)."""
        n = len(self.pcfg.symbols)
        keep = self.productive[self.pcfg.unary[:, 1]]
        above, below = self.pcfg.unary[keep].T
        weight = np.concatenate([np.exp(self.pcfg.unary_logp[keep]), np.exp(self.logp) * self.tokens[self.tag]])
        at = np.concatenate([above, self.parent]), np.concatenate([below, self.spine])
        return csr_matrix((weight, at), shape=(n, n))

    @cached_property
    def _longer(self) -> csr_matrix[np.float64]:
        """Weight of a spine below each symbol with one token next to it, unary chains included, (S, S)."""
        n = len(self.pcfg.symbols)
        weight = np.exp(self.logp) * self.tokens[self.tag]
        return csr_matrix(self.unary_closure @ csr_matrix((weight, (self.parent, self.spine)), shape=(n, n)))

    @cached_property
    def mass(self) -> FloatArray:
        """P(symbol derives a finite string), (S,).

        It is 1 if nothing below the symbol is a dead end: a finite Markov chain reaches its end.
        """
        pcfg, n = self.pcfg, len(self.pcfg.symbols)
        result = self.productive.astype(np.float64)
        rows = [np.repeat(rules[:, 0], rules.shape[1] - 1) for rules in (pcfg.binary, pcfg.unary)]
        children = [rules[:, 1:].ravel() for rules in (pcfg.binary, pcfg.unary)]
        leaks = _leading_to(np.flatnonzero(~self.productive), np.concatenate(rows), np.concatenate(children), n)
        some = np.flatnonzero(leaks & self.productive)
        if some.size:
            rest = np.where(leaks, 0.0, result)
            result[some] = solve(self._down[some][:, some], (self.lexical_sums + self._down @ rest)[some])
        return result

    @cached_property
    def _reached(self) -> Int32Array:
        """The symbols reachable from the start along the spine."""
        result: Int32Array = breadth_first_order(self._down, self.pcfg.start, return_predecessors=False)
        return result

    @cached_property
    def above(self) -> FloatArray:
        """Weight, in a left-linear grammar, of all contexts above and right of each symbol, (S,)."""
        result = np.zeros(len(self.pcfg.symbols))
        unit = (self._reached == self.pcfg.start).astype(np.float64)
        result[self._reached] = solve(self._down[self._reached][:, self._reached].T.tocsr(), unit)
        return result

    def moves(self) -> tuple[Int32Array, Int32Array, Int32Array, FloatArray]:
        """Moves of the automaton, one a token: state before, tag that generates the token, state after, nats.

        States and tags are numbered as in `truesource.grammar._kernels.rules.LinearAutomaton`.
        """
        n = len(self.pcfg.symbols)
        symbols = np.arange(n, dtype=np.int32)
        upper, lower = np.append(self.parent, symbols), np.append(self.spine, np.full(n, n, dtype=np.int32))
        tag, logp = np.append(self.tag, symbols + n).astype(np.int32), np.append(self.logp, np.zeros(n))
        return (upper, tag, lower, logp) if self.side == "right" else (lower, tag, upper, logp)

    def length_masses(self, high: int) -> FloatArray:
        """Return ``P(A yields exactly m tokens)`` for every symbol and m up to ``high``, (high+1, S); row 0 is zero."""
        require_table(len(self.pcfg.symbols), high)
        result = np.zeros((high + 1, len(self.pcfg.symbols)))
        result[1:2] = self.tokens
        for m in range(2, high + 1):
            result[m] = self._longer @ result[m - 1]
        return result

    def possible_lengths(self, high: int) -> BoolArray:
        """Return which numbers of tokens up to ``high`` each symbol can have, however improbable, (high+1, S)."""
        result = np.zeros((high + 1, len(self.pcfg.symbols)), dtype=np.bool_)
        result[1:2] = self.tokens > 0.0
        step = self._longer.sign()
        for m in range(2, high + 1):
            result[m] = step @ result[m - 1] > 0.0
        return result


def _side(pcfg: GrammarRules) -> Literal["right", "left"] | None:
    """Return the side on which the spine of a linear grammar continues; right if both do, None if neither does."""
    above, below = pcfg.unary.T
    long = _leading_to(np.unique(pcfg.binary[:, 0]), above, below, len(pcfg.symbols))
    _, left, right = pcfg.binary.T
    if not long[left].any():
        return "right"
    return None if long[right].any() else "left"


def _leading_to(targets: Int32Array | IntArray, parent: Int32Array, child: Int32Array, n: int) -> BoolArray:
    """Return which of n symbols lead to one of ``targets`` by steps from parents to children, or are targets, (n,)."""
    rows, columns = np.concatenate([child, np.full(len(targets), n)]), np.concatenate([parent, targets])
    graph = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n + 1, n + 1))
    result = np.zeros(n + 1, dtype=np.bool_)
    result[breadth_first_order(graph, n, return_predecessors=False)] = True
    return result[:n]


def _unary_closure(pcfg: GrammarRules, used: BoolArray) -> csr_matrix[np.float64] | None:
    """Return ``(I - Un)^-1`` of the unary rules ``used`` (Q,), (S, S), by component; None if it under- or overflows."""
    n = len(pcfg.symbols)
    above, below = pcfg.unary[used].T
    steps = csr_matrix((np.exp(pcfg.unary_logp[used]), (above, below)), shape=(n, n))
    _, component = connected_components(steps, connection="weak")
    touched = np.unique(pcfg.unary[used])
    order = touched[np.argsort(component[touched], kind="stable")]
    rest = np.ones(n)
    rest[touched] = 0.0
    result = csr_matrix((rest, (np.arange(n), np.arange(n))), shape=(n, n)).tocoo()
    parts = [(result.row, result.col, result.data)]
    for states in np.split(order, np.flatnonzero(np.diff(component[order])) + 1) if len(order) else []:
        block = steps[states][:, states].toarray()
        closed = block.copy()
        if not (star(closed) and ((closed > 0.0) == reachable(block)).all()):
            return None
        row, column = np.nonzero(closed)
        parts.append((states[row], states[column], closed[row, column]))
    row, column, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    closure: csr_matrix[np.float64] = csr_matrix((value, (row, column)), shape=(n, n))
    closure.eliminate_zeros()
    return closure


class GrammarTables:
    """Tables of one grammar, each computed once."""

    def __init__(self, pcfg: GrammarRules) -> None:
        self.pcfg = pcfg
        self._range_masses: dict[LengthRange, float] = {}
        self._masses = np.empty((0, 0))

    @cached_property
    def linear(self) -> LinearRules | None:
        """The rules as a linear grammar; None if the grammar is not linear."""
        return LinearRules.of(self.pcfg)

    @cached_property
    def pairs(self) -> PairRules:
        """Binary rules by child pair."""
        return pair_rules(self.pcfg)

    @cached_property
    def lexicon(self) -> LexicalRules:
        """Lexical rules by word."""
        return lexical_rules(self.pcfg)

    @cached_property
    def emission(self) -> csr_matrix[np.float64]:
        """P(word | symbol), sparse (S, V)."""
        return lexical_matrix(self.pcfg)

    @cached_property
    def emission_by_word(self) -> csr_matrix[np.float64]:
        """P(word | symbol) by word, sparse (V, S), made once for all batches."""
        return self.emission.T.tocsr()

    @cached_property
    def lexical_sums(self) -> FloatArray:
        """Total lexical probability of each symbol, (S,)."""
        return np.asarray(self.emission.sum(axis=1)).ravel()

    @cached_property
    def log_lexical_sums(self) -> FloatArray:
        """Logarithms of `lexical_sums`, also of sums below the smallest float, (S,) nats."""
        logs = np.full(len(self.pcfg.symbols), -np.inf)
        np.logaddexp.at(logs, self.pcfg.lexical[:, 0], self.pcfg.lexical_logp)
        return logs

    @cached_property
    def unary_closure(self) -> FloatArray:
        """``(I - Un)^-1``, (S, S)."""
        if self.linear is not None:
            return np.asarray(self.linear.unary_closure.toarray())
        return unary_closure(self.pcfg, self.mass)

    @cached_property
    def mass(self) -> FloatArray:
        """P(symbol derives a finite string), (S,)."""
        return total_mass(self.pcfg) if self.linear is None else self.linear.mass

    @property
    def total_mass(self) -> float:
        """P(the start symbol derives a finite string); 1 for a consistent grammar."""
        return float(self.mass[self.pcfg.start])

    @cached_property
    def left_corner_closure(self) -> FloatArray:
        """``(I - P_L)^-1``, (S, S)."""
        return left_corner_closure(self.pcfg, self.mass)

    @cached_property
    def _mean(self) -> csr_matrix[np.float64]:
        return mean_rows(self.pcfg)

    @cached_property
    def reached(self) -> BoolArray:
        """Symbols that occur in derivations from the start, (S,)."""
        return np.asarray(reachable_from(self._mean, self.pcfg.start))

    @cached_property
    def perron(self) -> tuple[float, FloatArray, FloatArray]:
        """Spectral radius of the mean matrix over reachable symbols, and its left and right eigenvectors (S,)."""
        inner = np.flatnonzero(self.reached)
        radius, left, right = perron(self._mean[inner][:, inner])
        full = np.zeros((2, len(self.pcfg.symbols)))
        full[:, inner] = left, right
        return radius, full[0], full[1]

    @property
    def spectral_radius(self) -> float:
        """Spectral radius of the mean matrix over reachable symbols; below 1 derivations end, with finite mean size."""
        return self.perron[0]

    @cached_property
    def expected_symbols(self) -> FloatArray:
        """Expected number of each symbol in a derivation, (S,): ``v^T (I - M) = e_start^T``.

        Raises:
            InputError: the spectral radius is 1 or more, or too near to 1 for float64.
        """
        inner = np.flatnonzero(self.reached)
        matrix = self._mean[inner][:, inner]
        if not certainly_decays(matrix) and self.spectral_radius >= 1.0:
            raise InputError(f"the spectral radius is {self.spectral_radius:.6g}: expected counts are infinite")
        unit = (inner == self.pcfg.start).astype(np.float64)
        counts = np.zeros(len(self.pcfg.symbols))
        counts[inner] = solve(matrix.T.tocsr(), unit)
        if counts.max() > 1.0 / CRITICAL and self.spectral_radius > 1.0 - CRITICAL:
            raise InputError("the spectral radius is 1 to nine digits: expected counts are imprecise; give lengths")
        return counts

    @cached_property
    def expected_words(self) -> FloatArray:
        """Expected number of each word in a sentence, (V,), not conditioned on length."""
        return np.asarray(self.expected_symbols @ self.emission)

    @property
    def mean_length(self) -> float:
        """Expected number of tokens of a sentence, not conditioned on length."""
        return float(self.expected_words.sum())

    def length_masses(self, high: int) -> FloatArray:
        """Return ``P(A yields exactly m tokens)``, (high+1, S)."""
        if high >= len(self._masses):  # shorter lengths are the first rows
            if self.linear is not None:
                self._masses = self.linear.length_masses(high)
            else:
                self._masses = length_masses(high, self.pairs, self.lexical_sums, self.unary_closure)
        return self._masses[: high + 1]

    def length_pmf(self, high: int, lengths: LengthRange | None = None) -> FloatArray:
        """Return P(a sentence has m tokens) for m = 0..high, (high+1,); renormalised within ``lengths``."""
        pmf = self.length_masses(max(high, lengths.high if lengths else 0))[:, self.pcfg.start].copy()
        if lengths is not None:
            pmf[: lengths.low] = 0.0
            pmf[lengths.high + 1 :] = 0.0
            z = self.range_mass(lengths)
            if z < SMALLEST:
                raise self.no_length(lengths)
            pmf /= z
        return pmf[: high + 1]

    def range_mass(self, lengths: LengthRange) -> float:
        """Return ``Z = P(lengths.low <= length <= lengths.high)``.

        Raises:
            InputError: it is zero.
        """
        if lengths not in self._range_masses:
            z = float(self.length_masses(lengths.high)[lengths.low :, self.pcfg.start].sum())
            if z <= 0.0:
                raise self.no_length(lengths)
            self._range_masses[lengths] = z
        return self._range_masses[lengths]

    def log_range_mass(self, lengths: LengthRange) -> float:
        """Return ln P(lengths.low <= length <= lengths.high), nats, also for ranges too rare for `range_mass`.

        Raises:
            InputError: no sentence has such a length.
        """
        z = self._range_masses.get(lengths)
        if z is None:
            try:
                z = self.range_mass(lengths)
            except InputError:
                z = 0.0
        if z >= SMALLEST:
            return math.log(z)
        result = self._log_range_mass(lengths)
        if result == -math.inf:
            raise self.no_length(lengths)
        return result

    def _log_range_mass(self, lengths: LengthRange) -> float:
        """Return ln of the probability of a range from logarithms of all masses; -inf if no sentence is in it."""
        rules = self.pcfg
        logs = log_length_masses(
            lengths.high, self.log_lexical_sums, rules.binary, rules.binary_logp, rules.unary, rules.unary_logp
        )
        return -math.inf if logs is None else float(np.logaddexp.reduce(logs[lengths.low :, rules.start]))

    def no_length(self, lengths: LengthRange) -> InputError:
        """Return the error for lengths without probability in float64: too rare, or without a sentence."""
        total = self._log_range_mass(lengths)
        if total > -math.inf:
            return InputError(
                f"a length in {lengths} has probability exp({total:.6g}), too small for float64; choose another range"
            )
        return InputError(f"no sentence of this grammar has a length in {lengths}; choose another range")

    def owed_corners(self, high: int) -> SparseRows:
        """Return left-corner steps A -> C by rows C, columns A; values (nnz, high): mass of d < high tokens owed."""
        n = len(self.pcfg.symbols)
        a, c, right = self.pcfg.binary.T.astype(np.int64)
        keys, inverse = np.unique(c * n + a, return_inverse=True)
        require_table(len(keys), high)
        value = np.zeros((len(keys), high))
        np.add.at(value, inverse, np.exp(self.pcfg.binary_logp)[:, None] * self.length_masses(high)[:high, right].T)
        start = np.searchsorted(keys // n, np.arange(n + 1)).astype(np.int32)
        return SparseRows(start, (keys % n).astype(np.int32), value)
