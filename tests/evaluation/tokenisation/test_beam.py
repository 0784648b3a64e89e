"""Beam summing, and the most likely cut."""

from __future__ import annotations

import math

import numpy as np
import pytest
from guided_estimates import AB, THREE_WORDS, RecordingModel, document_of
from hypothesis import given, settings
from hypothesis import strategies as st
from piece_models import BOS, ToyPieceModel

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.estimators.sequential import beam

THREE = "▁abab▁ba▁aba"
ORDERS = st.sampled_from([2, 3, None])


@pytest.mark.long
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
