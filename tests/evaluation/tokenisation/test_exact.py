"""Exact sums over cuts against enumeration."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from enumerated_cuts import log_sum
from hypothesis import given, settings
from hypothesis import strategies as st
from piece_models import AB_PIECES, BOS, FIRST_NUMBER, ToyPieceModel, ToyScorer, toy_inventory

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import Document, documents
from truesource.evaluation.tokenisation.estimators import exact as module
from truesource.evaluation.tokenisation.estimators.exact import (
    TooManyContextsError,
    bracket,
    bracket_sum,
    count_prefixes,
    exact,
    exact_sum,
    remembers_all,
    too_many_prefixes,
)
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.grammar.support.errors import InputError

INVENTORY = toy_inventory(AB_PIECES)
BUILDER = LatticeBuilder(INVENTORY)
SETTINGS = EstimatorSettings()
ALWAYS = ["_", "a", "b"]


def document_of(model: ToyPieceModel, text: str) -> Document:
    return documents(model, [text], LatticeBuilder(model.pieces.inventory)).documents[0]


@st.composite
def models(draw: st.DrawFn) -> ToyPieceModel:
    """Some pieces, any memory, with or without an end, and tokens that never follow some others."""
    some = draw(st.lists(st.sampled_from([p for p in AB_PIECES if p not in ALWAYS]), unique=True))
    inventory = toy_inventory({p: AB_PIECES[p] for p in [*ALWAYS, *some]})
    tokens = st.sampled_from(inventory.ids.tolist())
    after = st.sampled_from([BOS, *inventory.ids.tolist()])
    return ToyPieceModel(
        inventory,
        order=draw(st.sampled_from([1, 2, 3, None])),
        seed=draw(st.integers(0, 99)),
        end=draw(st.booleans()),
        forbidden=draw(st.dictionaries(after, st.lists(tokens, max_size=3), max_size=3)),
    )


texts = st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=2).map(" ".join)


@pytest.mark.long
@given(models(), texts)
@settings(max_examples=50, deadline=None)
def test_one_pass_finds_what_enumeration_does(model: ToyPieceModel, text: str) -> None:
    document = document_of(model, text)
    cuts = model.brute(document.text.spelling)
    found = exact_sum(model, document, SETTINGS)
    expected = log_sum(cuts.values())
    assert found.log_p == pytest.approx(expected, abs=1e-12)
    assert found.log_dropped == -math.inf
    if expected == -math.inf:
        return
    estimate = exact(model, document, SETTINGS)
    assert (estimate.log_p, estimate.log_lower, estimate.log_upper) == (found.log_p,) * 3
    assert estimate.bound == "exact"
    assert estimate.relative_variance == 0.0 and estimate.standard_error == 0.0


@pytest.mark.long
@given(models(), texts, st.sampled_from([0.0, 1e-6, 1e-2, 0.5]))
@settings(max_examples=50, deadline=None)
def test_the_bracket_holds_the_truth_and_is_as_narrow_as_asked(
    model: ToyPieceModel, text: str, tolerance: float
) -> None:
    document = document_of(model, text)
    cuts = model.brute(document.text.spelling)
    truth, own = log_sum(cuts.values()), cuts[tuple(document.text.canonical.tolist())]
    asked = EstimatorSettings(tolerance=tolerance)
    found = bracket(model, document, asked)
    assert found.log_upper is not None
    assert found.log_p == found.log_lower <= truth + 1e-12
    assert truth <= found.log_upper + 1e-12
    complete = exact_sum(model, document, SETTINGS)
    if own == -math.inf or tolerance == 0.0:
        assert (found.log_p, found.bound) == (complete.log_p, "exact")
    else:
        assert math.exp(found.log_upper - own) - math.exp(found.log_p - own) <= tolerance * (1 + 1e-9)
        assert (found.bound == "exact") == (found.log_upper == found.log_p)
        assert bracket_sum(model, document, asked).contexts <= complete.contexts


def test_a_bracket_visits_fewer_contexts_than_enumeration() -> None:
    """Of a model that is as sure of its cuts as trained ones are."""
    model = ToyPieceModel(toy_inventory({piece: 3.0 * score for piece, score in AB_PIECES.items()}), order=None)
    document = document_of(model, "abababababa")
    found = bracket(model, document, SETTINGS)
    few = EstimatorSettings(most_prefixes=int(0.7 * count_prefixes(document.lattice)))
    assert bracket(model, document, few) == found
    assert (found.bound, found.relative_variance) == ("lower", None)
    assert 0.0 < found.log_upper - found.log_p < SETTINGS.tolerance
    with pytest.raises(TooManyContextsError):
        exact(model, document, few)


def test_networks_visit_every_beginning_once_and_models_of_finite_memory_merge() -> None:
    visited = {}
    for order in (1, 2, 3, None):
        model = ToyPieceModel(INVENTORY, order=order)
        document = document_of(model, "abababa")
        found = exact_sum(model, document, SETTINGS)
        visited[order] = found.contexts
        assert remembers_all(model) == (order is None)
        if order is None:
            assert found.steps == found.contexts == count_prefixes(document.lattice)
    cuts = len(model.brute(document.text.spelling))
    tokens = sum(len(cut) for cut in model.brute(document.text.spelling))
    assert cuts == 80
    assert visited[1] == document.lattice.n + 1  # positions alone
    assert visited[1] < visited[2] < visited[3] < cuts < visited[None] < tokens


def test_a_long_text_is_exact_for_a_model_of_finite_memory() -> None:
    """The number of cuts is far beyond enumeration; the sum agrees with one by matrices."""
    model = ToyPieceModel(INVENTORY, order=2, seed=3)
    words = ["abababa", "bab", "aab"] * 40
    document = document_of(model, " ".join(words))
    found = exact_sum(model, document, SETTINGS)
    spelling, pieces, ids = document.text.spelling, INVENTORY.pieces, INVENTORY.ids.tolist()
    sums = {(0, BOS): 0.0}  # (position, last token)
    for i in range(1, len(spelling) + 1):
        for piece, token in zip(pieces, ids, strict=True):
            if spelling.endswith(piece, 0, i):
                j = i - len(piece)
                before = [(t, p) for (at, t), p in sums.items() if at == j]
                if before:
                    steps = [p + model.expects([] if t == BOS else [t])[token] for t, p in before]
                    sums[i, token] = log_sum(steps)
    end = [p + model.expects([t])[-2] for (at, t), p in sums.items() if at == len(spelling)]
    assert found.log_p == pytest.approx(log_sum(end), rel=1e-13)
    assert too_many_prefixes(document.lattice, SETTINGS)


def test_too_many_contexts_are_refused_before_a_network_is_run() -> None:
    few = EstimatorSettings(most_prefixes=100)
    for order in (None, 3, 2):
        model = ToyPieceModel(INVENTORY, order=order)
        document = document_of(model, "abababa")
        assert too_many_prefixes(document.lattice, few) and not too_many_prefixes(document.lattice, SETTINGS)
        with pytest.raises(TooManyContextsError, match="more than 20 prefixes"):
            exact(model, document, replace(few, most_prefixes=20))
        assert model.rows_scored == 0


def test_contexts_that_are_no_longer_needed_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    held = []

    class Watched(ToyScorer):
        def keep(self, contexts: np.ndarray) -> None:
            super().keep(contexts)
            held.append(self.held)

    model = ToyPieceModel(INVENTORY, order=None)
    document = document_of(model, "abababa")
    expected = exact_sum(model, document, SETTINGS)
    monkeypatch.setattr(module, "FORGET", 0)
    monkeypatch.setattr(module, "CHUNK", 7)
    monkeypatch.setattr(model, "incremental_scorer", lambda: Watched(model))
    found = exact_sum(model, document, SETTINGS)
    assert found.log_p == pytest.approx(expected.log_p, abs=1e-12)
    assert found.steps == expected.steps
    assert len(held) > document.lattice.n
    assert max(held) < 0.7 * expected.contexts


def test_what_is_no_number_is_refused() -> None:
    model = ToyPieceModel(INVENTORY)
    model.expects([])[FIRST_NUMBER + 1] = math.nan  # _aba
    with pytest.raises(InputError, match="not a number"):
        exact(model, document_of(model, "aba"), SETTINGS)
