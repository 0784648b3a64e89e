"""Perplexities per word, bits per character and byte, from sums over all cuts one by one."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from piece_models import AB_PIECES, ToyPieceModel, toy_inventory

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import documents
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.results import Evaluation, evaluate_documents
from truesource.evaluation.tokenisation.summaries import perplexities, perplexity

INVENTORY = toy_inventory(AB_PIECES)
TEXTS = ["abab ba", "a  b aba", "AB bab", "ba"]


@pytest.fixture(scope="module", params=[True, False], ids=["end", "no end"])
def found(request: pytest.FixtureRequest) -> tuple[ToyPieceModel, Evaluation]:
    model = ToyPieceModel(INVENTORY, order=None, end=request.param)
    read = documents(model, TEXTS, LatticeBuilder(INVENTORY))
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
    read = documents(found[0], TEXTS * 3, LatticeBuilder(INVENTORY))
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
    read = documents(found[0], TEXTS[:1], LatticeBuilder(INVENTORY))
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
