"""What becomes of the claims of a row, and of the row.

A claim is a set of differences that must lie above 0, below 0 or in a range; each has a 95% interval. The interval of a
difference is that of Student's t over training seeds, paired, where both sides have two seeds in common; for the
distances of two models of one objective from the truth it is that of `truesource.evaluation.comparing`, over sentences
and seeds. Otherwise it reaches from the least to the largest difference of the two intervals, which is wider. Numbers
without an interval are compared as they are, and the verdict says so. Intervals are not adjusted for the number of
claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from truesource.reproduce.quantities import QuantityValue, constant, minus
from truesource.reproduce.rows import Claim, Row

Contrasts = Callable[[str, str], QuantityValue | None]  #: a paired difference that the run knows, of two quantities


class Verdict(StrEnum):
    """Of a claim or of a row."""

    HOLDS = "holds"
    CORRECTED = "holds with a correction"
    PART = "holds in part"
    REVERSED = "does not hold here"
    UNDECIDED = "undecided here"
    UNTESTED = "cannot be tested"


@dataclass(frozen=True)
class Difference:
    """A number that a claim is about, and the range in which it must lie."""

    what: str
    measured: QuantityValue
    low: float  #: of the range
    high: float
    closed: bool = False  #: whether the ends of the range belong to it; else a tie is undecided

    @property
    def verdict(self) -> Verdict:
        """Whether its interval lies in the range, outside of it, or on both sides."""
        if self.measured.value is None:
            return Verdict.UNDECIDED
        low, high = self.measured.bounds
        if self.low < low and high < self.high:
            return Verdict.HOLDS
        if self.closed and self.low <= low and high <= self.high:
            return Verdict.HOLDS
        return Verdict.REVERSED if high < self.low or low > self.high else Verdict.UNDECIDED


@dataclass(frozen=True)
class Tested:
    """A claim with its differences."""

    verdict: Verdict
    differences: Sequence[Difference]

    @property
    def exact(self) -> bool:
        """Whether some difference has no interval, so that numbers were compared as they are."""
        return any(each.measured.value is not None and each.measured.interval is None for each in self.differences)


def judged(claim: Claim, quantities: Mapping[str, QuantityValue], known: Contrasts = lambda one, other: None) -> Tested:
    """The verdict on a claim.

    Args:
        claim: of the row.
        quantities: their values.
        known: better intervals of differences than those of `minus`, where the run has some.
    """
    differences = _differences(claim, quantities, known)
    return Tested(all_of([each.verdict for each in differences]), differences)


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Of statements that must all hold."""
    if Verdict.REVERSED in verdicts:
        return Verdict.REVERSED
    return Verdict.HOLDS if all(each is Verdict.HOLDS for each in verdicts) else Verdict.UNDECIDED


def verdict_of(row: Row, claims: Sequence[Verdict]) -> Verdict:
    """The verdict on a row: on all its claims together; in part where some hold and others are reversed."""
    if not row.runs:
        return Verdict.UNTESTED
    found = all_of(claims)
    if found is Verdict.REVERSED and Verdict.HOLDS in claims:
        return Verdict.PART
    return Verdict.CORRECTED if found is Verdict.HOLDS and row.correction is not None else found


def _differences(claim: Claim, values: Mapping[str, QuantityValue], known: Contrasts) -> list[Difference]:
    def below(small: str, large: str) -> Difference:
        found = known(large, small) or minus(values[large], values[small])
        return Difference(f"{large} - {small}", found, 0.0, math.inf)

    if claim.less is not None:
        return [below(*claim.less)]
    if claim.increasing is not None:
        return [below(*pair) for pair in zip(claim.increasing, claim.increasing[1:], strict=False)]
    if claim.decreasing is not None:
        return [below(small, large) for large, small in zip(claim.decreasing, claim.decreasing[1:], strict=False)]
    if claim.smallest is not None:
        return [below(claim.smallest.of, other) for other in claim.smallest.among]
    if claim.largest is not None:
        return [below(other, claim.largest.of) for other in claim.largest.among]
    if claim.positive is not None:
        return [Difference(claim.positive, values[claim.positive], 0.0, math.inf)]
    if claim.negative is not None:
        return [Difference(claim.negative, values[claim.negative], -math.inf, 0.0)]
    if claim.between is not None:
        low = -math.inf if claim.between.low is None else claim.between.low
        high = math.inf if claim.between.high is None else claim.between.high
        return [Difference(claim.between.of, values[claim.between.of], low, high, closed=True)]
    return [_equal(claim, values)]


def _equal(claim: Claim, values: Mapping[str, QuantityValue]) -> Difference:
    assert claim.equal is not None
    of, to = claim.equal.of, claim.equal.to
    found = minus(values[of], values[to] if isinstance(to, str) else constant(to))
    return Difference(f"{of} - {to}", found, -claim.equal.within, claim.equal.within, closed=True)
