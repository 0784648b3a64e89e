"""Perplexities of runs, the grid of Cao & Rimell (2021, table 1), and curves of estimates."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratios
from truesource.evaluation.tokenisation import EstimatorRun, EstimatorSettings
from truesource.evaluation.tokenisation.documents import Documents
from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS, ONE_BEST
from truesource.evaluation.tokenisation.estimators.weights import score_segmentations
from truesource.evaluation.tokenisation.paths import canonical_first, n_best
from truesource.evaluation.tokenisation.results import Evaluation, evaluate_documents, evaluate_runs, pool
from truesource.generator.piece_model import TokenisedModel
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords, track
from truesource.grammar.support.settings import DEFAULT_SEED

LN2 = math.log(2.0)
MOST = math.log(sys.float_info.max)  #: nats, whose exponential is the largest float
SAMPLERS = ("wr", "wor", "wor1", "nbest")  #: estimators of the grid and of the curves
WARMED = "wor1"  #: the estimator of the temperature curve
Order = Literal["tokeniser", "model"]
ORDERS: tuple[Order, ...] = ("tokeniser", "model")
Consistency = Literal["consistent", "inconsistent"]
PREFIXES: Mapping[Consistency, str] = {
    "consistent": "consistent-",
    "inconsistent": "",
}  #: prefixes of the estimators' names


def perplexities(evaluation: Evaluation, seed: int = DEFAULT_SEED) -> dict[str, dict[str, Score]]:
    """Compute perplexities of the documents under each run (Cao & Rimell 2021, section 4.1).

    For each label, including ``one-best``: ``ppl``, ``exp(-sum of log P(D) / sum of words)``; ``bits_per_character``
    and ``bits_per_byte``; and, but for ``one-best``, ``improvement``: (ppl of T* - ppl) / ppl of T*, a share below 1.
    ``ppl`` and ``improvement`` are missing if too large for a float (some 709 nats per word: text without white
    space); if only an end of their interval is, the interval is missing.
    Words, characters and bytes are counted in the original texts; white space and the end of the text are not
    words; the signature says if P includes the end of the text (``eos``). Logarithms of
    unbiased estimates are too low on average, so perplexities are too high. Intervals are from a document bootstrap, in
    which all runs have the same documents, and do not include the error of the estimates (see `Total`).
    """
    one_best = evaluation.one_best
    words, characters, n_bytes = evaluation.words, evaluation.characters, evaluation.n_bytes
    by_label: dict[str, dict[str, Score]] = {}
    for label in evaluation.runs:
        log_p = evaluation.log_p(label)
        total = np.stack([-log_p, -log_p / LN2, -log_p / LN2, one_best - log_p], axis=1)
        count = np.stack([words, characters, n_bytes, words], axis=1)
        value = total.sum(axis=0) / count.sum(axis=0)
        intervals = resampled_ratios(total, count, seed=seed)
        intervals[:, :3] = np.maximum(intervals[:, :3], 0.0)  # surprisals are not negative
        parts = {"ci": ci_part(len(words), seed, "document"), "words": int(words.sum())}
        signed = {
            unit: evaluation.signed(label, bound=evaluation.total(label).bound, unit=unit, **parts)
            for unit in ("per-word", "bits", "share")
        }
        scores: dict[str, Score] = {}
        with np.errstate(over="ignore"):  # an end beyond the largest float is missing
            ppl, improvement = np.exp(intervals[:, 0]), -np.expm1(intervals[::-1, 3])
        if value[0] <= MOST:
            scores["ppl"] = Score("ppl", math.exp(value[0]), signed["per-word"], *ends(*ppl))
        for i, name in ((1, "bits_per_character"), (2, "bits_per_byte")):
            scores[name] = Score(name, float(value[i]), signed["bits"], *ends(*intervals[:, i]))
        if label != ONE_BEST and value[3] <= MOST:
            scores["improvement"] = Score("improvement", -math.expm1(value[3]), signed["share"], *ends(*improvement))
        by_label[label] = scores
    return by_label


def perplexity(nats: float) -> float | None:
    """Compute the perplexity per word from nats; None if it is beyond the largest float."""
    return math.exp(nats) if nats <= MOST else None


def order_curves(model: TokenisedModel, documents: Documents, n: int = 128) -> list[dict[str, str | float | None]]:
    """Compute cumulative sums over N segmentations, in the orders of Q and of P (Cao & Rimell 2021, figure 3).

    The segmentations come from ``nbest``: T* is the first in the order of Q, even if Q does not rank it first (scores
    that do not come from the tokeniser), so the value at k equals ``nbest`` with k samples. The second order is
    an oracle experiment: it shows how many segmentations matter. A document of fewer than ``n`` segmentations has
    its whole sum after its last segmentation. All values are lower bounds.

    Returns:
        A record for each order and number of segmentations, for JSON: ``log_p`` is the sum over documents of the log of
        the sum over this many segmentations, nats; ``ppl`` is per word, None if too large.

    Raises:
        InputError: ``n`` is below 1, no document is left, or the canonical tokenisation of one is longer than the
            window of the model.
    """
    if n < 1:
        raise InputError(f"the number of segmentations to sum must be at least 1, got {n}")
    totals: dict[Order, FloatArray] = {order: np.zeros(n) for order in ORDERS}
    words = left_out = 0
    for document in track(documents.documents, f"the {n} best segmentations", len(documents)):
        cuts = canonical_first(document.best, n_best(document.lattice, n).each(), n)
        by_q = score_segmentations(model, document, cuts).log_p
        if not np.isfinite(by_q[0]):
            left_out += 1
            continue
        words += document.text.n_words
        for order, values in zip(ORDERS, (by_q, np.sort(by_q)[::-1]), strict=True):
            sums = np.logaddexp.accumulate(values)
            totals[order] += np.append(sums, np.full(n - len(sums), sums[-1]))
    if not words:
        raise InputError(f"the model gives probability zero to the canonical tokenisation of all {left_out} documents")
    head = {"model": model.name}
    counts = {"documents": len(documents) - left_out, "left_out": left_out}
    return [
        {**head, "order": order, "cuts": k, "log_p": value, "ppl": perplexity(-value / words), **counts}
        for order, values in totals.items()
        for k, value in enumerate(values.tolist(), start=1)
    ]


def sample_curves(
    model: TokenisedModel, documents: Documents, settings: EstimatorSettings, counts: Sequence[int]
) -> list[dict[str, str | float | None]]:
    """Estimate with increasing numbers of segmentations; ``one-best`` is the first point.

    An estimator is missing at numbers of samples that are too small for it. All points are over the same documents.

    Returns:
        A record for each point, see `_points`.

    Raises:
        InputError: see `truesource.evaluation.tokenisation.results.evaluate_runs`.
    """
    runs = {
        f"{name}/{k}": EstimatorRun(name, replace(settings, samples=k))
        for name in SAMPLERS
        for k in counts
        if k >= ESTIMATORS[name].fewest
    }
    return _points(model, documents, runs)[0]


def temperature_curve(
    model: TokenisedModel, documents: Documents, settings: EstimatorSettings, inverse_temperatures: Sequence[float]
) -> list[dict[str, str | float | None]]:
    """Compute perplexity by inverse temperature b of Q, in percent of n-best (Cao & Rimell 2021, figure 1).

    Returns:
        A record for each point, see `_points`; ``difference_percent`` compares its perplexity with n-best with as
        many segmentations, below 0 if it is tighter; None: too large.

    Raises:
        InputError: see `truesource.evaluation.tokenisation.results.evaluate_runs`.
    """
    runs = {f"{WARMED}/b={b:g}": EstimatorRun(WARMED, replace(settings, b=b)) for b in inverse_temperatures}
    (_, _, *points), evaluation = _points(model, documents, {"nbest": EstimatorRun("nbest", settings), **runs})
    words, nbest = float(evaluation.words.sum()), evaluation.total("nbest").log_p
    for point, label in zip(points, runs, strict=True):
        ratio = perplexity((nbest - evaluation.total(label).log_p) / words)
        point["difference_percent"] = None if ratio is None else 100.0 * (ratio - 1.0)
    return points


def _points(
    model: TokenisedModel, documents: Documents, runs: dict[str, EstimatorRun]
) -> tuple[list[dict[str, str | float | None]], Evaluation]:
    """Build records of T* and of the runs in their order; also return their evaluation.

    ``log_p`` is the sum over documents, nats, with ``standard_error``; ``log_lower`` is certainly at most the truth;
    ``ppl`` is per word, None beyond the largest float; ``steps_per_piece`` token-steps of the model over pieces of T*.
    """
    evaluation = evaluate_runs(model, documents, runs)
    words = float(evaluation.words.sum())
    points: list[dict[str, str | float | None]] = []
    for label in (ONE_BEST, *runs):
        total, settings = evaluation.total(label), evaluation.runs[label].settings
        points.append(
            {
                "model": model.name,
                "estimator": total.estimator,
                "samples": settings.samples,
                "b": settings.b,
                "seed": settings.seed,
                "log_p": total.log_p,
                "ppl": perplexity(-total.log_p / words),
                "standard_error": total.standard_error,
                "log_lower": total.log_lower,
                "bound": total.bound,
                "steps_per_piece": total.steps_per_piece,
                "documents": len(evaluation.documents),
            }
        )
    return points, evaluation


@dataclass(frozen=True, eq=False, repr=False)
class Grid(ResultRecords):
    """The grid of one model and set of documents: perplexities per word and improvements over T*."""

    evaluation: Evaluation
    places: Mapping[str, tuple[Consistency, str]]  #: consistency and method of each cell, by label of the run
    seed: int  #: seed of the bootstrap

    @override
    def as_scores(self) -> list[Score]:
        """Return all perplexities that fit a float; the perplexity of T*, in brackets in the paper, has no ``cuts``."""
        scores = perplexities(self.evaluation, self.seed)
        best = scores[ONE_BEST].get("ppl")
        every = [] if best is None else [best.at(method=ONE_BEST, cuts=None, samples=None)]
        for label, (cuts, method) in self.places.items():
            samples = self.evaluation.runs[label].settings.samples
            of_label = [scores[label][name] for name in ("ppl", "improvement") if name in scores[label]]
            every += keyed(of_label, method=method, cuts=cuts, samples=samples)
        return keyed(every, model=self.evaluation.model)


def perplexity_grid(
    model: TokenisedModel, documents: Documents, settings: EstimatorSettings, *, seed: int = DEFAULT_SEED
) -> Grid:
    """Compute perplexity per word with {consistent, inconsistent} segmentations by {wr, wor, wor1, nbest}, and with T*.

    Methods are missing if the samples are too few for them.

    Args:
        model: model whose P is summed.
        documents: the texts.
        settings: settings of the estimators.
        seed: seed of the bootstrap.

    Raises:
        InputError: see `truesource.evaluation.tokenisation.results.evaluate_runs`.
    """
    places: dict[str, tuple[Consistency, str]] = {
        prefix + method: (cuts, method)
        for cuts, prefix in PREFIXES.items()
        for method in SAMPLERS
        if settings.samples >= ESTIMATORS[prefix + method].fewest
    }
    return Grid(evaluate_documents(model, documents, list(places), settings), places, seed)


def pooled_grid(grids: Mapping[str, Grid]) -> Grid:
    """Pool the grids of several sets.

    Args:
        grids: grids of one model with the same settings, by name of the set.
    """
    first = next(iter(grids.values()))
    return replace(first, evaluation=pool({name: grid.evaluation for name, grid in grids.items()}))
