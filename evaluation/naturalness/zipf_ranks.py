"""What ranks that are estimated do to a fitted law, and the law without it.

A word that is too frequent by chance in the half that ranks gets too high a rank, and its count in the other half is
that of a rarer word: counts by estimated rank are flatter than those by true rank, and the rarest words have no rank at
all. The fit is then off by up to several standard errors. So the law is sought whose own samples, of the same size,
would be fitted by what the text was fitted by (indirect inference; Gourieroux, Monfort & Renault 1993).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from evaluation.naturalness.zipf_law import ALPHA, Law, fit_law, log_pmf
from grammar.errors import InputError

RANKINGS = 8  #: drawn from a law; the expected counts by rank are means over them
STEPS = 8  #: corrections, the first two whole, the later ones in part (Robbins & Monro 1951)
NEAR = 0.5  #: standard errors of alpha that the fit of a law's samples may be off the fit of the text at last
MOST_WORDS = 30  #: times the words that are ranked: the largest support considered


class TrueLaw(NamedTuple):
    """The law that text was drawn from, whose words were ranked by a sample."""

    alpha: float
    beta: float
    words: int  #: support 1..K, words that were not seen among them


def true_law(law: Law, error: float, ranking_tokens: int, *, pure: bool, seed: int) -> TrueLaw | None:
    """The law whose samples are fitted by ``law``; None where none is found.

    Tokens of the samples are independent; words that recur within sentences are ranked somewhat worse than that.

    Args:
        law: fitted to counts by ranks that come from other sentences.
        error: its standard error of alpha.
        ranking_tokens: tokens that ranked the words.
        pure: Zipf's law, ``beta = 0``.
        seed: of the rankings.
    """
    alpha, log_beta = law.alpha, math.log1p(law.beta)
    off, words = math.inf, law.types
    for step in range(STEPS):
        try:
            words, again = fit_of_samples(alpha, math.expm1(log_beta), law.types, ranking_tokens, pure=pure, seed=seed)
        except InputError:
            return None
        off, gain = law.alpha - again.alpha, 1.0 / max(1, step)  # later steps are means, which are without the noise
        alpha += gain * off
        log_beta = max(0.0, log_beta + gain * (math.log1p(law.beta) - math.log1p(again.beta)))
        if not ALPHA[0] < alpha < ALPHA[1]:
            return None
    return TrueLaw(alpha, math.expm1(log_beta), words) if abs(off) <= NEAR * error else None


def fit_of_samples(
    alpha: float, beta: float, types: int, tokens: int, *, pure: bool = False, seed: int
) -> tuple[int, Law]:
    """What would be fitted to samples of a law in which so many different words are expected.

    Args:
        alpha: of the law.
        beta: of the law.
        types: different words among the tokens that rank.
        tokens: that rank.
        pure: Zipf's law is fitted.
        seed: of the rankings, drawn alike for laws that differ little.

    Returns:
        words of the law, and the fit.

    Raises:
        InputError: as `fit_law`.
    """
    words = support(alpha, beta, types, tokens)
    probability = np.exp(log_pmf(alpha, beta, words)[1])
    rng = np.random.default_rng([seed, words.bit_length()])
    ranked = np.zeros(words)
    seen = 0
    for _ in range(RANKINGS):
        counts = rng.multinomial(tokens, probability)
        order = np.lexsort((rng.random(words), -counts))[: np.count_nonzero(counts)]
        ranked[: len(order)] += probability[order]
        seen += len(order)
    return words, fit_law(ranked[: round(seen / RANKINGS)], pure=pure)


def support(alpha: float, beta: float, types: int, tokens: int) -> int:
    """The words of a law in so many tokens of which so many types are expected; at most `MOST_WORDS` for each type."""
    low, high, most = types, types, MOST_WORDS * types
    while high < most and expected_types(alpha, beta, high, tokens) < types:
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if expected_types(alpha, beta, middle, tokens) < types else (low, middle)
    return high


def expected_types(alpha: float, beta: float, words: int, tokens: int) -> float:
    """Different words expected among independent tokens of a law."""
    share = np.exp(log_pmf(alpha, beta, words)[1])
    return float(-np.expm1(tokens * np.log1p(-np.minimum(share, 1.0 - 1e-12))).sum())
