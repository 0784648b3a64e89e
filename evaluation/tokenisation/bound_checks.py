"""Totals that are too low: below what some run certainly reaches, or far below the best estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtr

from truesource.evaluation.tokenisation.estimators.estimate import student
from truesource.evaluation.tokenisation.results import Evaluation, Total

DOUBT = 3.0  #: standard errors that are known, and times the rounding, that may be chance
_TAIL = float(ndtr(-DOUBT))  #: what lies beyond them; of errors over a few filters, Student's t has as much further out


@dataclass(frozen=True)
class Shortfall:
    """How far the total of one run lies below another."""

    run: str
    nats: float  #: of the total
    below: str  #: label of the other run
    certain: bool  #: whether it lies below a certain lower bound, else below the best estimate
    standard_error: float | None  #: of the run, nats

    @property
    def note(self) -> str:
        """In a few words, for tables."""
        reason = "too low" if self.standard_error is None else "error bar too small"
        return f"{reason}: {self.nats:.3g} below {self.below}"


def below_bounds(evaluation: Evaluation, run: str) -> Shortfall | None:
    """Whether a run's total lies below what some run certainly reaches, by more than `chance` and rounding.

    Every sum over distinct segmentations is at most P(D), whatever run scored them. A run without a standard error has
    none to hide behind: its total is compared as it is.
    """
    return _largest(run, evaluation.total(run), _bounds(evaluation))


def shortfalls(evaluation: Evaluation, marginal: str) -> dict[str, Shortfall]:
    """By label, the unbiased runs whose standard errors cannot be believed.

    These lie more than `chance` of both, and rounding, below the run that stands for log P(D), or below what
    some run certainly reaches. Where ``marginal`` has no standard error, only the latter counts.

    Args:
        evaluation: of all runs.
        marginal: label of the run that stands for log P(D).
    """
    best, bounds = evaluation.total(marginal), _bounds(evaluation)
    found = {}
    for label in evaluation.runs:
        total = evaluation.total(label)
        if total.bound != "unbiased":
            continue
        others = list(bounds)
        if label != marginal and None not in (total.standard_error, best.standard_error):
            others.append((best.log_p, marginal, False, chance(best)))
        if (one := _largest(label, total, others)) is not None:
            found[label] = one
    return found


def chance(total: Total) -> float:
    """How far a total may be off by chance, nats: three standard errors, more where these are uncertain."""
    return student(_TAIL, total.degrees) * (total.standard_error or 0.0)


def _bounds(evaluation: Evaluation) -> list[tuple[float, str, bool, float]]:
    """What each run certainly reaches: nats, label, that it is certain, and no error."""
    return [(evaluation.total(label).log_lower, label, True, 0.0) for label in evaluation.runs]


def _largest(run: str, total: Total, others: list[tuple[float, str, bool, float]]) -> Shortfall | None:
    """The largest shortfall that is no chance."""
    own = chance(total)
    found = [
        Shortfall(run, value - total.log_p, label, certain, total.standard_error)
        for value, label, certain, error in others
        if value - total.log_p > math.hypot(own, error, DOUBT * total.rounding)
    ]
    return max(found, key=lambda one: one.nats, default=None)
