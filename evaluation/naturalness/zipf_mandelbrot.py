"""The Zipf-Mandelbrot law of a corpus (figure 3 of Jumelet & Zuidema 2023), with and without the error of its ranks.

Ranks come from one half of the sentences and counts from the other, as a rank and a count taken from the same text
err together (Piantadosi 2014). The law ``p(r) ~ (r + beta)^-alpha`` has the finite support 1..K, the words of the
ranking half: an infinite one has mass that no text has. Words that only the counted half has are excluded, and their
share is reported: were they ranked last, each would be there because it was counted, and the tail would turn up.

A word that is too frequent by chance in the half that ranks gets too high a rank, and its count in the other half is
lower: counts by estimated rank are flatter than counts by true rank, and the rarest words have no rank. The fit is then
off by up to several standard errors. So `true_law` seeks the law whose own samples, ranked by as
many tokens, have as many different words, and the same mean score at the fit of the text (simulated moments, with the
score of the biased fit among the moments; Gallant & Tauchen 1996). Moments of samples of laws around a guess are
regressed on the parameters of these laws: the root of the regression is the next guess, its slopes carry errors of the
counts over to the parameters, and its residuals are what errors of the ranks add.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy import optimize, special
from scipy.special import stdtrit

from truesource.evaluation.measures.bootstrap import TAILS, Interval
from truesource.evaluation.measures.integer_corpus import Encoded
from truesource.evaluation.measures.zipf_law import ALPHA, LEAST_TYPES, Law, fit_law, log_pmf, objective
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import too_few
from truesource.grammar.support.settings import DEFAULT_SEED

Missing = Literal[
    "no-power-law", "beta-at-bound", "fewer-than-10-sentences", "not-identified"
]  #: why there is no true law
ROUNDS = (24, 24, 80, 80, 80)  #: laws around the guess, a sample of each; the last ones only while the guess moves
REACH = 1.5  #: standard deviation of these laws, in standard errors of the guess
NEAR = 1.0  #: standard errors that a last round may move the guess
MOST_WORDS = 30  #: times the words that are ranked: the largest support considered
RELEASED_START = (1.2, 2.0)  #: (alpha, beta)
RELEASED_BOUNDS = ((1.0 + 1e-6, 30.0), (0.05, 50.0))  #: of alpha and beta


class EstimatedRankFit(NamedTuple):
    """A fit to counts by estimated ranks, and estimates of its errors."""

    law: Law
    gradient: FloatArray  #: (2,) of the mean negative log-likelihood in (alpha, beta); not 0 where beta is at its bound
    information: FloatArray  #: (2, 2) the Hessian
    scores: FloatArray  #: (2, 2) covariance of the gradient, given the ranks
    sentences: int  #: that were counted
    ranking_tokens: int  #: tokens that ranked the words


class TrueLaw(NamedTuple):
    """The law that text was drawn from, whose words were ranked by a sample; intervals are 95%."""

    alpha: Interval
    beta: Interval  #: its ends are from ln(1 + beta), which is less skewed; no ends for Zipf's own law
    words: int  #: support 1..K, words that were not seen among them


class _Regression(NamedTuple):
    """Moments in F free parameters, linear around a guess."""

    at_guess: FloatArray  #: (F,) moments
    slopes: FloatArray  #: (F, F) of moments (rows) by parameters
    noise: FloatArray  #: (F, F) covariance of the moments of one sample


def true_law(fit: EstimatedRankFit, *, seed: int) -> TrueLaw | Missing:
    """Return the law whose samples are fitted by ``fit.law``, or the reason for its absence.

    Tokens of the samples are independent; words that recur within sentences are ranked somewhat worse than that.

    Args:
        fit: the fit to counts by ranks that come from other sentences.
        seed: of the samples.
    """
    law = fit.law
    if not law.interior:
        return "no-power-law"
    if too_few(fit.sentences):
        return "fewer-than-10-sentences"
    solved = _solved(fit, np.random.default_rng(seed))
    if solved is None:
        return "not-identified"
    at, covariance = solved
    half = float(stdtrit(fit.sentences - 1, TAILS[1])) * np.sqrt(np.diag(covariance))
    low, high = at - half, at + half
    if high[1] < 0.0:
        return "beta-at-bound"
    below = min(0.0, at[1]) / covariance[1, 1]  # alpha where beta is 0, given that it cannot be less
    alpha = Interval(float(at[0] - below * covariance[0, 1]), max(0.0, float(low[0])), float(high[0]))
    beta = Interval(*(max(0.0, math.expm1(x[1])) for x in (at, low, high)))
    return TrueLaw(alpha, beta, max(law.types, round(math.exp(at[2]))))


def _solved(fit: EstimatedRankFit, rng: np.random.Generator) -> tuple[FloatArray, FloatArray] | None:
    """Match the moments to the text's: return alpha, ln(1 + beta) and ln K, and their covariance (3, 3).

    None if nothing is found.
    """
    at, guess, counting = _start(fit)
    low, high = _bounds(fit.law.types)
    observed = np.array([1.0, 1.0 + fit.law.beta, 0.0]) * [*fit.gradient, 0.0]
    try:
        covariance = _carried(counting + guess.noise, guess.slopes)
        for samples in ROUNDS:
            at = np.clip(at, low, high)
            laws = _within(np.tile(at, (samples, 1)) + _around(covariance, samples, rng), fit.law.types, rng)
            if not np.isfinite(laws).all():
                return None
            moments = simulated(laws, fit.law, fit.ranking_tokens, rng) - observed
            guess = _regressed(laws - at, moments)
            covariance = _carried(counting + guess.noise * (1.0 + 1.0 / samples), guess.slopes)
            step = -np.linalg.solve(guess.slopes, guess.at_guess)
            at = at + step
            near = np.abs(step) <= NEAR * np.sqrt(np.diag(covariance)) + 1.0 / fit.law.types
            if samples == ROUNDS[-1] and near.all():
                break
    except np.linalg.LinAlgError:
        return None
    error = np.sqrt(np.diag(covariance))
    inside = (at - 2.0 * error > low) & (at + 2.0 * error < high)
    return (at, covariance) if near.all() and inside.all() else None


def _bounds(types: int) -> tuple[FloatArray, FloatArray]:
    """Return least and largest alpha, ln(1 + beta) and ln K that are searched, (3,) each.

    A beta of less than 0 is no result, but an estimate may be there that is not surely below 0.
    """
    low = np.array([ALPHA[0], math.log(0.1), math.log(LEAST_TYPES) - 1.0])
    return low, np.array([ALPHA[1], math.log1p(10.0 * types), math.log(MOST_WORDS * types)])


def _start(fit: EstimatedRankFit) -> tuple[FloatArray, _Regression, FloatArray]:
    """Return the first guess (3,), its moments with known ranks, and the covariance (3, 3) from counting."""
    law, tokens = fit.law, fit.ranking_tokens
    words = support(law.alpha, law.beta, law.types, tokens)
    more = math.ceil(1.1 * words)
    types, of_more = (expected_types(law.alpha, law.beta, k, tokens) for k in (words, more))
    scale = np.array([1.0, 1.0 + law.beta])  # from derivatives by beta to those by ln(1 + beta)
    counting, noise, slopes = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3))
    counting[:2, :2] = fit.scores * np.outer(scale, scale)
    slopes[:2, :2] = -fit.information * np.outer(scale, scale)
    slopes[2, 2] = math.log(of_more / types) / math.log(more / words)
    unseen = np.exp(tokens * np.log1p(-np.minimum(np.exp(log_pmf(law.alpha, law.beta, words)[1]), 1.0 - 1e-12)))
    noise[2, 2] = float((unseen * (1.0 - unseen)).sum()) / types**2
    at = np.array([law.alpha, math.log1p(law.beta), math.log(words)])
    return at, _Regression(np.zeros(3), slopes, noise), counting


def _around(covariance: FloatArray, samples: int, rng: np.random.Generator) -> FloatArray:
    """Sample deviations (samples, F) from a guess: normal, truncated at two standard deviations, in opposite pairs."""
    z = np.clip(rng.normal(size=(samples // 2, len(covariance))), -2.0, 2.0)
    root = np.linalg.cholesky(covariance + 1e-14 * np.eye(len(covariance)))
    return np.asarray(REACH * np.concatenate([z, -z]) @ root.T)


def _within(laws: FloatArray, types: int, rng: np.random.Generator) -> FloatArray:
    """Return the nearest laws (R, 3) that are searched, with whole numbers of words, some of them one off."""
    laws = np.clip(laws, *_bounds(types))
    words = np.maximum(np.rint(np.exp(laws[:, 2])) + rng.integers(-1, 2, len(laws)), LEAST_TYPES)
    return np.column_stack([laws[:, :2], np.log(words)])


def _regressed(x: FloatArray, moments: FloatArray) -> _Regression:
    design = np.column_stack([np.ones(len(x)), x])
    fitted = np.asarray(np.linalg.lstsq(design, moments)[0], dtype=np.float64)
    residual = moments - design @ fitted
    return _Regression(fitted[0], fitted[1:].T, residual.T @ residual / (len(x) - design.shape[1]))


def _carried(covariance: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return the covariance of parameters from the covariance of moments."""
    inverse = np.linalg.inv(slopes)
    return np.asarray(inverse @ covariance @ inverse.T)


def simulated(laws: FloatArray, fit: Law, tokens: int, rng: np.random.Generator) -> FloatArray:
    """Return moments of one sample of each law, (R, 3).

    Words are ranked by a sample of so many tokens, and counted by their probabilities. The moments are the score of
    alpha and of ln(1 + beta) at ``fit``, a token, and the logarithm of the ratio of the numbers of types of the
    sample and of ``fit``.

    Args:
        laws: (R, 3) alpha, ln(1 + beta), ln K.
        fit: where the score is taken.
        tokens: that rank.
        rng: draws the samples.
    """
    most = round(math.exp(laws[:, 2].max()))
    x = np.arange(1, most + 1) + fit.beta
    weight = x**-fit.alpha
    slopes = np.array([np.log(x), fit.alpha * (1.0 + fit.beta) / x])
    below, above = np.cumsum(weight), np.cumsum(weight * slopes, axis=1)
    moments = np.empty((len(laws), 3))
    for i, (alpha, log_beta, log_words) in enumerate(laws.tolist()):
        p = np.exp(log_pmf(alpha, math.expm1(log_beta), round(math.exp(log_words)))[1])
        counts = rng.multinomial(tokens, p)
        seen = np.count_nonzero(counts)
        ranked = p[np.argsort(-(counts + rng.random(len(p))))[:seen]]
        moments[i, :2] = slopes[:, :seen] @ ranked / ranked.sum() - above[:, seen - 1] / below[seen - 1]
        moments[i, 2] = math.log(seen / fit.types)
    return moments


def support(alpha: float, beta: float, types: int, tokens: int) -> int:
    """Return the support of a law from the expected types in some tokens; at most `MOST_WORDS` for each type."""
    low, high, most = types, types, MOST_WORDS * types
    while high < most and expected_types(alpha, beta, high, tokens) < types:
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if expected_types(alpha, beta, middle, tokens) < types else (low, middle)
    return high


def expected_types(alpha: float, beta: float, words: int, tokens: int) -> float:
    """Return different words expected among independent tokens of a law."""
    share = np.exp(log_pmf(alpha, beta, words)[1])
    return float(-np.expm1(tokens * np.log1p(-np.minimum(share, 1.0 - 1e-12))).sum())


@dataclass(frozen=True)
class ZipfFit:
    """A law by estimated ranks, the law behind it, and the counts."""

    law: Law  #: fitted to the counts, by ranks that are estimated
    truth: TrueLaw | Missing  #: the law without errors of the ranks, with intervals, or the reason for its absence
    counts: IntArray  #: (K,) occurrences in the counted half, by rank in the other
    unranked: float  #: share of the counted tokens whose word the ranking half does not have, excluded

    @property
    def parameters(self) -> tuple[float, float]:
        """Alpha and beta without the errors of the ranks, or if they are not known, with them."""
        if isinstance(self.truth, TrueLaw):
            return self.truth.alpha.value, self.truth.beta.value
        return self.law.alpha, self.law.beta


@dataclass(frozen=True)
class ReleasedFit:
    """Parameters by the published recipe; its objective is no likelihood, so there is nothing to take errors from."""

    alpha: float  #: above 1, as the support is infinite
    beta: float  #: in [0.05, 50]
    types: int  #: words that took part


def fit_corpus(corpus: Encoded, rows: IntArray, *, seed: int = DEFAULT_SEED) -> ZipfFit:
    """Return the law of a corpus: ranks from the first half of the sentences ``rows``, counts from the second.

    The law is fitted to estimated ranks; `true_law` estimates the law of the text. ``benchmarks/coverage.py`` measures
    the coverage of 95% intervals of samples of known laws.

    Raises:
        InputError: there are fewer than 2 sentences, or too few different words.
    """
    ranking, counted = halves(rows)
    ranks = ranks_of(corpus.counts(ranking), seed)
    chosen = corpus.among(counted)
    of_token = ranks[corpus.tokens[chosen]]
    ranked = of_token > 0
    counts = np.bincount(of_token[ranked] - 1, minlength=int(ranks.max()))
    law = fit_law(counts)
    sentence = corpus.sentence[chosen][ranked]
    _, gradient, information = objective(law.alpha, law.beta, counts / counts.sum())
    scores = score_covariance(law, of_token[ranked], sentence)
    fit = EstimatedRankFit(
        law, gradient, information, scores, len(np.unique(sentence)), int(corpus.lengths[ranking].sum())
    )
    return ZipfFit(law, true_law(fit, seed=seed), counts, 1.0 - float(ranked.mean()))


def fit_released(corpus: Encoded, rows: IntArray, *, seed: int = DEFAULT_SEED) -> ReleasedFit:
    """Fit by the published recipe: `released_objective` over words of the ranking half that the other half has twice.

    As rank 0 is among the ranks, the objective grows without bound when beta nears 0, though for a treebank only below
    1e-50 does it get above the other maximum. That one, with ``beta >= 0.05``, is found here, by Powell's method from
    (1.2, 2.0). The published start, (1, 1), lies where zeta is infinite, and stops the search with alpha .02 short.

    Args:
        corpus: sentences.
        rows: sentences to use; the first half ranks, the second is counted.
        seed: of the order among words of equal count.

    Raises:
        InputError: there are fewer than 2 sentences, or fewer than 3 such words.
    """
    ranking, counted = (corpus.counts(half) for half in halves(rows))
    ranks = ranks_of(ranking, seed)
    used = (ranking > 0) & (counted > 1)
    if np.count_nonzero(used) < LEAST_TYPES:
        raise InputError(
            f"the published recipe needs {LEAST_TYPES} words that one half has and the other has twice or more,"
            f" got {np.count_nonzero(used)}"
        )
    at, weights = ranks[used].astype(np.float64) - 1.0, np.log(counted[used].astype(np.float64))

    def loss(x: FloatArray) -> float:
        return -released_objective(float(x[0]), float(x[1]), at, weights) / len(at)

    fit = optimize.minimize(
        loss,
        np.array(RELEASED_START),
        method="Powell",
        bounds=RELEASED_BOUNDS,
        options={"xtol": 1e-9, "ftol": 1e-13},
    )
    return ReleasedFit(float(fit.x[0]), float(fit.x[1]), int(np.count_nonzero(used)))


def released_objective(alpha: float, beta: float, ranks: FloatArray, weights: FloatArray) -> float:
    """Return the objective that the published recipe maximises.

    ``sum_r w_r (-alpha lg(r + beta) - lg zeta(alpha, beta + 1)) - beta^5`` with ``w = ln count``, ranks from 0,
    logarithms to base 10 and the Hurwitz zeta function, whose sum starts at rank 1.

    Args:
        alpha: above 1.
        beta: above 0.
        ranks: (n,) from 0.
        weights: (n,) natural logarithms of counts.
    """
    log_p = -alpha * np.log10(ranks + beta) - math.log10(float(special.zeta(alpha, beta + 1.0)))
    return float(weights @ log_p) - beta**5


def score_covariance(law: Law, ranks: IntArray, sentence: IntArray) -> FloatArray:
    """Return the covariance of the mean log-likelihood's gradient in (alpha, beta), by independent sentences, (2, 2).

    It is the middle of the sandwich ``H^-1 C H^-1`` (Huber 1967): tokens of one sentence are not independent and no
    text follows the law exactly, so the observed information alone makes intervals too narrow. The ranks
    are fixed here, as they come from other sentences.

    Args:
        law: from `fit_law`.
        ranks: (N,) rank of each counted token, from 1.
        sentence: (N,) its sentence.
    """
    x, log_p = log_pmf(law.alpha, law.beta, law.types)
    slopes = np.array([np.log(x), law.alpha / x])
    slopes -= (slopes @ np.exp(log_p))[:, None]
    _, row = np.unique(sentence, return_inverse=True)
    scores = np.array([np.bincount(row, slope[ranks - 1]) for slope in slopes])
    return np.asarray(scores @ scores.T / len(ranks) ** 2)


def ranks_of(counts: IntArray, seed: int) -> IntArray:
    """Rank of each word, from 1 by falling count, (V,); 0 for words that were not counted.

    Words of equal count are in random order, since any other could know something of the other half.

    Args:
        counts: (V,) of the half that ranks.
        seed: of the order among equals.
    """
    words = np.random.default_rng(seed).permutation(np.flatnonzero(counts))
    words = words[np.argsort(-counts[words], kind="stable")]
    ranks = np.zeros(len(counts), dtype=np.int64)
    ranks[words] = np.arange(1, len(words) + 1)
    return ranks


def halves(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return two halves of equal size of sentences in the order given.

    Raises:
        InputError: there are fewer than 2.
    """
    half = len(rows) // 2
    if not half:
        raise InputError(f"halves of the sentences are compared, so 2 or more are needed, got {len(rows)}")
    return rows[:half], rows[half : 2 * half]
