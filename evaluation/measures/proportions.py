"""Intervals of shares: of sentences, or of what several of belong to one sentence, such as minimal pairs and words."""

from __future__ import annotations

import math

from scipy.special import ndtri

from truesource.evaluation.measures.bootstrap import TAILS, Interval
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.printable import too_few

Z = float(ndtri(TAILS[1]))


def proportion(right: FloatArray, counted: FloatArray) -> Interval | None:
    """Share of pairs that are right with the 95% interval of Wilson (1927); None where no pair counts.

    Of too few sources, see `truesource.grammar.support.printable.too_few`, there is no interval.

    Pairs of one source are not independent. So the number of pairs is divided by the design effect (Kish 1965): the
    variance of the share between sources, over that of as many independent pairs, at least 1. A share of 0 or 1 has no
    variance to see; the sources are counted there, as for a single source.

    Args:
        right: (N,) by source, pairs that are right; half of one that is neither.
        counted: (N,) by source, pairs that count.
    """
    pairs = float(counted.sum())
    if pairs == 0.0:
        return None
    share = float(right.sum()) / pairs
    if too_few(counting(counted)):
        return Interval(share)
    return Interval(share, *wilson(share, _effective(right, counted, share)))


def counting(counted: FloatArray) -> int:
    """Number of sources (N,) of which something counts."""
    return int((counted > 0.0).sum())


def wilson(share: float, n: float) -> tuple[float, float]:
    """Ends of the 95% interval of a share of ``n`` independent trials; ``n`` need not be whole."""
    z2 = Z * Z / n
    middle = (share + z2 / 2.0) / (1.0 + z2)
    half = math.sqrt(z2 * (share * (1.0 - share) + z2 / 4.0)) / (1.0 + z2)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def _effective(right: FloatArray, counted: FloatArray, share: float) -> float:
    """Number of independent pairs that would have the variance found."""
    pairs, sources = float(counted.sum()), counting(counted)
    alone = share * (1.0 - share)
    if alone <= 0.0:
        return float(sources)
    residual = right - share * counted
    variance = sources / (sources - 1) * float(residual @ residual) / pairs**2
    return pairs / max(1.0, variance * (pairs - 1.0) / alone)
