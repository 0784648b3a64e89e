"""Totals below what some run certainly reaches, and standard errors that cannot be believed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from piece_models import AB_PIECES, ToyPieceModel, toy_inventory
from scipy import stats

from truesource.evaluation.tokenisation import EstimatorRun, EstimatorSettings
from truesource.evaluation.tokenisation.decomposition import below_bounds, shortfalls
from truesource.evaluation.tokenisation.documents import Estimate, documents
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.results import DOUBLE, Evaluation, evaluate_documents

INVENTORY = toy_inventory(AB_PIECES)
MODEL = ToyPieceModel(INVENTORY)


@pytest.fixture(scope="module")
def whole() -> Evaluation:
    return evaluate_documents(
        MODEL, documents(MODEL, ["abab", "ba"], LatticeBuilder(INVENTORY)), [], EstimatorSettings()
    )


def drawn(log_p: float, variance: float | None, log_lower: float = -99.0) -> Estimate:
    return Estimate(
        estimator="wr", log_p=log_p, bound="unbiased", relative_variance=variance, log_lower=log_lower, steps=1, cuts=1
    )


def certain(log_p: float) -> Estimate:
    return Estimate(estimator="nbest", log_p=log_p, bound="lower", log_lower=log_p, steps=1, cuts=1)


def with_runs(whole: Evaluation, **runs: Estimate) -> Evaluation:
    """Two documents of one estimate each run, beside a cut of 1/e^60 each."""
    estimates = {"one-best": (certain(-60.0),) * 2} | {label: (one,) * 2 for label, one in runs.items()}
    return replace(whole, estimates=estimates, runs={label: EstimatorRun(label) for label in estimates})


def test_a_total_below_what_another_run_reaches(whole: Evaluation) -> None:
    found = with_runs(whole, guided=drawn(-80.0, 0.02), nbest=certain(-50.0), wr=drawn(-49.0, 0.5, -49.5))
    low = below_bounds(found, "guided")
    assert low is not None
    assert (low.run, low.below, low.certain, low.nats) == ("guided", "wr", True, pytest.approx(61.0))
    assert low.note == "error bar too small: 61 below wr"
    nbest = below_bounds(found, "nbest")
    assert nbest is not None
    assert (nbest.below, nbest.nats, nbest.note) == ("wr", pytest.approx(1.0), "too low: 1 below wr")
    assert below_bounds(found, "wr") is None


@pytest.mark.parametrize(("lacking", "variance", "said"), [(0.29, 0.02, False), (0.31, 0.02, True), (0.01, None, True)])
def test_three_standard_errors_may_be_chance(
    lacking: float, variance: float | None, said: bool, whole: Evaluation
) -> None:
    """Two documents of variance 0.02: 0.2 together. Without a standard error nothing excuses it."""
    low = drawn(-50.0 - lacking, variance)
    assert (below_bounds(with_runs(whole, wr=low, nbest=certain(-50.0)), "wr") is not None) == said


def test_errors_of_two_filters_excuse_more_than_known_ones(whole: Evaluation) -> None:
    """Student's t of two degrees of freedom has as much beyond 19.2 as the normal distribution beyond 3."""
    for degrees, lacking, said in (
        (None, 0.5, True),
        (1, 0.5, False),
        (1, 1.8, False),
        (1, 2.1, True),
        (15, 0.5, True),
    ):
        low = replace(drawn(-50.0 - lacking, 0.02), degrees=degrees)
        found = with_runs(whole, dpf=low, nbest=certain(-50.0))
        assert (below_bounds(found, "dpf") is not None) == said


def test_degrees_of_freedom_are_those_of_satterthwaite(whole: Evaluation) -> None:
    """Of two equal variances twice those of one; of unequal ones those of the larger, all but; none if certain."""
    one, other = (replace(drawn(-50.0, variance), degrees=3) for variance in (0.02, 1e-6))
    found = with_runs(whole, dpf=one)
    assert found.total("dpf").degrees == pytest.approx(6.0)
    uneven = replace(found, estimates={**found.estimates, "dpf": (one, other)})
    assert uneven.total("dpf").degrees == pytest.approx(3.0, rel=1e-3)
    assert with_runs(whole, wr=drawn(-50.0, 0.02)).total("wr").degrees == math.inf
    total = found.total("dpf")
    half = stats.t.ppf(0.975, 6.0) * 0.2
    assert (total.low, total.high) == pytest.approx((-99.98 - half, -99.98 + half))
    (score, *_) = found.scores()["dpf"]
    assert (score.name, score.low, score.high) == ("log_p", total.low, total.high)
    assert "ci:filters-t95" in score.signature.split("|")
    assert with_runs(whole, nbest=certain(-50.0)).total("nbest").low is None


def test_rounding_of_single_precision_is_no_shortfall(whole: Evaluation) -> None:
    """1e-7 of 50 nats, of two documents together 7e-6, three times."""
    for lacking, single in ((5e-6, False), (2e-5, True)):
        found = with_runs(whole, dpf=drawn(-50.0 - lacking, 1e-20), nbest=certain(-50.0))
        assert (below_bounds(found, "dpf") is not None) == single
        assert below_bounds(replace(found, rounding=DOUBLE), "dpf") is not None


def test_error_bars_that_are_too_small(whole: Evaluation) -> None:
    runs = {
        "exact": Estimate(
            estimator="exact",
            log_p=-50.0,
            bound="exact",
            relative_variance=0.0,
            log_lower=-50.0,
            steps=1,
            cuts=1,
            log_upper=-50.0,
        ),
        "wor1": drawn(-50.1, 1e-8, -50.1),
        "wr": drawn(-51.0, 0.5),
        "block": drawn(-49.0, 1e-8),
        "dpf": drawn(-50.4, None),
    }
    found = shortfalls(with_runs(whole, **runs), "exact")
    assert {label: one.below for label, one in found.items()} == {"wor1": "exact", "dpf": "exact"}
    assert found["wor1"].note == "error bar too small: 0.2 below exact"
    assert found["dpf"].note == "too low: 0.8 below exact"


def test_the_best_estimate_has_an_error_of_its_own(whole: Evaluation) -> None:
    for variance, marked in ((1e-8, True), (0.02, False), (None, False)):
        found = shortfalls(with_runs(whole, dpf=drawn(-50.0, variance), wor1=drawn(-50.1, 1e-8)), "dpf")
        assert ("wor1" in found) == marked
        if marked:
            assert (found["wor1"].below, found["wor1"].certain) == ("dpf", False)
