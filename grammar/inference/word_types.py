"""Exact statistics of the words of a sentence: whether they occur, numbers of types, and pairs of words.

Every pair of preterminal positions, neighbours or any two in order, is split by exactly one binary node ``A -> B C``,
so its expectation is ``sum N(A) P(A -> B C) X(B, T) Y(C, T')``: for neighbours X is the weight of T as the last
preterminal of B and Y the weight of T' as the first of C; for any two, X and Y are expected numbers. Given a range of
lengths all are series in length. Counts of word pairs are stored as a product of small matrices, never as a table of
all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csr_matrix

from truesource.grammar._kernels.rules import LengthTable, LexicalRules
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference._kernels import counts as kernels
from truesource.grammar.inference.expected import expected_counts, length_table, outside_masses, range_table
from truesource.grammar.inference.heights import ending_mass
from truesource.grammar.inference.nonnegative_matrices import CRITICAL, closure
from truesource.grammar.inference.rules import left_corner_matrix, mean_matrix, sparse_rows
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError

Kind = Literal["first", "last", "any"]
WIDTH = 32  #: words a batch if lengths are distinguished
POOL = 128  #: words a batch otherwise
ROUNDS = 500  #: most Newton steps; ten or so is usual
SMALLEST = 1e-300  #: expected numbers below this may have lost digits in float64
LARGEST_TABLE = 5000  #: words above which a table of all pairs is refused (200 MB)
CHUNK = 4096  #: pairs looked up at a time


@dataclass(frozen=True, eq=False)
class PairWeights:
    """Expected pairs of preterminals, (T, T'), of one kind, and first and last preterminals of the start symbol."""

    tags: IntArray  #: (T,) the symbols that have words
    weight: FloatArray  #: (T, T) expected number of pairs: left one by row, right one by column
    first: FloatArray  #: (T,) neighbours: weight as the first of the sentence; any two: expected number
    last: FloatArray  #: (T,) the same for the last


def pair_weights(pcfg: PCFG, lengths: LengthRange | None, *, neighbours: bool) -> PairWeights:
    """Return the expected number of each ordered pair of preterminals, adjacent or anywhere in a sentence.

    Without ``lengths``: three matrix products. With a range up to N: about ``1.5 N^2`` products of (S, S) matrices, all
    terms positive.

    Raises:
        InputError: without ``lengths``, the spectral radius is 1 or more; with them, no sentence has such a length.
    """
    tags = np.flatnonzero(pcfg.exact.lexical_sums > 0.0)
    kinds: tuple[Kind, Kind] = ("last", "first") if neighbours else ("any", "any")
    if lengths is None:
        return _unconditioned(pcfg, tags, kinds)
    return _conditioned(pcfg, tags, kinds, lengths)


def _unconditioned(pcfg: PCFG, tags: IntArray, kinds: tuple[Kind, Kind]) -> PairWeights:
    exact = pcfg.exact
    symbols = exact.expected_symbols
    inner = exact.reached & (exact.mass > 0.0)
    places = np.flatnonzero(inner)
    ends = []
    for kind in kinds:
        step = {"first": left_corner_matrix, "last": _right_corner_matrix, "any": mean_matrix}[kind](pcfg, exact.mass)
        full = np.zeros_like(step)
        full[np.ix_(places, places)] = closure(step[np.ix_(places, places)], f"closure of {kind} children")
        ends.append(full[:, tags])
    a, b, c = pcfg.binary.T
    n = len(pcfg.symbols)
    uses = csr_matrix((symbols[a] * np.exp(pcfg.binary_logp), (b, c)), shape=(n, n))
    left, right = ends
    return PairWeights(tags, left.T @ (uses @ right), right[pcfg.start], left[pcfg.start])


def _right_corner_matrix(pcfg: PCFG, left_mass: FloatArray) -> FloatArray:
    """Return ``P(A -> C) + sum_B P(A -> B C) mass(B)``, dense (S, S)."""
    ones = mean_matrix(pcfg, left_mass) - left_corner_matrix(pcfg, left_mass)
    dense = np.maximum(ones, 0.0)
    np.add.at(dense, (pcfg.unary[:, 0], pcfg.unary[:, 1]), np.exp(pcfg.unary_logp))
    return dense


def _conditioned(pcfg: PCFG, tags: IntArray, kinds: tuple[Kind, Kind], lengths: LengthRange) -> PairWeights:
    table, z = range_table(pcfg, lengths)
    outside, _ = outside_masses(pcfg, table, lengths, z)
    n = len(pcfg.symbols)
    grown = np.zeros(n, dtype=bool)
    grown[pcfg.binary[:, 0]] = True
    grown[pcfg.unary[:, 0]] = True
    rows = np.flatnonzero(grown)
    masses = table.masses.T
    left = _series(pcfg, masses, rows, tags, kinds[0])
    right = left if kinds[0] == kinds[1] else _series(pcfg, masses, rows, tags, kinds[1])

    pairs = pcfg.exact.pairs
    of_pair = np.repeat(np.arange(len(pairs.left)), np.diff(pairs.rule_start))
    by_pair = csr_matrix((pairs.prob, (of_pair, pairs.parent)), shape=(len(pairs.left), n))
    after = [np.zeros((n if k == 1 else len(rows), len(tags))) for k in range(1, lengths.high)]
    for m in range(2, lengths.high + 1):
        uses = np.zeros((n, n))
        uses[pairs.left, pairs.right] = by_pair @ outside[m]
        sides = {(whole, True): uses[:, rows] if whole else uses[np.ix_(rows, rows)] for whole in (True, False)}
        sides |= {(whole, False): uses if whole else uses[rows] for whole in (True, False)}
        for k in range(1, m):
            after[k - 1] += sides[k == 1, m - k > 1] @ right[m - k - 1]
    weight = np.zeros((len(tags), len(tags)))
    for k in range(1, lengths.high):
        weight += left[k - 1].T @ after[k - 1]
    return PairWeights(
        tags, weight, _at_start(right, rows, pcfg.start, lengths) / z, _at_start(left, rows, pcfg.start, lengths) / z
    )


def _series(pcfg: PCFG, masses: FloatArray, rows: IntArray, tags: IntArray, kind: Kind) -> list[FloatArray]:
    """Return weights of preterminal T in yields of m tokens: (S, T) for m = 1, then (rows, T), zero elsewhere.

    ``X_1 = U``, ``X_m = U sum_k step_{m-k} X_k`` where ``step_d(A, B)`` is the probability of a child B on the required
    side with a sibling of d tokens.
    """
    n, high = len(pcfg.symbols), len(masses) - 1
    local = np.full(n, -1)
    local[rows] = np.arange(len(rows))
    a, b, c = pcfg.binary.T.astype(np.int64)
    p = np.exp(pcfg.binary_logp)
    steps = np.zeros((len(rows) * n, high))
    for side, child, sibling in (("first", b, c), ("last", c, b)):
        if kind in (side, "any"):
            beside = csr_matrix((p, (local[a] * n + child, sibling)), shape=(len(rows) * n, n))
            steps += beside @ masses[:high].T
    step = np.ascontiguousarray(steps.T).reshape(high, len(rows), n)
    closed = pcfg.exact.unary_closure
    result = [np.ascontiguousarray(closed[:, tags])]
    inner = np.ascontiguousarray(step[:, :, rows])
    chains = closed[np.ix_(rows, rows)]
    for m in range(2, high + 1):
        bare = step[m - 1] @ result[0]
        for k in range(2, m):
            bare += inner[m - k] @ result[k - 1]
        result.append(chains @ bare)
    return result


def _at_start(series: list[FloatArray], rows: IntArray, start: int, lengths: LengthRange) -> FloatArray:
    """Return the sum of a series over the range, at the start symbol, (T,)."""
    place = np.flatnonzero(rows == start)
    total = series[0][start].copy() if lengths.low == 1 else np.zeros(series[0].shape[1])
    for m in range(max(lengths.low, 2), lengths.high + 1):
        total += series[m - 1][place].sum(axis=0)
    return total


def emission_of(pcfg: PCFG, tags: IntArray) -> csr_matrix[np.float64]:
    """Return P(word | preterminal), sparse (T, V).

    Raises:
        InputError: the grammar has no words.
    """
    if not len(tags):
        raise InputError("this grammar has no words; give it lexical rules")
    return pcfg.exact.emission[tags]


def masses_by_length(pcfg: PCFG, table: LengthTable, ids: IntArray) -> FloatArray:
    """Return P(a sentence has m tokens and word w among them) for m = 0..N of ``table``, (W, N+1)."""
    result = np.zeros((len(ids), table.masses.shape[1]))
    for at, part in tables_by_length(pcfg, table, ids):
        result[at : at + part.shape[1]] = part.T
    return result


def tables_by_length(pcfg: PCFG, table: LengthTable, ids: IntArray) -> Iterator[tuple[int, FloatArray]]:
    """Yield batches of `masses_by_length`: index of the first word, and masses (N+1, words of the batch)."""
    from joblib import Parallel, delayed

    from truesource.grammar.support.printable import meter
    from truesource.grammar.support.threads import threads

    exact = pcfg.exact
    chains, emission = sparse_rows(exact.unary_closure), exact.emission.tocsc()

    def task(some: IntArray) -> FloatArray:
        words = emission[:, some]
        lexical = LexicalRules(words.indptr.astype(np.int32), words.indices.astype(np.int32), words.data)
        result: FloatArray = kernels.occurrence(table, pcfg.start, lexical, exact.pairs, chains)
        return result

    parts = [ids[at : at + WIDTH] for at in range(0, len(ids), WIDTH)]
    parallel = Parallel(n_jobs=threads(), prefer="threads", return_as="generator")
    with meter("probability that a sentence has a word, by word", len(ids)) as progress:
        at = 0
        for part, result in zip(parts, parallel(delayed(task)(p) for p in parts), strict=True):
            progress.advance(len(part))
            yield at, result
            at += len(part)


def total_masses(pcfg: PCFG, ids: IntArray) -> FloatArray:
    """Return P(a derivation ends and its sentence has word w), (W,).

    The mass d of sentences with the word, of the total mass t, solves ``d = e_w + J d - Bi(d, d)`` with J the Jacobian
    of the mass equations at t. Newton's steps for the mass ``t - d`` without the word increase monotonically to it from
    any increasing start below, with the Jacobian at any lower bound (Etessami & Yannakakis 2009). The start is Markov's
    bound ``d <= E c``; the Jacobian is at the least mass in the batch, updated while words remain.

    Raises:
        InputError: no derivation ends, or the spectral radius is 1.
    """
    from truesource.grammar.support.printable import meter

    exact = pcfg.exact
    ending_mass(pcfg)
    if abs(exact.spectral_radius - 1.0) < CRITICAL:
        raise InputError("the spectral radius is 1: masses are imprecise; condition on a range of lengths")
    inner = np.flatnonzero(exact.reached & (exact.mass > 0.0))
    mass = exact.mass[inner][:, None]
    jacobian = mean_matrix(pcfg, exact.mass)[np.ix_(inner, inner)]
    counts = closure(jacobian, "mean matrix")
    result = np.zeros(len(ids))
    emission = exact.emission[inner].tocsc()[:, ids]
    rarest_last = np.argsort(-(emission.T @ counts[np.searchsorted(inner, pcfg.start)]))
    with meter("probability that a sentence has a word, by word", len(ids)) as progress:
        for at in range(0, len(ids), POOL):
            some = rarest_last[at : at + POOL]
            direct = emission[:, some].toarray()
            result[some] = _solve(pcfg, inner, mass, jacobian, counts, direct)
            progress.advance(len(some))
    return result


def _solve(
    pcfg: PCFG, inner: IntArray, mass: FloatArray, jacobian: FloatArray, counts: FloatArray, direct: FloatArray
) -> FloatArray:
    """Return the mass of the start symbol with each word of ``direct`` (S', W), (W,)."""
    n = len(pcfg.symbols)
    start = int(np.searchsorted(inner, pcfg.start))
    value = np.minimum(counts @ direct, mass)
    result = np.zeros(direct.shape[1])
    active = np.arange(direct.shape[1])
    inverse = counts
    for turn in range(ROUNDS):
        if turn % 6 == 0 and len(active):
            full = np.zeros(n)
            full[inner] = mass[:, 0] - value.max(axis=1)
            inverse = closure(mean_matrix(pcfg, full)[np.ix_(inner, inner)], "mean matrix")
        square = np.zeros((n, len(active)))
        square[inner] = value
        residual = value - direct[:, active] - jacobian @ value + kernels.products(square, pcfg.exact.pairs)[inner]
        step = inverse @ residual
        value = np.clip(value - step, 0.0, mass)
        settled = (np.abs(step) <= 1e-13 * value + 1e-300).all(axis=0) | (turn == ROUNDS - 1)
        result[active] = value[start]
        active, value = active[~settled], value[:, ~settled]
        if not len(active):
            break
    return result


def occurrence_by_length(pcfg: PCFG, high: int, words: Sequence[str] | None = None) -> FloatArray:
    """Return P(a sentence has m tokens and the word among them) for m = 0..high, (W, high+1); by default of all words.

    Each word has one dynamic programme over lengths; batches of words run on all cores.
    """
    table = length_table(pcfg, high)
    ids = _ids(pcfg, words)
    result = np.zeros((len(ids), high + 1))
    result[ids >= 0] = masses_by_length(pcfg, table, ids[ids >= 0])
    return result


def occurrence_probabilities(
    pcfg: PCFG, lengths: LengthRange | None = None, words: Sequence[str] | None = None, *, tolerance: float = 0.0
) -> FloatArray:
    """Return ``q_w = P(word w occurs in a sentence)``, (W,); of all words, in the grammar's order, by default.

    Precise to rounding also for rare words: yields with the word are summed, not 1 minus yields without. Without
    ``lengths``, over sentences of finite derivations.

    Args:
        pcfg: the grammar.
        lengths: condition on this range.
        words: which words; 0 for an unknown word.
        tolerance: if the bounds of `occurrence_bounds` are closer than this share of the probability, return their
            midpoint (relative error at most half the share): rare words then cost almost nothing.

    Raises:
        InputError: no sentence has a length in the range, or no derivation ends; without ``lengths``, the spectral
            radius is 1, or with a tolerance 1 or more.
    """
    ids = _ids(pcfg, words)
    result = np.zeros(len(ids))
    left = np.flatnonzero(ids >= 0)
    if tolerance > 0.0:
        bounds = occurrence_bounds(pcfg, lengths)
        low, high = bounds.lower[ids[left]], bounds.upper[ids[left]]
        close = high - low <= tolerance * low
        result[left[close]] = (low[close] + high[close]) / 2
        left = left[~close]
    if lengths is None:
        result[left] = total_masses(pcfg, ids[left]) / pcfg.exact.total_mass
    else:
        table, z = range_table(pcfg, lengths)
        by_length = masses_by_length(pcfg, table, ids[left])
        result[left] = by_length[:, lengths.low :].sum(axis=1) / z
    return np.minimum(result, 1.0)


@dataclass(frozen=True, eq=False)
class OccurrenceBounds:
    """Bounds of the probability that each word occurs."""

    lower: FloatArray  #: (V,) ``E c - E c (c - 1) / 2``, at least 0
    upper: FloatArray  #: (V,) ``E c``, at most 1


def occurrence_bounds(pcfg: PCFG, lengths: LengthRange | None = None) -> OccurrenceBounds:
    """Return Bonferroni's bounds on the probability that each word occurs, tight for rare words, all words at once.

    Raises:
        InputError: without ``lengths``, the spectral radius is 1 or more; with them, no sentence has such a length.
    """
    pairs = pair_weights(pcfg, lengths, neighbours=False)
    emission = emission_of(pcfg, pairs.tags).tocsc()
    twice = np.empty(emission.shape[1])
    for at in range(0, len(twice), 4096):
        some = emission[:, at : at + 4096]
        twice[at : at + 4096] = np.asarray(np.ones(len(pairs.tags)) @ some.multiply(pairs.weight @ some))
    once = expected_counts(pcfg, lengths).words
    return OccurrenceBounds(np.clip(once - twice, 0.0, 1.0), np.minimum(once, 1.0))


def expected_types(occurrence: FloatArray, sentences: Sequence[int] | IntArray) -> FloatArray:
    """Return the expected number of types in m independent sentences, ``sum_w 1 - (1 - q_w)^m``, for each m, (K,).

    ``occurrence`` (V,) is the result of `occurrence_probabilities` for all words.
    """
    sizes = np.asarray(sentences)
    if (sizes < 0).any():
        raise InputError("a number of sentences cannot be negative")
    never = np.log1p(-np.minimum(occurrence, 1.0 - 2.0**-53))
    return np.array([-np.expm1(m * never).sum() for m in sizes.tolist()])


def types_per_length(pcfg: PCFG, high: int) -> FloatArray:
    """Return the expected number of types in a sentence of m tokens, m = 0..high, (high+1,); 0 if there are none."""
    table = length_table(pcfg, high)
    total = np.zeros(high + 1)
    for _, part in tables_by_length(pcfg, table, np.arange(len(pcfg.vocabulary))):
        total += part.sum(axis=1)
    mass = table.masses[pcfg.start]
    return np.asarray(np.divide(total, mass, out=np.zeros(high + 1), where=mass > 0.0))


def _ids(pcfg: PCFG, words: Sequence[str] | None) -> IntArray:
    return np.arange(len(pcfg.vocabulary)) if words is None else pcfg.encode(words).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Bigrams:
    """Expected number of times one word directly precedes another in a sentence: ``emission^T weight emission``.

    The rank is at most the number T of preterminals. First and last words are stored separately, so that ``row(v).sum()
    + ends[v]`` is the expected number of v.
    """

    words: tuple[str, ...]  #: (V,)
    weight: FloatArray  #: (T, T) expected number of neighbouring preterminals
    emission: csr_matrix[np.float64]  #: (T, V) P(word | preterminal)
    starts: FloatArray  #: (V,) probability that a sentence begins with each word
    ends: FloatArray  #: (V,) probability that it ends with it

    def counts(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Return the expected number of each (word, next word) in a sentence, (N,); 0 for unknown words."""
        ids = {word: i for i, word in enumerate(self.words)}
        table = np.array([[ids.get(v, -1), ids.get(w, -1)] for v, w in pairs], dtype=np.int64).reshape(-1, 2)
        result = np.zeros(len(table))
        in_grammar = np.flatnonzero((table >= 0).all(axis=1))
        by_word = self.emission.T.tocsr()
        for at in range(0, len(in_grammar), CHUNK):
            some = in_grammar[at : at + CHUNK]
            before = by_word[table[some, 0]] @ self.weight
            result[some] = np.asarray(by_word[table[some, 1]].multiply(before).sum(axis=1)).ravel()
        return result

    def row(self, word: str) -> FloatArray:
        """Return the expected number of each word right after ``word`` in a sentence, (V,).

        Raises:
            InputError: the word is not in the grammar.
        """
        before = self.emission[:, [self._id(word)]].toarray().ravel()
        return np.asarray((before @ self.weight) @ self.emission)

    def next_word(self, word: str) -> tuple[FloatArray, float]:
        """Return the next-word distribution of the optimal bigram model: each word, (V,), and the end.

        Raises:
            InputError: the word is not in the grammar, or in at most one of 1e300 sentences.
        """
        row, end = self.row(word), float(self.ends[self._id(word)])
        total = float(row.sum()) + end
        if not total > SMALLEST:
            raise InputError(f"the word {word!r} is in no sentence, or only in one of 1e300; choose another")
        return row / total, end / total

    def table(self) -> FloatArray:
        """Return the table of all pairs, (V, V).

        Raises:
            InputError: there are more than 5000 words.
        """
        if len(self.words) > LARGEST_TABLE:
            raise InputError(
                f"a table of all pairs of {len(self.words)} words is too large (at most {LARGEST_TABLE});"
                " use pairs or rows"
            )
        return np.asarray((self.emission.T @ self.weight) @ self.emission)

    def _id(self, word: str) -> int:
        try:
            return self.words.index(word)
        except ValueError:
            raise InputError(f"the grammar does not have the word {word!r}") from None


def bigrams(pcfg: PCFG, lengths: LengthRange | None = None) -> Bigrams:
    """Return exact expected counts of adjacent words, given a range of lengths or not.

    Raises:
        InputError: without ``lengths``, the spectral radius is 1 or more; with them, no sentence has such a length.
    """
    result = pair_weights(pcfg, lengths, neighbours=True)
    emission = emission_of(pcfg, result.tags)
    ends = (np.asarray(result.first @ emission), np.asarray(result.last @ emission))
    return Bigrams(pcfg.vocabulary, result.weight, emission, *ends)
