"""The share of the tokeniser's own cut, of texts and of words in context, against all cuts one by one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from enumerated_cuts import log_sum
from piece_models import AB_PIECES, ToyPieceModel, cuts_of, toy_inventory

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.canonical import canonical_mass, local_canonicality
from truesource.evaluation.tokenisation.documents import documents
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.results import DOUBLE, evaluate_documents
from truesource.grammar.support.errors import InputError

INVENTORY = toy_inventory(AB_PIECES)
BUILDER = LatticeBuilder(INVENTORY)
MODEL = ToyPieceModel(INVENTORY, order=None)
TEXTS = ["abab b", "ab", "bab ba a", "aba"]


def test_the_share_is_the_posterior_of_the_own_cut() -> None:
    found = evaluate_documents(MODEL, documents(MODEL, TEXTS, BUILDER), ["exact"], EstimatorSettings())
    mass = canonical_mass(found, "exact")
    shares = []
    for document in found.documents:
        brute = MODEL.brute(document.text.spelling)
        shares.append(math.exp(brute[tuple(document.text.canonical.tolist())] - log_sum(brute.values())))
    assert mass["canonical_mass"].value == pytest.approx(np.mean(shares), abs=1e-10)
    per_word = math.prod(shares) ** (1 / (2 + 1 + 3 + 1))
    assert mass["canonical_mass_per_word"].value == pytest.approx(per_word, abs=1e-10)
    assert mass["canonical_capped"].value == 0.0
    for score in mass.values():
        assert score.low is score.high is None  # of four documents
        assert "ci:none/fewer-than-10-documents" in score.signature.split("|")


def test_an_estimate_below_the_own_cut_is_capped_and_counted() -> None:
    found = evaluate_documents(MODEL, documents(MODEL, TEXTS, BUILDER), ["exact"], EstimatorSettings())
    low = tuple(replace(e, log_p=e.log_p - (9.0 if i == 2 else 0.0)) for i, e in enumerate(found.estimates["exact"]))
    mass = canonical_mass(replace(found, estimates={**found.estimates, "exact": low}), "exact")
    assert mass["canonical_capped"].value == 0.25


def test_rounding_of_single_precision_is_not_counted() -> None:
    """An estimate below P(T*) by less than a millionth of ln P says nothing; n-grams count in double precision."""
    found = evaluate_documents(MODEL, documents(MODEL, TEXTS, BUILDER), ["exact"], EstimatorSettings())
    for share, capped, of_double in ((0.9e-6, 0, 1), (1.1e-6, 1, 1), (0.9e-13, 0, 0)):
        low = tuple(
            replace(e, log_p=own * (1.0 + share)) if i == 2 else e
            for i, (e, own) in enumerate(zip(found.estimates["exact"], found.one_best.tolist(), strict=True))
        )
        changed = replace(found, estimates={**found.estimates, "exact": low})
        assert canonical_mass(changed, "exact")["canonical_capped"].value == capped / 4
        assert canonical_mass(replace(changed, rounding=DOUBLE), "exact")["canonical_capped"].value == of_double / 4


@pytest.mark.parametrize("candidates", [2, 100])
def test_words_in_context(candidates: int) -> None:
    assert INVENTORY.scores is not None
    found = local_canonicality(MODEL, documents(MODEL, TEXTS, BUILDER), BUILDER, candidates=candidates)
    right, shares = 0, []
    for text in TEXTS:
        before: list[int] = []
        for word in text.split():
            cuts = sorted(cuts_of(INVENTORY, "▁" + word), key=lambda c: -math.fsum(INVENTORY.scores[list(c)]))
            log_p = []
            for cut in cuts[:candidates]:
                tokens = INVENTORY.ids[list(cut)].tolist()
                whole = [*before, *tokens]
                log_p.append(sum(MODEL.expects(whole[: len(before) + i])[t] for i, t in enumerate(tokens)))
            right += max(log_p) == log_p[0]  # the tokeniser's cut is the best of Q
            shares.append(math.exp(log_p[0] - log_sum(log_p)))
            before += INVENTORY.ids[list(cuts[0])].tolist()
    canonical, mass = found
    assert canonical["compared"] == 7  # every word here has two cuts at least
    assert (canonical["name"], canonical["value"]) == ("locally_canonical", pytest.approx(right / 7))
    assert (mass["name"], mass["value"]) == ("local_canonical_mass", pytest.approx(np.mean(shares), abs=1e-10))
    assert sum(times for _, times in mass["instead"]) == 7 - right
    assert f"candidates:{candidates}" in mass["signature"].split("|")


def test_the_own_cut_is_compared_where_q_ranks_it_low() -> None:
    assert INVENTORY.scores is not None
    builder = LatticeBuilder(INVENTORY, -INVENTORY.scores)  # long cuts are ranked first
    found = local_canonicality(MODEL, documents(MODEL, ["abab"], builder), builder, candidates=2)
    scores = INVENTORY.scores
    cuts = sorted(cuts_of(INVENTORY, "▁abab"), key=lambda cut: math.fsum(scores[list(cut)]))[:2]
    own = tuple(MODEL.pieces.read("abab").canonical.tolist())
    assert own not in cuts
    log_p = []
    for cut in (own, *cuts):
        tokens = INVENTORY.ids[list(cut)].tolist()
        log_p.append(sum(MODEL.expects(tokens[:i])[token] for i, token in enumerate(tokens)))
    share = math.exp(log_p[0] - log_sum(log_p))
    assert found[1]["value"] == pytest.approx(share, abs=1e-10)
    best = max(zip(log_p, (own, *cuts), strict=True))[1]
    assert found[1]["instead"] == ([] if best == own else [(" ".join(INVENTORY.pieces[i] for i in best), 1)])


def test_words_with_one_cut_are_not_compared() -> None:
    inventory = toy_inventory({"_a": -1.0, "_b": -1.0})
    model, builder = ToyPieceModel(inventory), LatticeBuilder(inventory)
    assert local_canonicality(model, documents(model, ["a b a"], builder), builder) == []
    with pytest.raises(InputError, match="at least 2 segmentations"):
        local_canonicality(model, documents(model, ["a"], builder), builder, candidates=1)
