"""Curves over the number of cuts, their order, temperature and cost, against sums over all cuts one by one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from enumerated_cuts import log_sum
from piece_models import AB_PIECES, ToyPieceModel, cuts_of, toy_inventory

from truesource.evaluation.tokenisation import EstimatorRun, EstimatorSettings
from truesource.evaluation.tokenisation.documents import Documents, documents
from truesource.evaluation.tokenisation.equal_cost import cost_ladder, equal_cost, reference_log_p
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.paths import n_best
from truesource.evaluation.tokenisation.results import evaluate_documents, evaluate_runs, seed_of
from truesource.evaluation.tokenisation.summaries import (
    order_curves,
    perplexity,
    sample_curves,
    temperature_curve,
)
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

INVENTORY = toy_inventory(AB_PIECES)
BUILDER = LatticeBuilder(INVENTORY)
MODEL = ToyPieceModel(INVENTORY, order=None)
TEXTS = ["abab b", "ab", "bab ba", "aba"]
SETTINGS = EstimatorSettings(samples=8)


@pytest.fixture(scope="module")
def read() -> Documents:
    return documents(MODEL, TEXTS, BUILDER)


def sums_of(records: list[dict[str, Any]]) -> dict[str, FloatArray]:
    """Log sums of the curves of each order."""
    orders = dict.fromkeys(record["order"] for record in records)
    return {order: np.array([r["log_p"] for r in records if r["order"] == order]) for order in orders}


# -- order ------------------------------------------------------------------------------------------


def test_cumulative_sums_in_the_order_of_q_and_of_p(read: Documents) -> None:
    n = 20
    records = order_curves(MODEL, read, n)
    found = sums_of(records)
    expected = {"tokeniser": np.zeros(n), "model": np.zeros(n)}
    for document in read.documents:
        brute = MODEL.brute(document.text.spelling)
        by_q = [brute[tuple(document.lattice.piece[arcs].tolist())] for arcs in n_best(document.lattice, n).each()]
        for order, values in (("tokeniser", by_q), ("model", sorted(by_q, reverse=True))):
            expected[order] += [log_sum(values[: k + 1]) for k in range(n)]  # a slice takes no more than there are
    for order, values in found.items():
        assert values == pytest.approx(expected[order], abs=1e-10)
    assert (found["model"] >= found["tokeniser"] - 1e-12).all()
    assert found["model"][-1] == pytest.approx(found["tokeniser"][-1])
    own = math.fsum(MODEL.log_prob_of(INVENTORY.ids[d.text.canonical].tolist()) for d in read.documents)
    assert found["tokeniser"][0] == pytest.approx(own, abs=1e-10)
    assert (records[0]["documents"], records[0]["left_out"]) == (4, 0)
    assert len(records) == 2 * n
    assert records[0]["ppl"] == pytest.approx(math.exp(-own / 6))  # T* is the first cut in the order of Q


def test_scores_that_are_not_the_tokenisers_begin_with_its_own_cut_all_the_same() -> None:
    read = documents(MODEL, TEXTS, LatticeBuilder(INVENTORY, -BUILDER.scores))
    own = [MODEL.log_prob_of(INVENTORY.ids[d.text.canonical].tolist()) for d in read.documents]
    ranked = [n_best(d.lattice, 6).each() for d in read.documents]
    assert any(
        not any(np.array_equal(cut, d.best) for cut in cuts) for cuts, d in zip(ranked, read.documents, strict=True)
    )
    found = sums_of(order_curves(MODEL, read, 6))["tokeniser"]
    assert found[0] == pytest.approx(math.fsum(own), abs=1e-10)
    runs = {f"{k}": EstimatorRun("nbest", EstimatorSettings(samples=k)) for k in range(1, 7)}
    nbest = evaluate_runs(MODEL, read, runs)
    assert found == pytest.approx([nbest.total(label).log_p for label in runs], abs=1e-10)
    assert (np.diff(found) > 0.0).all()


def test_as_many_cuts_as_there_are_is_the_whole_sum(read: Documents) -> None:
    most = max(sum(1 for _ in cuts_of(INVENTORY, document.text.spelling)) for document in read.documents)
    truth = math.fsum(MODEL.brute_log_p(document.text.spelling) for document in read.documents)
    assert sums_of(order_curves(MODEL, read, most + 3))["tokeniser"][-1] == pytest.approx(truth, abs=1e-10)
    with pytest.raises(InputError, match="at least one segmentation"):
        order_curves(MODEL, read, 0)


def test_perplexities_that_no_float_can_hold_are_none() -> None:
    assert [perplexity(nats) for nats in (1000.0, 5.0)] == [None, math.exp(5)]


def test_curves_of_very_improbable_texts(read: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = temperature_curve(MODEL, read, SETTINGS, [1.0])
    monkeypatch.setattr("truesource.evaluation.tokenisation.summaries.MOST", 1.0)  # in place of some 709 nats a word
    points = sample_curves(MODEL, read, SETTINGS, (4,))
    assert [point["ppl"] for point in points] == [None] * 5
    warm = temperature_curve(MODEL, read, SETTINGS, [1.0])
    assert warm[0]["ppl"] is None
    assert warm[0]["difference_percent"] == usual[0]["difference_percent"]  # though there are none


# -- samples and temperature ------------------------------------------------------------------------


def test_estimates_over_the_number_of_samples(read: Documents) -> None:
    points = sample_curves(MODEL, read, SETTINGS, (1, 4, 64))
    at = {(point["estimator"], point["samples"]): point for point in points}
    assert points[0]["estimator"] == "one-best"
    assert {k for name, k in at if name == "wor"} == {4, 64}  # one draw without replacement is refused
    assert {k for name, k in at if name == "nbest"} == {1, 4, 64}
    nbest = [at["nbest", k]["log_p"] for k in (1, 4, 64)]
    assert nbest == sorted(nbest)
    assert at["nbest", 1]["log_p"] == pytest.approx(points[0]["log_p"], abs=1e-10)
    truth = math.fsum(MODEL.brute_log_p(document.text.spelling) for document in read.documents)
    most = max(sum(1 for _ in cuts_of(INVENTORY, document.text.spelling)) for document in read.documents)
    whole = {point["estimator"]: point for point in sample_curves(MODEL, read, SETTINGS, (most,))}
    for name in ("wor", "wor1"):
        assert (whole[name]["bound"], whole[name]["log_p"]) == ("exact", pytest.approx(truth, abs=1e-10))
    wr = at["wr", 4]
    same = evaluate_documents(MODEL, read, ["wr"], replace(SETTINGS, samples=4)).total("wr")
    assert (wr["log_p"], wr["standard_error"], wr["bound"]) == (same.log_p, same.standard_error, "unbiased")
    assert wr["ppl"] == pytest.approx(math.exp(-wr["log_p"] / 6))


def test_temperature_is_compared_with_n_best(read: Documents) -> None:
    points = temperature_curve(MODEL, read, SETTINGS, [0.5, 1.0, 3.0])
    assert [point["b"] for point in points] == [0.5, 1.0, 3.0]
    found = evaluate_documents(MODEL, read, ["nbest", "wor1"], SETTINGS)
    nbest, plain = (math.exp(-found.total(name).log_p / 6) for name in ("nbest", "wor1"))
    assert points[1]["difference_percent"] == pytest.approx(100 * (plain - nbest) / nbest)
    assert len({point["log_p"] for point in points}) == 3


# -- equal cost -------------------------------------------------------------------------------------


def test_errors_are_against_the_exact_reference(read: Documents) -> None:
    reference = reference_log_p(MODEL, read, SETTINGS)
    truth = np.array([MODEL.brute_log_p(document.text.spelling) for document in read.documents])
    assert reference[0] == pytest.approx(truth, abs=1e-10)
    assert reference[1] == "exact"
    runs = [
        EstimatorRun("nbest", SETTINGS),
        EstimatorRun("wr", replace(SETTINGS, samples=40)),
        EstimatorRun("exact", SETTINGS),
    ]
    nbest, wr, exact = equal_cost(MODEL, read, runs, reference, repeats=60)
    found = evaluate_documents(MODEL, read, ["nbest"], SETTINGS)
    errors = found.log_p("nbest") - truth
    assert (nbest["repeats"], nbest["sd"]) == (1, None)
    assert nbest["error"] == pytest.approx(errors.mean())
    assert nbest["rmse"] == pytest.approx(math.sqrt(np.mean(errors**2)))
    assert (exact["error"], exact["rmse"]) == pytest.approx((0.0, 0.0), abs=1e-10)
    assert wr["repeats"] == 60
    assert wr["sd"] is not None
    assert wr["error"] < 0.0  # Jensen
    seeds = [replace(SETTINGS, samples=40, seed=seed_of(SETTINGS.seed, r)) for r in range(60)]
    repeats = np.array([evaluate_documents(MODEL, read, ["wr"], one).log_p("wr") - truth for one in seeds])
    assert wr["error"] == pytest.approx(repeats.mean())
    assert wr["sd"] == pytest.approx(math.sqrt(np.mean([np.var(column, ddof=1) for column in repeats.T])))
    assert wr["rmse"] == pytest.approx(math.sqrt(np.mean(repeats**2)))
    assert wr["ratio"] == pytest.approx(1.0, abs=0.1)  # unbiased in probability
    steps = sum(estimate.steps for estimate in found.estimates["nbest"])
    assert nbest["steps_per_piece"] == steps / found.pieces.sum()
    assert (wr["estimator"], wr["samples"], wr["reference"]) == ("wr", 40, "exact")


def test_what_cannot_be_enumerated_has_an_estimated_reference(read: Documents) -> None:
    few = EstimatorSettings(candidates=2, particles=3, most_prefixes=30)
    log_p, how = reference_log_p(MODEL, read, few, repeats=4)
    truth = np.array([MODEL.brute_log_p(document.text.spelling) for document in read.documents])
    exact = np.isclose(log_p, truth, rtol=0.0, atol=1e-10)
    assert 0 < exact.sum() < 4
    assert how == f"exact:{exact.sum()}+dpf/4x2x3:{4 - exact.sum()}"
    assert np.abs(log_p - truth).max() < 0.5


def test_the_ladder_asks_for_about_the_same_work() -> None:
    runs = cost_ladder(EstimatorSettings(candidates=8), (2, 64))
    assert runs[0].estimator == "one-best"
    assert {run.settings.samples for run in runs if run.estimator == "nbest"} == {2, 64}
    assert {run.settings.samples for run in runs if run.estimator == "wor1"} == {64}
    dpf = [(run.settings.candidates, run.settings.particles) for run in runs if run.estimator == "dpf"]
    assert dpf == [(1, 2), (8, 8)]
