"""Types of sentences by length, and Heaps' law of them (Meister & Cotterell 2021, section 3.1).

By the law, the expected number of types of a text of l tokens is ``Lambda(l) = alpha l^beta``. The paper adds that the
number is Poisson, which is impossible: it lies between 1 and l. The deviation of a sample from Poisson is reported as
its dispersion (1 for Poisson, less for real text), and distances to the law have to be compared with the distances of
samples of the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import optimize, special, stats

from truesource.evaluation.measures.discrete_tests import against_exact, between
from truesource.evaluation.measures.integer_corpus import Encoded
from truesource.evaluation.measures.monte_carlo import ChanceTest
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.settings import DEFAULT_SEED

LEAST = 20  #: sentences of one length that a distance is taken of
_BETA = (-5.0, 5.0)


@dataclass(frozen=True)
class TypeCounts:
    """Counts of sentences by length and number of types: the K pairs of the two that occur, lengths ascending."""

    length: IntArray  #: (K,) tokens
    types: IntArray  #: (K,) different words, ascending where lengths are equal
    count: IntArray  #: (K,) sentences, 1 or more
    high: int  #: L; arrays by length go up to it

    @classmethod
    def of(cls, length: IntArray, types: IntArray, high: int, count: IntArray | None = None) -> TypeCounts:
        """Count pairs as they come, (N,) each; with multiplicities ``count``, 1 by default."""
        width = 1 + int(types.max(initial=0))
        code, inverse = np.unique(length * width + types, return_inverse=True)
        weight = None if count is None else count
        n = np.rint(np.bincount(inverse, weight, minlength=len(code))).astype(np.int64)
        there = n > 0
        return cls(code[there] // width, code[there] % width, n[there], high)

    @cached_property
    def sentences(self) -> IntArray:
        """Sentences of each length, (L+1,)."""
        return np.bincount(self.length, self.count, minlength=self.high + 1).astype(np.int64)

    @property
    def lengths(self) -> IntArray:
        """Lengths that occur, ascending."""
        return np.flatnonzero(self.sentences)

    def row(self, length: int, width: int = 0) -> IntArray:
        """Return sentences of one length with 0, 1, ... types, up to the maximum or ``width - 1`` if that is more."""
        first, last = np.searchsorted(self.length, (length, length + 1))
        types, count = self.types[first:last], self.count[first:last]
        return np.bincount(types, count, minlength=width).astype(np.int64)

    def means(self) -> FloatArray:
        """Return the mean number of types by length, (L+1,); NaN if there is no sentence."""
        with np.errstate(invalid="ignore"):
            return np.bincount(self.length, self.count * self.types, minlength=self.high + 1) / self.sentences

    def errors(self) -> FloatArray:
        """Return standard errors of `means`, (L+1,); NaN with fewer than 2 sentences."""
        n, mean = self.sentences, self.means()
        squares = self.count * (self.types - mean[self.length]) ** 2
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.bincount(self.length, squares, minlength=self.high + 1) / (n - 1)
            return np.sqrt(np.where(n > 1, variance, np.nan) / n)


def pooled(tables: Sequence[TypeCounts]) -> TypeCounts:
    """Return all sentences of some samples, whose tables go up to one length."""
    length, types, count = (np.concatenate([getattr(t, name) for t in tables]) for name in ("length", "types", "count"))
    return TypeCounts.of(length, types, max(table.high for table in tables), count)


@dataclass(frozen=True)
class HeapsLaw:
    """``Lambda(l) = alpha l^beta``."""

    alpha: float
    beta: float

    def mean(self, length: FloatArray | IntArray) -> FloatArray:
        """Return the expected number of types."""
        return np.asarray(self.alpha * np.asarray(length, dtype=np.float64) ** self.beta)


@dataclass(frozen=True)
class Heaps(HeapsLaw):
    """The law fitted to sentences by maximum likelihood, with quasi-Poisson standard errors."""

    alpha_error: float
    beta_error: float
    dispersion: float  #: Pearson's chi-square over its degrees of freedom; 1 for Poisson counts


@dataclass(frozen=True)
class LengthDistances:
    """Kolmogorov-Smirnov distances between numbers of types at one length."""

    length: int
    sentences: int
    to_own_law: ChanceTest  #: D_ptheta, against Poisson(Lambda) fitted to the sample
    to_reference_law: ChanceTest | None  #: D_phat, fitted to the reference
    to_reference: ChanceTest | None  #: D_p, the reference's sentences of this length; None if they are too few


def types_by_sentence(corpus: Encoded, n: int = 1, *, without: int | None = None) -> IntArray:
    """Return the number of n-gram types of every sentence, n = 1 or 2, (N,), not counting the word ``without``."""
    sentence, codes = corpus.sentence, corpus.tokens
    if n == 2:
        sentence, codes = sentence[1:][_inner(corpus, without)], pairs_of(corpus, without)
    elif without is not None:
        sentence, codes = sentence[codes != without], codes[codes != without]
    order = np.lexsort((codes, sentence))
    at, what = sentence[order], codes[order]
    new = np.ones(len(at), dtype=np.bool_)
    new[1:] = (at[1:] != at[:-1]) | (what[1:] != what[:-1])
    return np.bincount(at[new], minlength=len(corpus.lengths))


def pairs_of(corpus: Encoded, without: int | None = None) -> IntArray:
    """Return a code of every pair of neighbours, none of them the word ``without``, (P,)."""
    return (corpus.tokens[:-1] * corpus.vocabulary + corpus.tokens[1:])[_inner(corpus, without)]


def _inner(corpus: Encoded, without: int | None) -> BoolArray:
    """Return a mask of tokens with a right neighbour, neither of them the word ``without``, (T-1,)."""
    inner = corpus.sentence[1:] == corpus.sentence[:-1]
    if without is not None:
        inner &= (corpus.tokens[1:] != without) & (corpus.tokens[:-1] != without)
    return np.asarray(inner)


def type_counts(corpus: Encoded, n: int = 1, high: int | None = None, *, without: int | None = None) -> TypeCounts:
    """Tabulate the types of every sentence, lengths up to ``high`` or the longest of the corpus, whichever is more.

    Lengths are of whole sentences, the word ``without`` (see `types_by_sentence`) included.
    """
    longest = max(int(corpus.lengths.max()), high or 0)
    return TypeCounts.of(corpus.lengths, types_by_sentence(corpus, n, without=without), longest)


def fit_heaps(counts: TypeCounts) -> Heaps:
    """Return the maximum likelihood of ``u ~ Poisson(alpha l^beta)``, see `fit_means`.

    Raises:
        InputError: all sentences are of one length, or of one word.
    """
    length = counts.lengths
    n = counts.sentences[length].astype(np.float64)
    law = fit_means(length, n, counts.means()[length])
    log_l = np.log(length)
    mean = law.mean(length)
    expected = law.mean(counts.length)
    freedom = max(1.0, float(n.sum()) - 2.0)
    dispersion = float(((counts.types - expected) ** 2 / expected) @ counts.count / freedom)
    weight = n * mean  # information about (ln alpha, beta)
    information = np.array([[weight.sum(), weight @ log_l], [weight @ log_l, weight @ log_l**2]])
    variance = dispersion * np.linalg.inv(information)
    errors = law.alpha * float(np.sqrt(variance[0, 0])), float(np.sqrt(variance[1, 1]))
    return Heaps(law.alpha, law.beta, *errors, dispersion)


def fit_means(length: IntArray, n: IntArray | FloatArray, means: FloatArray) -> HeapsLaw:
    """Return the maximum likelihood from the mean number of types at each length, which is all that the law depends on.

    ``alpha = sum u / sum l^beta``, and beta is the root of the convex ``sum u ln l = alpha sum l^beta ln l``.

    Args:
        length: (K,) different lengths.
        n: (K,) how many sentences have each, or their probability.
        means: (K,) mean number of types.

    Raises:
        InputError: there is one length only, or one word.
    """
    u = means * n
    if len(length) < 2 or u.sum() <= 0:
        raise NothingToMeasureError(
            "Heaps' law needs sentences of two lengths or more, and some of more than one word", "too-few-lengths"
        )
    log_l = np.log(length)

    def slope(beta: float) -> float:
        weight = n * np.exp(beta * (log_l - log_l.max()))
        return float(u @ log_l - u.sum() * (weight @ log_l) / weight.sum())

    if slope(_BETA[0]) * slope(_BETA[1]) > 0.0:
        raise NothingToMeasureError("the number of types follows no power of the length here", "no-law")
    beta = float(optimize.brentq(slope, *_BETA, xtol=1e-14, rtol=8.9e-16))
    return HeapsLaw(float(u.sum() / (n @ length.astype(np.float64) ** beta)), beta)


def length_distances(
    sample: TypeCounts,
    reference: TypeCounts | None,
    *,
    law: HeapsLaw | None = None,
    draws: int = 999,
    seed: int = DEFAULT_SEED,
) -> list[LengthDistances]:
    """Return distances at every length of which the sample has `LEAST` sentences or more (figure 4).

    The p-values of the laws treat their parameters as known, as in the paper; those against the reference are exact.

    Args:
        sample: of the text in question.
        reference: of the text it is compared with, a table of the same size; None without a text.
        law: of the reference, if a better estimate than from these sentences is known.
        draws: of each null distribution.
        seed: of the draws.

    Raises:
        InputError: as `fit_heaps`, or the tables differ in size.
    """
    if reference is not None and reference.high != sample.high:
        raise InputError("the two tables of types go up to different lengths; give `type_counts` one `high`")
    own_law = fit_heaps(sample)
    other = law if law is not None or reference is None else fit_heaps(reference)
    distances = []
    for length in np.flatnonzero(sample.sentences >= LEAST).tolist():
        row = sample.row(length, length + 1)
        met = None
        if reference is not None and reference.sentences[length] >= LEAST:
            rest = reference.row(length, len(row))
            met = between(np.pad(row, (0, len(rest) - len(row))), rest, draws=draws, seed=seed)["ks"]
        distances.append(
            LengthDistances(
                length=length,
                sentences=int(row.sum()),
                to_own_law=_to_law(row, float(own_law.mean(np.array(length))), draws, seed),
                to_reference_law=None
                if other is None
                else _to_law(row, float(other.mean(np.array(length))), draws, seed),
                to_reference=met,
            )
        )
    return distances


def to_laws(types: TypeCounts, law: HeapsLaw) -> FloatArray:
    """Return the KS distance of numbers of types at every length to Poisson(Lambda), (L+1,); NaN without sentences."""
    distance = np.full(types.high + 1, np.nan)
    for length in types.lengths.tolist():
        seen = np.cumsum(types.row(length)) / types.sentences[length]  # beyond its end, the distance only falls
        distance[length] = np.abs(seen - special.pdtr(np.arange(len(seen)), law.mean(np.array(length)))).max()
    return distance


def _to_law(row: IntArray, mean: float, draws: int, seed: int) -> ChanceTest:
    """Test the distance to Poisson(mean), with all counts above the end of the row together."""
    pmf = stats.poisson.pmf(np.arange(len(row)), mean)
    whole = np.append(pmf, max(0.0, 1.0 - float(pmf.sum())))
    return against_exact(np.append(row, 0), whole, draws=draws, seed=seed)["ks"]
