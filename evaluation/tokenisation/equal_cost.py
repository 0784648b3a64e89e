"""Comparison of estimators at equal cost of the model: error and spread against a reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from truesource.evaluation.tokenisation import EstimatorRun, EstimatorSettings
from truesource.evaluation.tokenisation.documents import Document, Documents
from truesource.evaluation.tokenisation.estimators.exact import TooManyContextsError
from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS, ONE_BEST
from truesource.evaluation.tokenisation.results import Total, evaluate_runs, numbered, seed_of
from truesource.generator.piece_model import TokenisedModel
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import track

SAMPLERS = ("nbest", "wr", "wr1", "wor", "wor1", "guided")  #: estimators that score ``samples`` segmentations
#: estimators that extend ``particles`` states by ``candidates`` segmentations of a word
BY_BLOCKS = ("block", "dpf", "beam")
DETERMINISTIC = ("exact", "bracket", "one-best", "nbest", "consistent-nbest", "beam")  #: no seed changes their values
BUDGETS = (8, 16, 32, 64, 128)


def reference_log_p(
    model: TokenisedModel, documents: Documents, settings: EstimatorSettings, *, repeats: int = 3
) -> tuple[FloatArray, str]:
    """Compute log P(D), exactly if it can be enumerated, else by independent runs of the discrete particle filter.

    The estimates of runs are averaged as probabilities. A reference from ``dpf`` is not independent of ``dpf``.

    Args:
        model: model whose P is summed.
        documents: the texts.
        settings: many candidates and particles; ``most_prefixes`` bounds enumeration.
        repeats: number of runs for each document that cannot be enumerated.

    Returns:
        (N,) nats, and how they were computed, for signatures and captions.

    Raises:
        InputError: the model's window is too short.
    """
    one_filter = replace(settings, replicates=1)
    log_p, n = np.zeros(len(documents)), 0
    pairs = zip(documents.numbers, documents.documents, strict=True)
    for i, (number, document) in enumerate(track(pairs, "reference values of the estimators, by text", len(documents))):
        with numbered(number):
            seeded = replace(one_filter, seed=seed_of(settings.seed, number))
            values, exact = _reference(model, document, seeded, repeats)
        log_p[i] = np.logaddexp.reduce(values) - math.log(len(values))
        n += exact
    estimated = f"dpf/{repeats}x{settings.candidates}x{settings.particles}:{len(documents) - n}"
    return log_p, "exact" if n == len(documents) else f"exact:{n}+{estimated}" if n else estimated


def _reference(
    model: TokenisedModel, document: Document, settings: EstimatorSettings, repeats: int
) -> tuple[FloatArray, bool]:
    """Return log P(D), exact (1,) or estimates (repeats,), nats; and True if exact."""
    try:
        return np.array([ESTIMATORS["exact"].run(model, document, settings).log_p]), True
    except TooManyContextsError:
        settings_of_runs = [replace(settings, seed=seed_of(settings.seed, r)) for r in range(repeats)]
        estimates = [ESTIMATORS["dpf"].run(model, document, one) for one in settings_of_runs]
    exact = [estimate.log_p for estimate in estimates if estimate.bound == "exact"]
    return (np.array(exact[:1]), True) if exact else (np.array([estimate.log_p for estimate in estimates]), False)


def cost_ladder(settings: EstimatorSettings, budgets: Sequence[int] = BUDGETS) -> list[EstimatorRun]:
    """List T* and every estimator at settings that take about ``budget`` token-steps for each piece of T*.

    Some score ``budget`` segmentations. Word-by-word estimators consider ``settings.candidates`` segmentations of
    each word (at most half of the budget) from as many states as make the product of both the
    budget. Repeated requests to the model run once, so the reported number of steps is smaller.
    """
    runs = [EstimatorRun(ONE_BEST, settings)]
    for budget in budgets:
        by_samples = replace(settings, samples=budget)
        candidates = max(1, min(settings.candidates, budget // 2))
        by_blocks = replace(settings, candidates=candidates, particles=max(1, budget // candidates))
        runs += [EstimatorRun(name, by_samples) for name in SAMPLERS if budget >= ESTIMATORS[name].fewest]
        runs += [EstimatorRun(name, by_blocks) for name in BY_BLOCKS]
    return runs


def equal_cost(
    model: TokenisedModel,
    documents: Documents,
    runs: Sequence[EstimatorRun],
    reference: tuple[FloatArray, str],
    *,
    repeats: int = 10,
) -> list[dict[str, str | float | None]]:
    """Measure error, spread and cost of estimators, each at its setting and with several seeds.

    Documents whose reference is not finite are excluded, as are documents that some run excludes. Rank estimators by
    ``rmse`` at equal ``steps_per_piece``, not by larger values: an estimate with a heavy tail can be far too high.

    Args:
        model: model whose P is summed.
        documents: documents of the reference.
        runs: estimators with settings; each repeat changes the seed.
        reference: result of `reference_log_p`.
        repeats: number of repeats of every estimator that samples.

    Returns:
        A record for each run, for JSON: its settings, and with e = log estimate - log reference, nats, over documents
        and repeats ``error``, the mean of e, ``rmse``, the root of the mean of its square, ``sd``, the standard
        deviation over repeats (None without), and ``ratio``, the mean of estimate / reference, 1 for an unbiased one
        (None if it overflows); ``steps_per_piece``: token-steps of the model over pieces of T*.

    Raises:
        InputError: no document has a reference, or see `evaluation.tokenisation.results.evaluate_runs`.
    """
    reference_log_probs, reference_name = reference
    labels = [
        [f"{i}/{r}" for r in range(1 if run.estimator in DETERMINISTIC else repeats)] for i, run in enumerate(runs)
    ]
    table = {
        label: EstimatorRun(run.estimator, replace(run.settings, seed=seed_of(run.settings.seed, r)))
        for run, row in zip(runs, labels, strict=True)
        for r, label in enumerate(row)
    }
    evaluation = evaluate_runs(model, documents, table)
    truth = reference_log_probs[np.searchsorted(documents.numbers, evaluation.numbers)]
    finite = np.isfinite(truth)
    if not finite.any():
        raise InputError("no document has a reference value")
    errors = [np.stack([evaluation.log_p(label) - truth for label in row])[:, finite] for row in labels]
    totals = [[evaluation.total(label) for label in row] for row in labels]
    return [_cost_point(model.name, *each, reference_name) for each in zip(runs, errors, totals, strict=True)]


def _cost_point(
    model: str, run: EstimatorRun, error: FloatArray, totals: Sequence[Total], reference: str
) -> dict[str, str | float | None]:
    """Build a record from errors of repeats by document, (R, N) nats, and totals of the repeats."""
    with np.errstate(over="ignore"):
        ratio = float(np.exp(error).mean())
    return {
        "model": model,
        "estimator": run.estimator,
        "bound": totals[0].bound,
        "steps_per_piece": float(np.mean([total.steps_per_piece for total in totals])),
        "error": float(error.mean()),
        "sd": float(np.sqrt(error.var(axis=0, ddof=1).mean())) if len(error) > 1 else None,
        "rmse": float(np.sqrt(np.square(error).mean())),
        "ratio": ratio if math.isfinite(ratio) else None,
        "documents": error.shape[1],
        "repeats": len(error),
        "reference": reference,
        **{key: value for key, value in vars(run.settings).items() if key != "most_prefixes"},
    }
