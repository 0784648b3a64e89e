"""Beam summing, and the most likely cut."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from guided_estimates import AB, THREE_WORDS, RecordingModel, document_of
from hypothesis import given, settings
from hypothesis import strategies as st
from piece_models import BOS, ToyPieceModel

from truesource.evaluation.tokenisation.estimators.beam import beam
from truesource.evaluation.tokenisation.estimators.most_likely import most_likely_segmentation
from truesource.evaluation.tokenisation.settings import EstimatorSettings

THREE = "▁abab▁ba▁aba"
ORDERS = st.sampled_from([2, 3, None])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 20), ORDERS, st.integers(1, 20), st.integers(1, 15))
def test_a_beam_is_a_lower_bound_and_draws_nothing(seed: int, order: int | None, width: int, candidates: int) -> None:
    model = ToyPieceModel(AB, order=order, seed=seed)
    document = document_of(model, "abab ba")
    truth = model.brute_log_p("▁abab▁ba")
    found = beam(model, document, EstimatorSettings(candidates=candidates, particles=width))
    assert found.log_p <= truth + 1e-12
    assert found.log_lower == pytest.approx(found.log_p, abs=1e-12)
    if found.bound == "exact":
        assert found.log_p == pytest.approx(truth, abs=1e-12)
    else:
        assert (found.bound, found.relative_variance) == ("lower", None)
    assert found == beam(model, document, EstimatorSettings(candidates=candidates, particles=width, seed=9))


@pytest.mark.parametrize("order", [2, None])
def test_a_wide_beam_is_exact(order: int | None) -> None:
    model = ToyPieceModel(AB, order=order, seed=4)
    document = document_of(model, THREE_WORDS)
    values = [
        beam(model, document, EstimatorSettings(candidates=15, particles=width))
        for width in (1, 2, 4, 8, 16, 32, 64, 320)
    ]
    assert (np.diff([x.log_p for x in values]) >= 0.0).all()
    assert values[-1].bound == "exact"
    assert values[-1].log_p == pytest.approx(model.brute_log_p(THREE), abs=1e-12)


def test_a_beam_reads_no_beginning_twice() -> None:
    model = RecordingModel(AB, order=None, seed=2)
    found = beam(model, document_of(model, THREE_WORDS), EstimatorSettings(candidates=6, particles=5))
    assert len(set(model.last.texts)) == len(model.last.texts) == found.steps - 1


def test_a_text_that_the_model_forbids_has_no_probability() -> None:
    model = ToyPieceModel(AB, order=2, forbidden={BOS: AB.ids.tolist()})
    found = beam(model, document_of(model, THREE_WORDS), EstimatorSettings())
    assert (found.log_p, found.log_lower) == (-math.inf, -math.inf)
    best = most_likely_segmentation(model, document_of(model, THREE_WORDS), EstimatorSettings())
    assert best.log_p == -math.inf


# -- the most likely cut ----------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 20), ORDERS, st.integers(1, 8))
def test_branch_and_bound_finds_the_most_likely_cut(seed: int, order: int | None, width: int) -> None:
    model = ToyPieceModel(AB, order=order, seed=seed, spread=1.5)
    document = document_of(model, THREE_WORDS)
    found = most_likely_segmentation(model, document, EstimatorSettings(particles=width))
    cuts = model.brute(THREE)
    assert found.proven
    assert found.log_p == pytest.approx(max(cuts.values()), abs=1e-12)
    assert cuts[tuple(document.lattice.piece[found.arcs].tolist())] == pytest.approx(found.log_p, abs=1e-12)


def test_without_room_for_a_proof_the_answer_is_the_best_of_the_beam() -> None:
    model = ToyPieceModel(AB, order=None, seed=3, spread=1.5)
    document = document_of(model, THREE_WORDS)
    proven = most_likely_segmentation(model, document, EstimatorSettings(particles=1))
    for width in (1, 4, 100):
        found = most_likely_segmentation(model, document, EstimatorSettings(particles=width, most_prefixes=3))
        assert not found.proven
        own = model.brute(THREE)[tuple(document.lattice.piece[document.best].tolist())]
        assert own <= found.log_p <= proven.log_p
    assert found.log_p == pytest.approx(proven.log_p, abs=1e-12)  # a beam of 100 leaves nothing out here
    assert (
        proven.steps > most_likely_segmentation(model, document, EstimatorSettings(particles=1, most_prefixes=3)).steps
    )


def test_a_better_first_answer_leaves_less_to_prove() -> None:
    model = ToyPieceModel(AB, order=None, seed=1)
    document = document_of(model, "abababa abab")
    steps = most_likely_segmentation(model, document, EstimatorSettings(particles=2)).steps
    full = sum(math.prod(x) for x in [(80, 15)])
    assert steps < full


def test_finite_memory_leaves_less_to_prove() -> None:
    document_settings = replace(EstimatorSettings(), particles=2)
    steps = []
    for order in (2, None):
        model = ToyPieceModel(AB, order=order, seed=1)
        steps.append(most_likely_segmentation(model, document_of(model, "abababa abab"), document_settings).steps)
    assert steps[0] < steps[1]
