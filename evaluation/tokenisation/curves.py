"""How estimates depend on the number of segmentations and their order, the temperature of Q, and the model's work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from truesource.evaluation.tokenisation.documents import Documents
from truesource.evaluation.tokenisation.estimators.estimate import Bound
from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS, ONE_BEST
from truesource.evaluation.tokenisation.estimators.segmentations import score_segmentations
from truesource.evaluation.tokenisation.n_best import canonical_first, n_best
from truesource.evaluation.tokenisation.perplexity import perplexity
from truesource.evaluation.tokenisation.run_estimators import evaluate_runs
from truesource.evaluation.tokenisation.settings import EstimatorRun, EstimatorSettings
from truesource.generator.language_model import TokenisedModel
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import track

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
SAMPLERS = ("wr", "wor", "wor1", "nbest")
WARMED = "wor1"  #: the estimator of the temperature curve
Order = Literal["tokeniser", "model"]
ORDERS: tuple[Order, ...] = ("tokeniser", "model")


@dataclass(frozen=True, eq=False)
class OrderCurves:
    """Sums over the first k of N segmentations of every document, in two orders."""

    model: str
    log_p: dict[
        Order, FloatArray
    ]  #: (N,) sums over documents of the log of the sum over the first 1, 2, ... segmentations, nats
    one_best: float  #: sum of log P(T*), nats
    words: int
    documents: int
    left_out: int  #: documents of which T* has probability zero

    def records(self) -> list[dict[str, Any]]:
        """One record per order and number of segmentations, for JSON; ``ppl`` is per word, None if too large."""
        return [
            {
                "model": self.model,
                "order": order,
                "cuts": k,
                "log_p": value,
                "ppl": perplexity(-value / self.words),
                "documents": self.documents,
                "left_out": self.left_out,
            }
            for order, values in self.log_p.items()
            for k, value in enumerate(values.tolist(), start=1)
        ]


def order_curves(model: TokenisedModel, documents: Documents, n: int = 128) -> OrderCurves:
    """Cumulative sums over N segmentations, in the order of Q and in that of P (Cao & Rimell 2021, figure 3).

    The segmentations are those of ``nbest``: T* is the first in the order of Q, whether Q ranks it first or not (scores
    that are not the tokeniser's own), so that the value at k is that of ``nbest`` with k samples. The second order is
    an oracle experiment: it says how many of the segmentations matter. A document of fewer than ``n`` segmentations has
    its whole sum from its last segmentation on. All values are lower bounds.

    Raises:
        InputError: ``n`` is below 1, no document is left, or the canonical tokenisation of one is longer than what the
            model reads.
    """
    if n < 1:
        raise InputError(f"at least one segmentation is summed, got {n}")
    totals: dict[Order, FloatArray] = {order: np.zeros(n) for order in ORDERS}
    one_best, words, left_out = 0.0, 0, 0
    for document in track(documents.documents, f"the {n} best segmentations", len(documents)):
        cuts = canonical_first(document.best, n_best(document.lattice, n).each(), n)
        by_q = score_segmentations(model, document, cuts).log_p
        if not np.isfinite(by_q[0]):
            left_out += 1
            continue
        one_best += float(by_q[0])
        words += document.text.n_words
        for order, values in zip(ORDERS, (by_q, np.sort(by_q)[::-1]), strict=True):
            sums = np.logaddexp.accumulate(values)
            totals[order] += np.append(sums, np.full(n - len(sums), sums[-1]))
    if not words:
        raise InputError(f"the model gives probability zero to the canonical tokenisation of all {left_out} documents")
    return OrderCurves(model.name, totals, one_best, words, len(documents) - left_out, left_out)


@dataclass(frozen=True, kw_only=True)
class EstimatorPoint:
    """One estimator at one setting, over all documents that count."""

    model: str
    estimator: str
    settings: EstimatorSettings
    log_p: float  #: sum over documents, nats
    ppl: float | None  #: per word; None beyond the largest float
    standard_error: float | None  #: of ``log_p``, nats
    log_lower: float  #: certainly at most the truth, nats
    bound: Bound
    steps_per_piece: float  #: token-steps of the model over pieces of T*
    documents: int

    def as_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        settings = self.settings
        return {
            "model": self.model,
            "estimator": self.estimator,
            "samples": settings.samples,
            "b": settings.b,
            "seed": settings.seed,
            **{key: value for key, value in vars(self).items() if key not in ("model", "estimator", "settings")},
        }


def sample_curves(
    model: TokenisedModel,
    documents: Documents,
    settings: EstimatorSettings,
    *,
    estimators: Sequence[str] = SAMPLERS,
    counts: Sequence[int] = COUNTS,
) -> list[EstimatorPoint]:
    """Estimates against the number of segmentations scored; ``one-best`` is the first point.

    An estimator is left out at numbers of samples that are too few for it. All points are over the same documents.

    Raises:
        InputError: as `truesource.evaluation.tokenisation.run_estimators.evaluate_runs`.
    """
    _known(estimators)
    runs = {
        f"{name}/{k}": EstimatorRun(name, replace(settings, samples=k))
        for name in estimators
        for k in counts
        if k >= ESTIMATORS[name].fewest
    }
    return _points(model, documents, runs)[0]


@dataclass(frozen=True)
class TemperaturePoint:
    """WOR + 1-best at one inverse temperature."""

    point: EstimatorPoint
    #: of its perplexity to that of n-best with as many segmentations, percent; below 0 is tighter; None: too large
    difference: float | None

    def as_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**self.point.as_record(), "difference_percent": self.difference}


def temperature_curve(
    model: TokenisedModel,
    documents: Documents,
    settings: EstimatorSettings,
    *,
    inverse_temperatures: Sequence[float],
    estimator: str = WARMED,
) -> list[TemperaturePoint]:
    """Perplexity over the inverse temperature b of Q, in percent of n-best's (Cao & Rimell 2021, figure 1).

    Raises:
        InputError: as `truesource.evaluation.tokenisation.run_estimators.evaluate_runs`.
    """
    _known([estimator])
    runs = {f"{estimator}/b={b:g}": EstimatorRun(estimator, replace(settings, b=b)) for b in inverse_temperatures}
    (_, nbest, *points), words = _points(model, documents, {"nbest": EstimatorRun("nbest", settings), **runs})
    ratios = (perplexity((nbest.log_p - point.log_p) / words) for point in points)
    return [
        TemperaturePoint(point, None if ratio is None else 100.0 * (ratio - 1.0))
        for point, ratio in zip(points, ratios, strict=True)
    ]


def _points(
    model: TokenisedModel, documents: Documents, runs: dict[str, EstimatorRun]
) -> tuple[list[EstimatorPoint], float]:
    """T*, then the runs in their order; and the words of the documents that count."""
    found = evaluate_runs(model, documents, runs)
    words = float(found.words.sum())
    points = []
    for label in (ONE_BEST, *runs):
        total = found.total(label)
        points.append(
            EstimatorPoint(
                model=model.name,
                estimator=total.estimator,
                settings=found.runs[label].settings,
                log_p=total.log_p,
                ppl=perplexity(-total.log_p / words),
                standard_error=total.standard_error,
                log_lower=total.log_lower,
                bound=total.bound,
                steps_per_piece=total.steps_per_piece,
                documents=len(found.documents),
            )
        )
    return points, words


def _known(estimators: Sequence[str]) -> None:
    for name in estimators:
        if name not in ESTIMATORS:
            raise InputError(f"no estimator is called {name!r}; there are {', '.join(ESTIMATORS)}")
