"""The exact quantities of one grammar, computed once and kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.errors import InputError
from truesource.grammar.inference import closure
from truesource.grammar.inference.batch import Batch, run
from truesource.grammar.inference.charts import Charts, Leaves
from truesource.grammar.inference.rules import (
    LexicalRules,
    PairRules,
    SparseRows,
    lexical_matrix,
    lexical_rules,
    mean_matrix,
    pair_rules,
)

if TYPE_CHECKING:
    from truesource.grammar.inference.wide import WideCharts
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.tree import Tree

FloatArray = NDArray[np.float64]
Variant = Literal["default", "paper"]


@dataclass(frozen=True)
class NextToken:
    """What can follow a prefix. ``probability`` and ``stop`` sum to one for a consistent grammar."""

    words: tuple[str, ...]  #: (V,)
    probability: FloatArray  #: (V,) of each word
    stop: float  #: that the sentence ends here
    states: FloatArray  #: (S,) expected number of each symbol starting here (Stolcke 1995)

    def top(self, k: int = 10) -> list[tuple[str, float]]:
        """The k most probable words."""
        order = np.argsort(-self.probability, kind="stable")[:k]
        return [(self.words[i], float(self.probability[i])) for i in order]


class Exact:
    """Exact inference for one `PCFG`. All methods are pure; what is computed once is kept.

    Every method that takes ``lengths`` conditions on ``lengths.low <= length <= lengths.high``, exactly. Those
    that take ``dtype`` compute their charts in it: float32 is faster, and within 1e-4 nats a token. Sentences whose
    weights leave the range of the type are found (`truesource.grammar.inference.certificate`) and computed again.
    """

    def __init__(self, pcfg: PCFG) -> None:
        self.pcfg = pcfg
        self._charts: dict[str, Charts] = {}
        self._range_masses: dict[LengthRange, float] = {}

    # -- once per grammar ---------------------------------------------------------------------------

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
    def lexical_sums(self) -> FloatArray:
        """Total lexical probability of each symbol, (S,)."""
        return np.asarray(self.emission.sum(axis=1)).ravel()

    @cached_property
    def log_lexical_sums(self) -> FloatArray:
        """Logarithms of `lexical_sums`, of probabilities below the smallest float too, (S,) nats."""
        logs = np.full(len(self.pcfg.symbols), -np.inf)
        np.logaddexp.at(logs, self.pcfg.lexical[:, 0], self.pcfg.lexical_logp)
        return logs

    @cached_property
    def unary_closure(self) -> FloatArray:
        """``(I - Un)^-1``, (S, S)."""
        return closure.unary_closure(self.pcfg, self.mass)

    @cached_property
    def mass(self) -> FloatArray:
        """P(symbol derives a finite string), (S,)."""
        return closure.total_mass(self.pcfg)

    @property
    def total_mass(self) -> float:
        """P(the start symbol derives a finite string); 1 for a consistent grammar."""
        return float(self.mass[self.pcfg.start])

    @cached_property
    def left_corner_closure(self) -> FloatArray:
        """``(I - P_L)^-1``, (S, S)."""
        return closure.left_corner_closure(self.pcfg, self.mass)

    @cached_property
    def _mean(self) -> FloatArray:
        return mean_matrix(self.pcfg, np.ones(len(self.pcfg.symbols)))

    @cached_property
    def reached(self) -> NDArray[np.bool_]:
        """Which symbols occur in derivations from the start, (S,)."""
        return np.asarray(closure.reachable_from(self._mean, self.pcfg.start))

    @cached_property
    def perron(self) -> tuple[float, FloatArray, FloatArray]:
        """Spectral radius of the mean matrix over reachable symbols, and its left and right eigenvectors (S,)."""
        inner = np.flatnonzero(self.reached)
        radius, left, right = closure.perron(self._mean[np.ix_(inner, inner)])
        full = np.zeros((2, len(self.pcfg.symbols)))
        full[:, inner] = left, right
        return radius, full[0], full[1]

    @property
    def spectral_radius(self) -> float:
        """Of the mean matrix over reachable symbols; below 1, derivations end and have finite mean size."""
        return self.perron[0]

    @cached_property
    def expected_symbols(self) -> FloatArray:
        """Expected number of each symbol in a derivation, (S,): ``v^T (I - M) = e_start^T``.

        Raises:
            InputError: the spectral radius is 1 or more.
        """
        if self.spectral_radius >= 1.0:
            raise InputError(f"the spectral radius is {self.spectral_radius:.6g}: expected counts are infinite")
        inner = np.flatnonzero(self.reached)
        unit = (inner == self.pcfg.start).astype(np.float64)
        counts = np.zeros(len(self.pcfg.symbols))
        counts[inner] = np.linalg.solve((np.eye(len(inner)) - self._mean[np.ix_(inner, inner)]).T, unit)
        return counts

    @cached_property
    def expected_words(self) -> FloatArray:
        """Expected number of each word in a sentence, (V,), not conditioned on length."""
        return np.asarray(self.expected_symbols @ self.emission)

    @property
    def mean_length(self) -> float:
        """Expected number of tokens of a sentence, not conditioned."""
        return float(self.expected_words.sum())

    def length_masses(self, high: int) -> FloatArray:
        """``P(A yields exactly m tokens)``, (high+1, S)."""
        from truesource.grammar.inference.length import length_masses

        return length_masses(self.pcfg, high)

    def length_pmf(self, high: int, lengths: LengthRange | None = None) -> FloatArray:
        """P(a sentence has m tokens) for m = 0..high, (high+1,); renormalised within ``lengths``."""
        pmf = self.length_masses(max(high, lengths.high if lengths else 0))[:, self.pcfg.start].copy()
        if lengths is not None:
            pmf[: lengths.low] = 0.0
            pmf[lengths.high + 1 :] = 0.0
            pmf /= self.range_mass(lengths)
        return pmf[: high + 1]

    def range_mass(self, lengths: LengthRange) -> float:
        """``Z = P(lengths.low <= length <= lengths.high)``.

        Raises:
            InputError: it is zero.
        """
        if lengths not in self._range_masses:
            z = float(self.length_masses(lengths.high)[lengths.low :, self.pcfg.start].sum())
            if z <= 0.0:
                raise InputError(f"no sentence of this grammar has a length in {lengths}; choose another range")
            self._range_masses[lengths] = z
        return self._range_masses[lengths]

    def owed_corners(self, high: int) -> SparseRows:
        """Left-corner steps A -> C by rows C, columns A; values (nnz, high): mass of d = 0..high-1 tokens after C."""
        n = len(self.pcfg.symbols)
        a, c, right = self.pcfg.binary.T.astype(np.int64)
        keys, inverse = np.unique(c * n + a, return_inverse=True)
        value = np.zeros((len(keys), high))
        np.add.at(value, inverse, np.exp(self.pcfg.binary_logp)[:, None] * self.length_masses(high)[:high, right].T)
        start = np.searchsorted(keys // n, np.arange(n + 1)).astype(np.int32)
        return SparseRows(start, (keys % n).astype(np.int32), value)

    @cached_property
    def best_chains(self) -> tuple[SparseRows, NDArray[np.int32]]:
        """Most probable unary chain between any two symbols: see `truesource.grammar.inference.viterbi.best_chains`."""
        from truesource.grammar.inference.viterbi import best_chains

        return best_chains(self.pcfg)

    @cached_property
    def wide(self) -> WideCharts:
        """Charts of single sentences at any range of probabilities."""
        from truesource.grammar.inference.wide import WideCharts

        return WideCharts(self)

    # -- batches ------------------------------------------------------------------------------------

    def charts(self, dtype: DTypeLike = np.float64) -> Charts:
        """The chart kernels in one precision."""
        key = np.dtype(dtype).name
        if key not in self._charts:
            self._charts[key] = Charts(self, dtype)
        return self._charts[key]

    def causal_log_probs(
        self,
        sentences: Sequence[Sequence[str]],
        lengths: LengthRange | None = None,
        *,
        dtype: DTypeLike = np.float64,
    ) -> list[FloatArray]:
        """Ln P(token | its left context) for each sentence, (n+1,): the words, then the end of the sentence.

        The sum over a sentence is its log probability (given ``lengths``). From the first token that is
        impossible in its context on, entries are -inf.
        """
        charts = self.charts(dtype)

        def task(batch: Batch) -> FloatArray:
            found = charts.causal(batch.words, lengths)
            return np.concatenate([found.log_conditional, found.log_stop[-1:]])

        return _score(task, charts.batches(sentences, lengths), len(sentences), "exact causal scores")

    def string_log_probs(
        self,
        sentences: Sequence[Sequence[str]],
        lengths: LengthRange | None = None,
        *,
        dtype: DTypeLike = np.float64,
    ) -> FloatArray:
        """Ln P(sentence), given ``lengths`` if any, (N,); -inf where the grammar cannot make it.

        A length condition needs no pass of its own: it subtracts ``ln Z`` from sentences of such lengths.
        """
        found = np.array([float(s.sum()) for s in self.causal_log_probs(sentences, dtype=dtype)])
        if lengths is not None:
            found -= math.log(self.range_mass(lengths))
            found[[len(s) not in lengths for s in sentences]] = -np.inf
        return found

    def masked_log_probs(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        variant: Variant = "default",
        dtype: DTypeLike = np.float64,
    ) -> list[FloatArray]:
        """Ln P(token | all other tokens and the length) for each sentence, (n,).

        Conditioning on a length range changes nothing. -inf where the token is impossible given the others;
        NaN never: where the others alone are impossible, the entry is -inf too. ``variant="paper"`` sums over
        every nonterminal of a one-token span as Jumelet & Zuidema (2023, eq. 12) print it, which counts a
        derivation with unary rules several times: for comparison only.
        """
        charts = self.charts(dtype)

        def task(batch: Batch) -> FloatArray:
            return self.log_observed(batch.words, charts.leaves(batch.words, whole_only=True), variant)

        return _score(task, charts.batches(sentences, outside=True), len(sentences), "exact masked scores")

    def log_observed(self, words: NDArray[np.int32], leaves: Leaves, variant: Variant = "default") -> FloatArray:
        """Ln P(word | all others and the length) of ``words`` (n, W), from their outside weights; (n, W) nats."""
        lexical = self.lexical_weights(variant)
        columns, sums = lexical.tocsc(), np.asarray(lexical.sum(axis=1)).ravel()
        table = np.full(words.shape, -np.inf)
        for w in np.flatnonzero(leaves.whole).tolist():
            logs = leaves.logs.get(w)
            for i, word in enumerate(words[:, w]):
                rules = slice(columns.indptr[word], columns.indptr[word + 1])
                states, weights = columns.indices[rules], columns.data[rules]
                if logs is None:
                    own = leaves.weights[i, states, w] @ weights
                    table[i, w] = math.log(own / (sums @ leaves.weights[i, :, w]))
                elif variant == "default":
                    rules = slice(*self.lexicon.start[word : word + 2])  # the order of the grammar's own arrays
                    own = logs[i, self.lexicon.parent[rules]] + self.pcfg.lexical_logp[rules]
                    every = logs[i] + self.log_lexical_sums
                    table[i, w] = np.logaddexp.reduce(own) - np.logaddexp.reduce(every)
                else:
                    every = logs[i] + _log(sums)
                    table[i, w] = np.logaddexp.reduce(logs[i, states] + _log(weights)) - np.logaddexp.reduce(every)
        return table

    def lexical_weights(self, variant: Variant = "default") -> csr_matrix[np.float64]:
        """What the outside weight of a symbol over one token is multiplied with, (S, V).

        ``default``: P(word | preterminal). ``paper``: the inside of every nonterminal, unary chains included.
        """
        if variant == "default":
            return self.emission
        return csr_matrix(csr_matrix(self.unary_closure) @ self.emission)

    # -- one sentence -------------------------------------------------------------------------------

    def prefix_log_prob(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> float:
        """Ln P(a sentence starts with ``prefix``), given ``lengths`` if any; -inf when none does."""
        if not prefix:
            if lengths is not None:
                self.range_mass(lengths)  # raises where no sentence has such a length
                return 0.0
            return math.log(self.total_mass) if self.total_mass > 0.0 else -math.inf
        found = self.charts().causal(self.pcfg.encode(prefix).reshape(-1, 1), lengths)
        return float(found.log_conditional.sum())

    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """Distribution of what follows ``prefix``, every word at once.

        Raises:
            InputError: no sentence (of that length range) starts with ``prefix``.
        """
        found = self.charts().causal(self.pcfg.encode(prefix).reshape(-1, 1), lengths)
        if not np.isfinite(found.log_conditional).all():
            at = int(np.argmin(found.log_conditional[:, 0]))
            raise InputError(
                f"no sentence starts with {' '.join(prefix[: at + 1])!r}: {prefix[at]!r} cannot stand there"
            )
        states = found.starts[-1, :, 0]
        return NextToken(
            self.pcfg.terminals, np.asarray(states @ self.emission), math.exp(found.log_stop[-1, 0]), states
        )

    def masked(self, sentence: Sequence[str], position: int) -> FloatArray:
        """P(word at ``position`` | all other words and the length), (V,), every word at once.

        Raises:
            InputError: ``position`` is outside the sentence, or no word fits there.
        """
        if not 0 <= position < len(sentence):
            raise InputError(f"position {position} is outside a sentence of {len(sentence)} tokens")
        leaves = self.charts().leaves(self.pcfg.encode(sentence).reshape(-1, 1)).weights
        joint = np.asarray(leaves[position, :, 0] @ self.emission)
        if not joint.sum() > 0.0:
            raise InputError(f"no word fits position {position} of {' '.join(sentence)!r}")
        found: FloatArray = joint / joint.sum()
        return found

    def viterbi(self, sentence: Sequence[str]) -> tuple[Tree, float]:
        """The most probable derivation and its log probability, nats."""
        from truesource.grammar.inference.viterbi import viterbi_tree

        return viterbi_tree(self, sentence)


def _score(
    task: Callable[[Batch], FloatArray], work: Sequence[Batch], n_sentences: int, description: str
) -> list[FloatArray]:
    """What ``task`` finds for each column of a batch, in the order of the sentences."""
    scores: list[FloatArray] = [np.empty(0)] * n_sentences
    for batch, table in run(task, work, description, n_sentences):
        for column, members in enumerate(batch.members):
            for i in members:
                scores[i] = np.ascontiguousarray(table[:, column])
    return scores


def _log(p: FloatArray) -> FloatArray:
    """Natural logarithm, -inf at zero, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(p)
