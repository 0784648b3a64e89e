"""The exact quantities of one grammar, computed once and kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grammar.conditioning import LengthRange
from grammar.errors import InputError
from grammar.inference import closure
from grammar.inference.batch import MAX_WIDTH, Batch, batches, run
from grammar.inference.rules import (
    LexicalRules,
    PairRules,
    SparseRows,
    lexical_matrix,
    lexical_rules,
    mean_matrix,
    pair_rules,
    sparse_rows,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from grammar.pcfg import PCFG
    from grammar.tree import Tree

FloatArray = NDArray[np.float64]
BUDGET = 512 * 2**20  #: bytes of charts for one batch
SMALLEST_MASS = 1e-290  #: below this probability of a length range, its inverse would overflow


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

    Every method that takes ``lengths`` conditions on ``lengths.low <= length <= lengths.high``, exactly.
    """

    def __init__(self, pcfg: PCFG) -> None:
        self.pcfg = pcfg
        self._conditioned: dict[LengthRange, tuple[float, SparseRows]] = {}

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
    def unary_closure(self) -> FloatArray:
        """``(I - Un)^-1``, (S, S)."""
        return closure.unary_closure(self.pcfg, self.mass)

    @cached_property
    def _chains(self) -> SparseRows:
        return sparse_rows(self.unary_closure)

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
        from grammar.inference.length import length_masses

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
        return self._condition(lengths)[0]

    def _condition(self, lengths: LengthRange) -> tuple[float, SparseRows]:
        """Z, and the left-corner steps A -> C with the mass of d tokens owed after C, (nnz, high)."""
        if lengths not in self._conditioned:
            masses = self.length_masses(lengths.high)
            z = float(masses[lengths.low :, self.pcfg.start].sum())
            if z <= 0.0:
                raise InputError(f"no sentence of this grammar has a length in {lengths}; choose another range")
            if z < SMALLEST_MASS:
                raise InputError(
                    f"a length in {lengths} has probability {z:.3g}, too small for exact scores; choose another range"
                )
            n = len(self.pcfg.symbols)
            a, b, c = self.pcfg.binary.T.astype(np.int64)
            keys, inverse = np.unique(a * n + b, return_inverse=True)
            value = np.zeros((len(keys), lengths.high))
            np.add.at(value, inverse, np.exp(self.pcfg.binary_logp)[:, None] * masses[: lengths.high, c].T)
            start = np.searchsorted(keys // n, np.arange(n + 1)).astype(np.int32)
            corners = SparseRows(start, (keys % n).astype(np.int32), value)
            self._conditioned[lengths] = z, corners
        return self._conditioned[lengths]

    @cached_property
    def best_chains(self) -> tuple[SparseRows, NDArray[np.int32]]:
        """Most probable unary chain between any two symbols: see `grammar.inference.viterbi.best_chains`."""
        from grammar.inference.viterbi import best_chains

        return best_chains(self.pcfg)

    # -- batches ------------------------------------------------------------------------------------

    def _causal(
        self, words: NDArray[np.int32], lengths: LengthRange | None
    ) -> tuple[FloatArray, NDArray[np.int32], NDArray[np.int32], FloatArray, FloatArray, FloatArray]:
        from grammar.inference import _kernels

        if lengths is None:
            weight, high, low = 1.0, 0, 0
            corners = SparseRows(np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros((1, 1)))
            chains = self._left_corners
        else:
            z, corners = self._condition(lengths)
            chains = self._chains
            weight, high, low = 1.0 / z, lengths.high, lengths.low
        p = self.pairs
        result: tuple[FloatArray, NDArray[np.int32], NDArray[np.int32], FloatArray, FloatArray, FloatArray]
        result = _kernels.causal(
            words,
            self.pcfg.start,
            weight,
            high,
            low,
            *corners,
            *chains,
            *self._chains,
            p.left,
            p.right,
            p.by_left,
            p.rule_start,
            p.parent,
            p.prob,
            *self.lexicon,
        )
        return result

    @cached_property
    def _left_corners(self) -> SparseRows:
        return sparse_rows(self.left_corner_closure)

    def _batches(self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None) -> list[Batch]:
        encoded = [self.pcfg.encode(sentence) for sentence in sentences]
        for i, sentence in enumerate(encoded):
            if len(sentence) == 0:
                raise InputError(f"sentence {i + 1} has no tokens; remove it")
        states, n_pairs = len(self.pcfg.symbols), len(self.pairs.left)
        owed = lengths.high if lengths else 1

        def size(n: int) -> int:
            return 8 * (n * (n + 1) * states + n * n_pairs * owed)

        # with a length condition the tokens owed make the vectors long, and wide batches leave the cache
        return list(batches(encoded, size, BUDGET, max(1, MAX_WIDTH // owed)))

    def causal_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None
    ) -> list[FloatArray]:
        """Ln P(token | its left context) for each sentence, (n+1,): the words, then the end of the sentence.

        The sum over a sentence is its log probability (given ``lengths``). From the first token that is
        impossible in its context on, entries are -inf.
        """

        def task(batch: Batch) -> FloatArray:
            _, _, _, conditional, stop, _ = self._causal(batch.words, lengths)
            return _log(np.concatenate([conditional, stop[-1:]]))

        return self._score(task, sentences, lengths, "exact causal scores")

    def string_log_probs(self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None) -> FloatArray:
        """Ln P(sentence), given ``lengths`` if any, (N,); -inf where the grammar cannot make it."""
        return np.array([float(s.sum()) for s in self.causal_log_probs(sentences, lengths)])

    def masked_log_probs(self, sentences: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Ln P(token | all other tokens and the length) for each sentence, (n,).

        Conditioning on a length range changes nothing. -inf where the token is impossible given the others;
        NaN never: where the others alone are impossible, the entry is -inf too.
        """

        def task(batch: Batch) -> FloatArray:
            leaves = self._outside_leaves(batch.words)
            n, width = batch.words.shape
            table = np.zeros((n, width))
            for i in range(n):
                total = self.lexical_sums @ leaves[i]
                for w in range(width):
                    word = batch.words[i, w]
                    if word >= 0 and total[w] > 0.0:
                        rules = slice(self.lexicon.start[word], self.lexicon.start[word + 1])
                        table[i, w] = leaves[i, self.lexicon.parent[rules], w] @ self.lexicon.prob[rules] / total[w]
            return _log(table)

        return self._score(task, sentences, None, "exact masked scores")

    def _score(
        self,
        task: Callable[[Batch], FloatArray],
        sentences: Sequence[Sequence[str]],
        lengths: LengthRange | None,
        description: str,
    ) -> list[FloatArray]:
        """What ``task`` finds for each column of a batch, in the order of the sentences."""
        work = self._batches(sentences, lengths)
        scores: list[FloatArray] = [np.empty(0)] * len(sentences)
        for batch, table in run(task, work, description, len(sentences)):
            for column, members in enumerate(batch.members):
                for i in members:
                    scores[i] = np.ascontiguousarray(table[:, column])
        return scores

    def _outside_leaves(self, words: NDArray[np.int32]) -> FloatArray:
        from grammar.inference import _kernels

        inside, listed, count, *_ = self._causal(words, None)
        p = self.pairs
        leaves: FloatArray = _kernels.outside_leaves(
            inside,
            listed,
            count,
            len(words),
            self.pcfg.start,
            *self._chains,
            p.left,
            p.right,
            p.by_left,
            p.by_right_start,
            p.by_right,
            p.rule_start,
            p.parent,
            p.prob,
        )
        return leaves

    # -- one sentence -------------------------------------------------------------------------------

    def prefix_log_prob(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> float:
        """Ln P(a sentence starts with ``prefix``), given ``lengths`` if any; -inf when none does."""
        if not prefix:
            if lengths is not None:
                self.range_mass(lengths)  # raises where no sentence has such a length
                return 0.0
            return math.log(self.total_mass) if self.total_mass > 0.0 else -math.inf
        *_, conditional, _, _ = self._causal(self.pcfg.encode(prefix).reshape(-1, 1), lengths)
        return float(_log(conditional).sum())

    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """Distribution of what follows ``prefix``, every word at once.

        Raises:
            InputError: no sentence (of that length range) starts with ``prefix``.
        """
        words = self.pcfg.encode(prefix).reshape(-1, 1)
        *_, conditional, stop, starts = self._causal(words, lengths)
        if (conditional == 0.0).any():
            at = int(np.flatnonzero(conditional[:, 0] == 0.0)[0])
            raise InputError(
                f"no sentence starts with {' '.join(prefix[: at + 1])!r}: {prefix[at]!r} cannot stand there"
            )
        states = starts[-1, :, 0]
        return NextToken(self.pcfg.terminals, np.asarray(states @ self.emission), float(stop[-1, 0]), states)

    def masked(self, sentence: Sequence[str], position: int) -> FloatArray:
        """P(word at ``position`` | all other words and the length), (V,), every word at once.

        Raises:
            InputError: ``position`` is outside the sentence, or no word fits there.
        """
        if not 0 <= position < len(sentence):
            raise InputError(f"position {position} is outside a sentence of {len(sentence)} tokens")
        leaves = self._outside_leaves(self.pcfg.encode(sentence).reshape(-1, 1))
        joint = np.asarray(leaves[position, :, 0] @ self.emission)
        if not joint.sum() > 0.0:
            raise InputError(f"no word fits position {position} of {' '.join(sentence)!r}")
        found: FloatArray = joint / joint.sum()
        return found

    def viterbi(self, sentence: Sequence[str]) -> tuple[Tree, float]:
        """The most probable derivation and its log probability, nats."""
        from grammar.inference.viterbi import viterbi_tree

        return viterbi_tree(self, sentence)


def _log(p: FloatArray) -> FloatArray:
    """Natural logarithm, -inf at zero, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(p)
