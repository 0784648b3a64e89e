"""Sentence lengths of a corpus against the exact lengths of a grammar, or against another corpus (figure 4a).

Both p-values are exact up to the Monte Carlo error of 9,999 draws: the null distribution is drawn, not approximated,
since lengths are discrete (``(1 + draws at least as far) / (1 + draws)``; Phipson & Smyth 2010).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.naturalness.encoded import IntArray
from grammar.errors import InputError

FloatArray = NDArray[np.float64]
DRAWS = 9999


@dataclass(frozen=True)
class LengthDistance:
    """How far two length distributions are from each other, and from chance."""

    tv: float  #: total variation, half the L1 distance, in [0, 1]
    tv_null: float  #: its mean where there is no difference: what these sizes cannot tell from 0
    tv_p: float  #: probability of such a total variation, or a larger one, by chance
    chi_square: float | None  #: Pearson's; None where a length was seen that has probability 0
    chi_square_p: float  #: probability of such a value, or a larger one, by chance


def length_counts(lengths: IntArray, high: int) -> IntArray:
    """Sentences of 0, 1, ..., ``high`` tokens and, last, of more, (high+2,)."""
    return np.bincount(np.minimum(lengths, high + 1), minlength=high + 2)


def with_rest(pmf: FloatArray) -> FloatArray:
    """A length pmf up to a highest length, and the mass beyond it; (high+1,) gives (high+2,)."""
    return np.append(pmf, max(0.0, 1.0 - float(pmf.sum())))


def against_exact(counts: IntArray, pmf: FloatArray, *, draws: int = DRAWS, seed: int = 0) -> LengthDistance:
    """One corpus against a known distribution; the null draws corpora of its size from the distribution.

    Args:
        counts: (n,) sentences of each length, from `length_counts`.
        pmf: (n,) probability of each, from `with_rest`; sums to 1.
        draws: of the multinomial null distribution.
        seed: of the draws.

    Raises:
        InputError: there are no sentences, or the two have different numbers of lengths.
    """
    total = _checked(counts, pmf)
    expected = pmf / pmf.sum()
    drawn = np.random.default_rng(seed).multinomial(total, expected, size=draws)
    null_tv = 0.5 * np.abs(drawn / total - expected).sum(axis=1)
    tv = 0.5 * float(np.abs(counts / total - expected).sum())
    possible = expected > 0.0
    p_tv = _p_value(tv, null_tv)
    if counts[~possible].any():
        return LengthDistance(tv, float(null_tv.mean()), p_tv, None, 1.0 / (1 + draws))
    mean = total * expected[possible]
    null = ((drawn[:, possible] - mean) ** 2 / mean).sum(axis=1)
    chi_square = float(((counts[possible] - mean) ** 2 / mean).sum())
    return LengthDistance(tv, float(null_tv.mean()), p_tv, chi_square, _p_value(chi_square, null))


def between(counts: IntArray, others: IntArray, *, draws: int = DRAWS, seed: int = 0) -> LengthDistance:
    """Two corpora; the null deals the sentences of both out again (permutation of sentences).

    Args:
        counts: (n,) sentences of each length, from `length_counts`.
        others: (n,) of the other corpus.
        draws: of the hypergeometric null distribution.
        seed: of the draws.

    Raises:
        InputError: a corpus has no sentences, or the two have different numbers of lengths.
    """
    total, n_others = _checked(counts, others), _checked(others, counts)
    pooled = counts + others
    rng = np.random.default_rng(seed)
    drawn = rng.multivariate_hypergeometric(pooled, total, size=draws, method="marginals")
    null_tv = 0.5 * np.abs(drawn / total - (pooled - drawn) / n_others).sum(axis=1)
    tv = 0.5 * float(np.abs(counts / total - others / n_others).sum())
    seen = pooled > 0
    scale = pooled[seen] * total * n_others / (total + n_others)  # (a n_b - b n_a)^2 / (n_a n_b pooled), summed
    mean = pooled[seen] * total / (total + n_others)
    weight = scale / (total + n_others)
    null = ((drawn[:, seen] - mean) ** 2 / weight).sum(axis=1)
    chi_square = float(((counts[seen] - mean) ** 2 / weight).sum())
    return LengthDistance(tv, float(null_tv.mean()), _p_value(tv, null_tv), chi_square, _p_value(chi_square, null))


def _checked(counts: IntArray, other: IntArray | FloatArray) -> int:
    """The number of sentences counted."""
    total = int(counts.sum())
    if not total or len(counts) != len(other):
        raise InputError(
            f"lengths are compared over {len(counts)} and {len(other)} bins with {total} sentences;"
            " give both up to the same highest length, and at least one sentence"
        )
    return total


def _p_value(statistic: float, null: FloatArray) -> float:
    """The share of draws at least as far, the statistic counted among them; ties are met within rounding."""
    return (1 + int(np.count_nonzero(null >= statistic - 1e-12 * max(1.0, statistic)))) / (1 + len(null))
