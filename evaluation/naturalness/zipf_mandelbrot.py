"""The Zipf-Mandelbrot law of a corpus (figure 3 of Jumelet & Zuidema 2023).

Ranks come from one half of the sentences and counts from the other, as a rank and a count taken from the same text
err together (Piantadosi 2014). The law ``p(r) ~ (r + beta)^-alpha`` has the finite support 1..K, the words of the
ranking half: an infinite one has mass that no text has. Words that only the counted half has are left out, and their
share is reported: were they ranked last, each would be there because it was counted, and the tail would turn up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from truesource.evaluation.measures.integer_corpus import Encoded
from truesource.evaluation.measures.zipf_law import LEAST_TYPES, Law, fit_law, log_pmf, objective
from truesource.evaluation.naturalness.zipf_ranks import EstimatedRankFit, Missing, TrueLaw, true_law
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError

RELEASED_START = (1.2, 2.0)  #: (alpha, beta)
RELEASED_BOUNDS = ((1.0 + 1e-6, 30.0), (0.05, 50.0))  #: of alpha and beta


@dataclass(frozen=True)
class ZipfFit:
    """A law by estimated ranks, the law behind it, and the counts."""

    law: Law  #: fitted to the counts, by ranks that are estimated
    truth: TrueLaw | Missing  #: the law without the errors of the ranks, with its intervals, or why there is none
    counts: IntArray  #: (K,) occurrences in the counted half, by rank in the other
    unranked: float  #: share of the counted tokens whose word the ranking half does not have, left out

    @property
    def parameters(self) -> tuple[float, float]:
        """Alpha and beta without the errors of the ranks, or where they are not known, with them."""
        if isinstance(self.truth, TrueLaw):
            return self.truth.alpha.value, self.truth.beta.value
        return self.law.alpha, self.law.beta


@dataclass(frozen=True)
class ReleasedFit:
    """Parameters by the published recipe; its objective is no likelihood, so there is nothing to take errors from."""

    alpha: float  #: above 1, as the support is infinite
    beta: float  #: in [0.05, 50]
    types: int  #: words that took part


def fit_corpus(corpus: Encoded, rows: IntArray, *, pure: bool = False, seed: int = DEFAULT_SEED) -> ZipfFit:
    """The law of a corpus: ranks from the first half of the sentences ``rows``, counts from the second.

    The law that is fitted is that of the estimated ranks; `evaluation.naturalness.zipf_ranks.true_law` finds the one
    behind it. ``benchmarks/coverage.py`` measures how often 95% intervals of samples of known laws hold.

    Raises:
        InputError: there are fewer than 2 sentences, or too few different words.
    """
    ranking, counted = halves(rows)
    ranks = ranks_of(corpus.counts(ranking), seed)
    chosen = corpus.among(counted)
    of_token = ranks[corpus.tokens[chosen]]
    ranked = of_token > 0
    counts = np.bincount(of_token[ranked] - 1, minlength=int(ranks.max()))
    law = fit_law(counts, pure=pure)
    sentence = corpus.sentence[chosen][ranked]
    _, gradient, information = objective(law.alpha, law.beta, counts / counts.sum())
    scores = score_covariance(law, of_token[ranked], sentence)
    found = EstimatedRankFit(
        law, gradient, information, scores, len(np.unique(sentence)), int(corpus.lengths[ranking].sum())
    )
    truth = true_law(found, pure=pure, seed=seed)
    return ZipfFit(law, truth, counts, 1.0 - float(ranked.mean()))


def fit_released(corpus: Encoded, rows: IntArray, *, seed: int = DEFAULT_SEED) -> ReleasedFit:
    """The published recipe: `released_objective` over the words of the ranking half that the other half has twice.

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

    found = optimize.minimize(
        loss,
        np.array(RELEASED_START),
        method="Powell",
        bounds=RELEASED_BOUNDS,
        options={"xtol": 1e-9, "ftol": 1e-13},
    )
    return ReleasedFit(float(found.x[0]), float(found.x[1]), int(np.count_nonzero(used)))


def released_objective(alpha: float, beta: float, ranks: FloatArray, weights: FloatArray) -> float:
    """What the published recipe maximises.

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
    """Covariance of the gradient of the mean log-likelihood in (alpha, beta), from independent sentences, (2, 2).

    It is the middle of the sandwich ``H^-1 C H^-1`` (Huber 1967): tokens of one sentence are not independent and no
    text follows the law exactly, so the observed information alone is too sure. The ranks are fixed here, as they come
    from other sentences.

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
    """Two halves of equal size of sentences in the order given.

    Raises:
        InputError: there are fewer than 2.
    """
    half = len(rows) // 2
    if not half:
        raise InputError(f"halves of the sentences are compared, so 2 or more are needed, got {len(rows)}")
    return rows[:half], rows[half : 2 * half]
