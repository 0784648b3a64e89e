"""Runs over documents and their totals, against sums over all cuts one by one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from enumerated_cuts import log_sum
from piece_models import AB_PIECES, BOS, ToyPieceModel, toy_inventory

from truesource.evaluation.tokenisation import EstimatorRun, EstimatorSettings
from truesource.evaluation.tokenisation.documents import Documents, documents, fitting
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.results import evaluate_documents, evaluate_runs, seed_of
from truesource.grammar.support.errors import InputError

INVENTORY = toy_inventory(AB_PIECES)
TEXTS = ["abab ba", "a  b", "aba", "xyz", "bab ab"]
FEW = EstimatorSettings(samples=6)


@pytest.fixture(scope="module")
def model() -> ToyPieceModel:
    return ToyPieceModel(INVENTORY, order=None)


@pytest.fixture(scope="module")
def read(model: ToyPieceModel) -> Documents:
    return documents(model, TEXTS, LatticeBuilder(INVENTORY))


def parts(signature: str) -> list[str]:
    return signature.split("|")


def test_every_run_is_over_the_documents_that_all_can_do(model: ToyPieceModel, read: Documents) -> None:
    found = evaluate_documents(model, read, ["exact", "nbest", "wr"], FEW)
    assert list(found.runs) == ["one-best", "exact", "nbest", "wr"]
    assert found.numbers.tolist() == [0, 1, 2, 4]
    assert [(text.number, text.reason) for text in found.left_out] == [(3, "no piece spells x, y, z")]
    assert found.reasons() == {"no piece spells x, y, z": 1}
    truth = [model.brute_log_p(document.text.spelling) for document in found.documents]
    assert found.log_p("exact") == pytest.approx(truth, abs=1e-10)
    own = [model.log_prob_of(INVENTORY.ids[document.text.canonical].tolist()) for document in found.documents]
    assert found.one_best == pytest.approx(own, abs=1e-10)
    assert (found.log_p("nbest") >= found.one_best).all()
    assert found.words.tolist() == [2, 2, 1, 2]
    assert found.characters.tolist() == [7, 4, 3, 6]
    assert found.n_bytes.tolist() == [7, 4, 3, 6]
    assert found.pieces.tolist() == [len(document.text.canonical) for document in found.documents]


def test_bytes_are_those_of_the_original_text() -> None:
    inventory = toy_inventory({"_": -1.0, "é": -1.0, "_é": -2.0})
    model = ToyPieceModel(inventory)
    found = evaluate_documents(model, documents(model, ["é É"], LatticeBuilder(inventory)), [], FEW)
    assert (found.characters.tolist(), found.n_bytes.tolist(), found.parts["altered"]) == ([3], [5], 1)


def test_totals_add_up(model: ToyPieceModel, read: Documents) -> None:
    found = evaluate_documents(model, read, ["exact", "nbest", "wr", "wor1"], FEW)
    exact, nbest, wr, wor1 = (found.total(name) for name in ("exact", "nbest", "wr", "wor1"))
    assert exact.log_p == pytest.approx(found.log_p("exact").sum(), abs=1e-10)
    assert (exact.bound, exact.standard_error, exact.shortfall) == ("exact", 0.0, 0.0)
    assert (nbest.bound, nbest.standard_error, nbest.least_ess) == ("lower", None, None)
    assert nbest.log_p == nbest.log_lower <= exact.log_p
    assert wr.bound == wor1.bound == "unbiased"
    variances = [estimate.relative_variance for estimate in found.estimates["wr"]]
    assert all(x is not None and x > 0.0 for x in variances)
    assert wr.standard_error == pytest.approx(math.sqrt(math.fsum(x or 0.0 for x in variances)))
    assert wr.shortfall == pytest.approx(math.fsum(x or 0.0 for x in variances) / 2)
    assert wr.least_ess == min(e.ess for e in found.estimates["wr"] if e.ess is not None)
    assert wr.largest_share == max(e.max_share for e in found.estimates["wr"] if e.max_share is not None)
    assert wr.log_lower == pytest.approx(math.fsum(e.log_lower for e in found.estimates["wr"]))
    assert wr.steps == sum(e.steps for e in found.estimates["wr"])
    assert wr.steps_per_piece == wr.steps / found.pieces.sum()


def test_a_total_promises_what_all_its_estimates_promise(model: ToyPieceModel) -> None:
    read = documents(model, ["abab", "aba"], LatticeBuilder(INVENTORY))  # 15 and 7 cuts
    runs = {
        "nbest": EstimatorRun("nbest", EstimatorSettings(samples=9)),
        "wor": EstimatorRun("wor", EstimatorSettings(samples=9)),
        "all": EstimatorRun("wor", EstimatorSettings(samples=15)),
    }
    found = evaluate_runs(model, read, runs)
    assert [e.bound for e in found.estimates["nbest"]] == ["lower", "exact"]
    assert [e.bound for e in found.estimates["wor"]] == ["unbiased", "exact"]
    assert [found.total(name).bound for name in runs] == ["lower", "unbiased", "exact"]
    assert found.total("wor").log_upper is None
    both = evaluate_documents(model, read, ["bracket", "exact"], replace(FEW, tolerance=0.05))
    lower, exact = both.total("bracket"), both.total("exact")
    assert lower.log_upper is not None
    assert lower.log_p < exact.log_p < lower.log_upper
    assert exact.log_upper == pytest.approx(exact.log_p)
    mixed = replace(found, estimates={"wor": (found.estimates["wor"][0], found.estimates["nbest"][0])})
    assert (mixed.total("wor").bound, mixed.total("wor").standard_error) == ("part", None)


def test_documents_have_seeds_of_their_own_which_do_not_depend_on_the_others(model: ToyPieceModel) -> None:
    builder = LatticeBuilder(INVENTORY)
    twice = evaluate_documents(model, documents(model, ["abab", "abab"], builder), ["wr"], FEW)
    assert twice.log_p("wr")[0] != twice.log_p("wr")[1]
    other = evaluate_documents(model, documents(model, ["b", "abab"], builder), ["wr"], FEW)
    assert other.log_p("wr")[1] == twice.log_p("wr")[1]
    again = evaluate_documents(model, documents(model, ["abab", "abab"], builder), ["wr"], FEW)
    assert again.log_p("wr").tolist() == twice.log_p("wr").tolist()
    assert len({seed_of(seed, number) for seed in range(20) for number in range(20)}) == 400


def test_runs_of_one_estimator_at_several_settings_have_labels(model: ToyPieceModel, read: Documents) -> None:
    runs = {f"nbest/{k}": EstimatorRun("nbest", EstimatorSettings(samples=k)) for k in (1, 4, 1000)}
    found = evaluate_runs(model, read, runs)
    assert list(found.estimates) == ["one-best", "nbest/1", "nbest/4", "nbest/1000"]
    assert (found.log_p("nbest/1") <= found.log_p("nbest/4")).all()
    truth = [model.brute_log_p(document.text.spelling) for document in found.documents]
    assert found.log_p("nbest/1000") == pytest.approx(truth, abs=1e-10)
    assert "samples:4" in parts(found.signed("nbest/4"))


def test_documents_of_probability_zero_are_left_out_with_the_reason() -> None:
    with_b = [int(i) for i, piece in zip(INVENTORY.ids, INVENTORY.pieces, strict=True) if "b" in piece]
    model = ToyPieceModel(INVENTORY, forbidden=dict.fromkeys((BOS, *INVENTORY.ids.tolist()), with_b))
    found = evaluate_documents(model, documents(model, ["a", "ab"], LatticeBuilder(INVENTORY)), ["nbest"], FEW)
    assert found.numbers.tolist() == [0]
    assert [text.number for text in found.left_out] == [1]
    assert "probability zero" in found.left_out[0].reason
    with pytest.raises(InputError, match="no document is left to evaluate: all 1 are excluded, the first because"):
        evaluate_documents(model, documents(model, ["ab"], LatticeBuilder(INVENTORY)), ["nbest"], FEW)


def test_too_large_a_document_is_left_out_of_all_runs(model: ToyPieceModel) -> None:
    read = documents(model, ["a", "abababab"], LatticeBuilder(INVENTORY))
    found = evaluate_documents(model, read, ["exact", "nbest"], replace(FEW, most_prefixes=20))
    assert (found.numbers.tolist(), [text.number for text in found.left_out]) == ([0], [1])
    assert found.left_out[0].reason.startswith("exact: ")
    assert len(found.estimates["nbest"]) == 1


def test_what_cannot_be_run_is_refused_before_anything_is_scored(read: Documents) -> None:
    model = ToyPieceModel(INVENTORY, longest=3)
    with pytest.raises(InputError, match="there is no estimator 'mean'; choose one of "):
        evaluate_documents(model, read, ["mean"], FEW)
    with pytest.raises(InputError, match="wor needs at least 2 samples"):
        evaluate_documents(model, read, ["wor"], replace(FEW, samples=1))
    with pytest.raises(InputError, match="text 1: the window of toy is too short"):
        evaluate_documents(model, read, ["wr"], FEW)
    assert model.rows_scored == 0
    kept = evaluate_documents(model, fitting(model, read), ["wr"], FEW)
    assert kept.numbers.tolist() == [1, 2]
    assert [text.number for text in kept.left_out] == [0, 3, 4]
    assert kept.left_out[0].reason == "the canonical tokenisation has more tokens than the 3 that the model reads"
    assert {"left-out:3", "window:3"} <= set(parts(kept.signed("wr")))


def test_the_signature_holds_what_an_estimator_reads(model: ToyPieceModel, read: Documents) -> None:
    names = ["exact", "nbest", "wr", "consistent-wr"]
    found = evaluate_documents(model, read, names, FEW)
    shared = {"model:toy", "eos:in", "documents:4", "left-out:1", "altered:1"}
    for name in names:
        assert shared <= set(parts(found.signed(name)))
        assert ("b:1.0" in parts(found.signed(name))) == name.endswith("wr")
        assert ("samples:6" in parts(found.signed(name))) == (name != "exact")
    assert "sum:consistent-cuts" in parts(found.signed("consistent-wr"))
    assert "sum:own-cut" in parts(found.signed("one-best"))
    assert "unit:nats" in parts(found.signed("wr", unit="nats"))
    other = evaluate_documents(model, read, names, replace(FEW, seed=2))
    same = {name: found.signed(name) == other.signed(name) for name in names}
    assert same == {"exact": True, "nbest": True, "wr": False, "consistent-wr": False}
    guided = evaluate_documents(model, read, ["dpf", "beam"], FEW)
    assert {"candidates:128", "particles:32", "tail:True", "replicates:4"} <= set(parts(guided.signed("dpf")))
    assert not any(part.startswith(("samples:", "seed:")) for part in parts(guided.signed("beam")))
    flat = documents(model, TEXTS, LatticeBuilder(INVENTORY, np.zeros(len(INVENTORY.pieces))))
    assert evaluate_documents(model, flat, names, FEW).signed("wr") != found.signed("wr")


def test_scores_and_records_are_plain_and_finite(model: ToyPieceModel, read: Documents) -> None:
    found = evaluate_documents(model, read, ["wr", "exact"], FEW)
    scores = {score.name: score.value for score in found.scores()["wr"]}
    assert scores["log_p"] == found.total("wr").log_p
    assert (scores["documents"], scores["left_out"]) == (4, 1)
    assert {"standard_error", "least_ess", "largest_share", "steps_per_piece"} <= set(scores)
    records = found.rows()
    assert len(records) == 4 * 3
    assert [r["document"] for r in records if r["run"] == "exact"] == [0, 1, 2, 4]
    by_hand = log_sum(model.brute(found.documents[0].text.spelling).values())
    assert next(r["log_p"] for r in records if r["run"] == "exact") == pytest.approx(by_hand, abs=1e-10)
    assert all(not isinstance(v, float) or math.isfinite(v) for r in records for v in r.values())
