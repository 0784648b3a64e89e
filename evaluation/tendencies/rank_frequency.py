"""Frequencies of words by rank, and Zipf's law of them (Meister & Cotterell 2021, section 5.1).

There are three Kolmogorov-Smirnov distances: to the law fitted to the sample, to the law fitted to the reference, and
to the reference itself. Here laws have as many ranks as there are words. The published variant sets counts of the first
10,000 ranks, normalised, against a law with infinitely many: a law with s = 1.2 has 14% of its mass beyond rank 10,000,
so that no text, and not the law itself, comes closer than .14.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from truesource.evaluation.measures.zipf_law import fit_law
from truesource.grammar.inference.exact import Variant
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import NothingToMeasureError

PAPER_RANKS = 10_000
_S = (1.0 + 1e-9, 50.0)  #: bounds of the search for the exponent of an infinite law


@dataclass(frozen=True, kw_only=True)
class RankFrequency:
    """A sample against Zipf's law and against a reference; distances are in [0, 1]."""

    exponent: float  #: s of the law fitted to the sample
    reference_exponent: float  #: s of the law fitted to the reference
    to_own_law: float  #: D_ptheta
    to_reference_law: float  #: D_phat
    to_reference: float  #: D_p
    ranks: int  #: that the distributions are over
    unranked: float  #: share of the sample's tokens whose words have no rank, excluded


def by_own_rank(counts: IntArray) -> IntArray:
    """Return counts in descending order, those above 0."""
    return np.sort(counts[counts > 0])[::-1]


def by_rank_of(counts: IntArray, probability: FloatArray) -> IntArray:
    """Return counts by descending known probabilities, without words of probability 0; ties in word order.

    Ranks that are known carry no error of the sample, which ranks taken from its own counts do (Piantadosi 2014).
    """
    return counts[np.argsort(-probability, kind="stable")[: int(np.count_nonzero(probability))]]


def rank_frequency(
    sample: IntArray,
    reference: IntArray | FloatArray,
    *,
    unranked: float = 0.0,
    variant: Variant = "default",
    reference_exponent: float | None = None,
) -> RankFrequency:
    """Compare a sample's rank-frequency distribution.

    Args:
        sample: (K,) counts by rank, from `by_own_rank` or `by_rank_of`.
        reference: (K',) counts of the reference by rank, or exact probabilities.
        unranked: share of the sample's tokens that has no rank, to be reported.
        variant: ``paper``: the first 10,000 ranks against laws with infinitely many.
        reference_exponent: of the law of the reference if it has been fitted before, see `exponent_of`.

    Raises:
        InputError: one of the two has fewer than 3 ranks, or fewer than 2 words that occur.
    """
    if variant == "paper":
        sample, reference = sample[:PAPER_RANKS], reference[:PAPER_RANKS]
    ranks = max(len(sample), len(reference))
    laws = [
        exponent_of(sample, variant),
        exponent_of(reference, variant) if reference_exponent is None else reference_exponent,
    ]
    observed, other = (_cdf(np.asarray(side, dtype=np.float64), ranks) for side in (sample, reference))
    cdfs = [np.cumsum(_pmf(s, ranks if variant == "default" else None, ranks)) for s in laws]
    return RankFrequency(
        exponent=laws[0],
        reference_exponent=laws[1],
        to_own_law=float(np.abs(observed - cdfs[0]).max()),
        to_reference_law=float(np.abs(observed - cdfs[1]).max()),
        to_reference=float(np.abs(observed - other).max()),
        ranks=ranks,
        unranked=unranked,
    )


def fit_infinite(counts: IntArray | FloatArray) -> float:
    """Return the exponent s > 1 of ``k^-s / zeta(s)``, k = 1, 2, ..., by maximum likelihood.

    Raises:
        InputError: there are fewer than 2 ranks that occur; the likelihood then has no maximum.
    """
    if np.count_nonzero(counts) < 2:
        raise NothingToMeasureError("Zipf's law needs at least two different words", "too-few-words")
    mean_log = float(np.log(np.arange(1, len(counts) + 1)) @ (counts / counts.sum()))
    fit = optimize.minimize_scalar(
        lambda s: s * mean_log + np.log(special.zeta(s)), bounds=_S, method="bounded", options={"xatol": 1e-12}
    )
    return float(fit.x)


def exponent_of(counts: IntArray | FloatArray, variant: Variant = "default") -> float:
    """Return the exponent of the law fitted to counts, or probabilities, by rank.

    Raises:
        InputError: as `rank_frequency`.
    """
    return fit_law(np.asarray(counts), pure=True).alpha if variant == "default" else fit_infinite(counts)


def _pmf(exponent: float, support: int | None, ranks: int) -> FloatArray:
    """Return Zipf's law at ranks 1 to ``ranks``, its support 1 to ``support``; None: infinite."""
    weight = np.arange(1, ranks + 1, dtype=np.float64) ** -exponent
    total = float(special.zeta(exponent)) if support is None else float(weight[:support].sum())
    return weight / total


def _cdf(counts: FloatArray, ranks: int) -> FloatArray:
    return np.cumsum(np.pad(counts / counts.sum(), (0, ranks - len(counts))))
