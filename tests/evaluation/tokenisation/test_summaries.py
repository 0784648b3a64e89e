"""Curves over the number of cuts, their order, temperature and cost, against sums over all cuts one by one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from enumerated_cuts import log_sum
from piece_models import AB_PIECES, ToyPieceModel, cuts_of, toy_inventory
from scipy import stats

from truesource.evaluation.tokenisation import EstimatorRun, EstimatorSettings
from truesource.evaluation.tokenisation.documents import Documents, documents
from truesource.evaluation.tokenisation.equal_cost import cost_ladder, equal_cost, reference_log_p
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.marginal_gaps import marginal_gaps
from truesource.evaluation.tokenisation.paths import n_best
from truesource.evaluation.tokenisation.results import (
    DOUBLE,
    SINGLE,
    Evaluation,
    evaluate_documents,
    evaluate_runs,
    seed_of,
)
from truesource.evaluation.tokenisation.summaries import (
    Grid,
    order_curves,
    perplexities,
    perplexity,
    perplexity_grid,
    pooled_grid,
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
    with pytest.raises(InputError, match="segmentations to sum must be at least 1"):
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


@pytest.mark.long
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


# -- the table of perplexities --


def perplexities_of(grid: Grid) -> dict[tuple[str, str], dict[str, Any]]:
    """Records of the perplexities by consistency and method."""
    return {(record["cuts"], record["method"]): record for record in grid.records() if record["name"] == "ppl"}


@pytest.mark.parametrize("samples", [1, 5])
def test_every_cell_is_the_perplexity_of_its_estimator(samples: int) -> None:
    read = documents(MODEL, ["ab ba ab", "aba b aba"], LatticeBuilder(INVENTORY))
    settings = EstimatorSettings(seed=4, samples=samples)
    found = perplexity_grid(MODEL, read, settings)
    first, *records = found.records()
    few = ["wr", "nbest"] if samples == 1 else ["wr", "wor", "wor1", "nbest"]
    assert list(perplexities_of(found))[1:] == [(cuts, name) for cuts in ("consistent", "inconsistent") for name in few]
    assert (first["method"], first["cuts"], first["samples"], len(records)) == ("one-best", None, None, 4 * len(few))
    alone = perplexities(evaluate_documents(MODEL, read, [*few, *(f"consistent-{name}" for name in few)], settings))
    assert first["value"] == alone["one-best"]["ppl"].value
    for record in records:
        name = record["method"] if record["cuts"] == "inconsistent" else f"consistent-{record['method']}"
        assert record["samples"] == samples
        assert record.items() >= alone[name][record["name"]].as_record().items()
    if samples == 1:  # the best cut is consistent
        assert perplexities_of(found)["consistent", "nbest"]["value"] == pytest.approx(first["value"])
    else:  # a sum over more cuts is larger
        assert perplexities_of(found)["inconsistent", "nbest"]["value"] < first["value"]


def test_the_table_of_pooled_sets_is_that_of_all_their_documents() -> None:
    texts, builder, settings = (
        ["ab ba ab", "aba b aba", "b ba"],
        LatticeBuilder(INVENTORY),
        EstimatorSettings(samples=4),
    )
    sets = {
        name: perplexity_grid(MODEL, documents(MODEL, some, builder), settings)
        for name, some in (("one", texts[:2]), ("two", texts[2:]))
    }
    whole = perplexity_grid(MODEL, documents(MODEL, texts, builder), settings)
    pooled, together = perplexities_of(pooled_grid(sets)), perplexities_of(whole)
    assert {method for _, method in pooled} == {"one-best", "wr", "wor", "wor1", "nbest"}
    for place, mine in pooled.items():
        if place[1] in ("nbest", "one-best"):  # nothing is drawn
            assert mine["value"] == pytest.approx(together[place]["value"], rel=1e-12)
        nats = [math.log(perplexities_of(grid)[place]["value"]) * grid.evaluation.words.sum() for grid in sets.values()]
        assert mine["value"] == pytest.approx(math.exp(sum(nats) / whole.evaluation.words.sum()), rel=1e-12)
    other = perplexity_grid(MODEL, documents(MODEL, texts, builder), EstimatorSettings(samples=1))
    with pytest.raises(ValueError, match="same runs"):
        pooled_grid({**sets, "more": other})


def test_consistent_sums_are_over_fewer_cuts() -> None:
    read = documents(MODEL, ["ab ab"], LatticeBuilder(INVENTORY))
    found = perplexities_of(perplexity_grid(MODEL, read, EstimatorSettings(samples=100)))
    whole = {place: record["value"] for place, record in found.items()}
    assert whole["inconsistent", "nbest"] < whole["consistent", "nbest"]
    assert whole["consistent", "wor"] == pytest.approx(whole["consistent", "nbest"], rel=1e-10)
    signed = {cuts: record["signature"].split("|") for (cuts, method), record in found.items() if method == "nbest"}
    assert {"sum:consistent-cuts", "bound:lower"} <= set(signed["consistent"])
    assert {"sum:all-cuts", "bound:exact"} <= set(signed["inconsistent"])


# -- perplexities per word, bits per character and byte, from sums over all cuts one by one --

SPACED_TEXTS = ["abab ba", "a  b aba", "AB bab", "ba"]


@pytest.fixture(scope="module", params=[True, False], ids=["end", "no end"])
def found(request: pytest.FixtureRequest) -> tuple[ToyPieceModel, Evaluation]:
    model = ToyPieceModel(INVENTORY, order=None, end=request.param)
    read = documents(model, SPACED_TEXTS, LatticeBuilder(INVENTORY))
    return model, evaluate_documents(model, read, ["exact", "nbest"], EstimatorSettings(samples=3))


def test_they_are_ratios_of_sums_over_the_original_texts(found: tuple[ToyPieceModel, Evaluation]) -> None:
    model, evaluation = found
    scores = perplexities(evaluation)
    log_p = math.fsum(model.brute_log_p(document.text.spelling) for document in evaluation.documents)
    own = math.fsum(model.log_prob_of(INVENTORY.ids[d.text.canonical].tolist()) for d in evaluation.documents)
    words, characters = 2 + 3 + 2 + 1, 7 + 8 + 6 + 2
    assert scores["exact"]["ppl"].value == pytest.approx(math.exp(-log_p / words), rel=1e-10)
    assert scores["one-best"]["ppl"].value == pytest.approx(math.exp(-own / words), rel=1e-10)
    assert scores["exact"]["bits_per_character"].value == pytest.approx(-log_p / math.log(2) / characters, rel=1e-10)
    assert scores["exact"]["bits_per_byte"] == replace(scores["exact"]["bits_per_character"], name="bits_per_byte")
    one, marginal = math.exp(-own / words), math.exp(-log_p / words)
    assert scores["exact"]["improvement"].value == pytest.approx((one - marginal) / one, rel=1e-10)
    assert 0.0 < scores["nbest"]["improvement"].value < scores["exact"]["improvement"].value
    assert "improvement" not in scores["one-best"]
    for name in ("ppl", "improvement", "bits_per_byte"):
        signed = scores["exact"][name].signature.split("|")
        assert {"words:8", f"eos:{'in' if evaluation.end else 'out'}", "altered:2", "bound:exact"} <= set(signed)


def test_intervals_hold_the_value_and_are_paired(found: tuple[ToyPieceModel, Evaluation]) -> None:
    read = documents(found[0], SPACED_TEXTS * 3, LatticeBuilder(INVENTORY))
    scores = perplexities(evaluate_documents(found[0], read, ["exact", "nbest"], EstimatorSettings(samples=3)), seed=3)
    for run in scores.values():
        for score in run.values():
            assert score.low is not None
            assert score.high is not None
            assert score.low <= score.value <= score.high
    # every document gains, so that the paired interval is above 0 though those of the perplexities overlap
    assert (scores["exact"]["improvement"].low or 0.0) > 0.0
    assert (scores["exact"]["ppl"].high or 0.0) > (scores["one-best"]["ppl"].low or 0.0)


def test_few_documents_have_no_interval(found: tuple[ToyPieceModel, Evaluation]) -> None:
    """One resampled is itself again and again."""
    read = documents(found[0], SPACED_TEXTS[:1], LatticeBuilder(INVENTORY))
    for evaluation in (found[1], evaluate_documents(found[0], read, ["exact"], EstimatorSettings())):
        for score in perplexities(evaluation)["exact"].values():
            assert score.low is score.high is None
            assert "ci:none/fewer-than-10-documents" in score.signature.split("|")


def test_what_no_float_can_hold_is_left_out(found: tuple[ToyPieceModel, Evaluation]) -> None:
    """Text without white space is one word, of thousands of nats."""

    def with_log_p(*values: float) -> Evaluation:
        evaluation = found[1]
        changed = zip(evaluation.estimates["exact"], values, strict=True)
        of_exact = tuple(replace(estimate, log_p=value) for estimate, value in changed)
        return replace(evaluation, estimates={**evaluation.estimates, "exact": of_exact})

    scores = perplexities(with_log_p(*[-9000.0] * 4))["exact"]
    assert set(scores) == {"bits_per_character", "bits_per_byte"}
    assert scores["bits_per_character"].value == pytest.approx(36000.0 / math.log(2) / 23)
    some = perplexities(with_log_p(-4000.0, -10.0, -10.0, -10.0))["exact"]  # 503 a word, but 2000 of the first
    assert some["ppl"].value == pytest.approx(math.exp(4030.0 / 8), rel=1e-9)
    assert (some["ppl"].low, some["ppl"].high) == (None, None)
    assert (some["improvement"].low, some["improvement"].high) == (None, None)
    assert some["improvement"].value < -1e200
    assert perplexity(709.0) == math.exp(709.0)
    assert perplexity(710.0) is None


# -- the marginal gap and its correlation with the tokeniser's entropy, against sums over all cuts one by one --

GAP_TEXTS = ["abab ba", "a b", "aba", "bab ab aba", "bb", "abaab", "b ba ba"]


def brute_entropy(spelling: str, b: float) -> float:
    assert INVENTORY.scores is not None
    log_w = [b * math.fsum(INVENTORY.scores[list(cut)]) for cut in cuts_of(INVENTORY, spelling)]
    log_z = log_sum(log_w)
    return -math.fsum(math.exp(w - log_z) * (w - log_z) for w in log_w)


@pytest.mark.parametrize("b", [0.5, 1.0])
def test_gaps_entropies_and_correlation(b: float) -> None:
    found = evaluate_documents(
        MODEL, documents(MODEL, GAP_TEXTS, LatticeBuilder(INVENTORY)), ["exact"], EstimatorSettings()
    )
    gaps = marginal_gaps({"toy": found}, "exact", b=b)
    truth, pieces, entropies = [], [], []
    for document in found.documents:
        own = MODEL.log_prob_of(INVENTORY.ids[document.text.canonical].tolist())
        truth.append(MODEL.brute_log_p(document.text.spelling) - own)
        pieces.append(len(document.text.canonical))
        entropies.append(brute_entropy(document.text.spelling, b))
    assert gaps.gap == pytest.approx(truth, abs=1e-10)
    assert gaps.entropy == pytest.approx(entropies, abs=1e-10)
    assert gaps.scores["gap"].value == pytest.approx(np.mean(truth), abs=1e-10)
    assert gaps.scores["gap_per_piece"].value == pytest.approx(sum(truth) / sum(pieces), abs=1e-10)
    assert gaps.scores["entropy_per_piece"].value == pytest.approx(sum(entropies) / sum(pieces), abs=1e-10)
    rho = stats.spearmanr(np.divide(entropies, pieces), np.divide(truth, pieces)).statistic
    score = gaps.scores["entropy_gap_rho"]
    assert score.value == pytest.approx(rho, abs=1e-12)
    assert score.low is score.high is None
    assert "ci:none/fewer-than-10-documents" in score.signature.split("|")
    many = marginal_gaps({"one": found, "two": found}, "exact", b=b).scores["entropy_gap_rho"]
    assert many.low is not None and many.high is not None
    assert -1.0 <= many.low <= many.value <= many.high <= 1.0
    assert f"entropy-b:{b:g}" in score.signature.split("|")
    record = gaps.rows()[3]
    assert (record["set"], record["pieces"]) == ("toy", pieces[3])
    assert record["gap_per_piece"] == pytest.approx(truth[3] / pieces[3])


def test_sets_are_pooled_in_the_correlation() -> None:
    builder = LatticeBuilder(INVENTORY)
    sets = {
        name: evaluate_documents(
            MODEL, documents(MODEL, texts, builder), ["exact", "nbest"], EstimatorSettings(samples=2)
        )
        for name, texts in (("one", GAP_TEXTS[:3]), ("two", GAP_TEXTS[3:]))
    }
    whole = evaluate_documents(MODEL, documents(MODEL, GAP_TEXTS, builder), ["exact"], EstimatorSettings())
    pooled, together = marginal_gaps(sets, "exact"), marginal_gaps({"all": whole}, "exact")
    assert pooled.sets == ("one",) * 3 + ("two",) * 4
    assert {name: score.value for name, score in pooled.scores.items()} == pytest.approx(
        {name: score.value for name, score in together.scores.items()}
    )
    assert "documents:7" in pooled.scores["gap"].signature.split("|")
    assert f"data:one:{sets['one'].parts['data']}+two:{sets['two'].parts['data']}" in pooled.scores["gap"].signature
    assert (marginal_gaps(sets, "nbest").gap <= pooled.gap + 1e-12).all()


def test_gaps_within_rounding_are_ties_in_the_correlation() -> None:
    found = evaluate_documents(
        MODEL, documents(MODEL, GAP_TEXTS, LatticeBuilder(INVENTORY)), ["exact"], EstimatorSettings()
    )
    noise = np.array([3e-8, -2e-8, 5e-8, 0.0, -6e-8, 1e-8, 0.0]) * np.abs(found.one_best)
    real = np.array([0.0, 0.0, 0.0, 0.4, 0.0, 0.0, 0.1])
    changed = tuple(
        replace(e, log_p=own + gap)
        for e, own, gap in zip(found.estimates["exact"], found.one_best, noise + real, strict=True)
    )
    found = replace(found, estimates={**found.estimates, "exact": changed})
    x = marginal_gaps({"toy": found}, "exact").entropy / found.pieces
    single, double = (
        marginal_gaps({"toy": replace(found, rounding=rounding)}, "exact").scores["entropy_gap_rho"].value
        for rounding in (SINGLE, DOUBLE)
    )
    assert single == pytest.approx(stats.spearmanr(x, real / found.pieces).statistic, abs=1e-12)
    assert double == pytest.approx(stats.spearmanr(x, (noise + real) / found.pieces).statistic, abs=1e-12)
    assert single != double


def test_two_documents_have_no_correlation() -> None:
    found = evaluate_documents(
        MODEL, documents(MODEL, GAP_TEXTS[:2], LatticeBuilder(INVENTORY)), ["exact"], EstimatorSettings()
    )
    assert "entropy_gap_rho" not in marginal_gaps({"toy": found}, "exact").scores
