"""The marginal gap and its correlation with the tokeniser's entropy, against sums over all cuts one by one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from enumerated_cuts import log_sum
from piece_models import AB_PIECES, ToyPieceModel, cuts_of, toy_inventory
from scipy import stats

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import documents
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.results import DOUBLE, SINGLE, evaluate_documents
from truesource.evaluation.tokenisation.summaries import marginal_gaps

INVENTORY = toy_inventory(AB_PIECES)
MODEL = ToyPieceModel(INVENTORY, order=None)
TEXTS = ["abab ba", "a b", "aba", "bab ab aba", "bb", "abaab", "b ba ba"]


def brute_entropy(spelling: str, b: float) -> float:
    assert INVENTORY.scores is not None
    log_w = [b * math.fsum(INVENTORY.scores[list(cut)]) for cut in cuts_of(INVENTORY, spelling)]
    log_z = log_sum(log_w)
    return -math.fsum(math.exp(w - log_z) * (w - log_z) for w in log_w)


@pytest.mark.parametrize("b", [0.5, 1.0])
def test_gaps_entropies_and_correlation(b: float) -> None:
    found = evaluate_documents(
        MODEL, documents(MODEL, TEXTS, LatticeBuilder(INVENTORY)), ["exact"], EstimatorSettings()
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
    record = gaps.records()[3]
    assert (record["set"], record["pieces"]) == ("toy", pieces[3])
    assert record["gap_per_piece"] == pytest.approx(truth[3] / pieces[3])


def test_sets_are_pooled_in_the_correlation() -> None:
    builder = LatticeBuilder(INVENTORY)
    sets = {
        name: evaluate_documents(
            MODEL, documents(MODEL, texts, builder), ["exact", "nbest"], EstimatorSettings(samples=2)
        )
        for name, texts in (("one", TEXTS[:3]), ("two", TEXTS[3:]))
    }
    whole = evaluate_documents(MODEL, documents(MODEL, TEXTS, builder), ["exact"], EstimatorSettings())
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
        MODEL, documents(MODEL, TEXTS, LatticeBuilder(INVENTORY)), ["exact"], EstimatorSettings()
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
        MODEL, documents(MODEL, TEXTS[:2], LatticeBuilder(INVENTORY)), ["exact"], EstimatorSettings()
    )
    assert "entropy_gap_rho" not in marginal_gaps({"toy": found}, "exact").scores
