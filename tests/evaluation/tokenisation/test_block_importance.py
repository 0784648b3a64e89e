"""Importance sampling by blocks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from guided_estimates import AB, LONG_WORD, THREE_WORDS, RecordingModel, document_of, ratios, repeated, z_score
from piece_models import BOS, ToyPieceModel

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.estimators.blocks import Blocks
from truesource.evaluation.tokenisation.estimators.sequential import block_importance
from truesource.evaluation.tokenisation.estimators.weights import drawn

NETWORK = ToyPieceModel(AB, order=None, seed=2)  #: never comes to the same context twice
BIGRAM = ToyPieceModel(AB, order=2, seed=2)
SETTINGS = EstimatorSettings(candidates=6, particles=8)


def listed_log_p(model: ToyPieceModel, text: str, candidates: int) -> float:
    """Log of the sum of P over the cuts of a text that are made of listed cuts of its words."""
    document = document_of(model, text)
    blocks = Blocks(document, AB, EstimatorSettings(candidates=candidates), tail=False)
    cuts: list[tuple[int, ...]] = [()]
    start = 0
    for end in blocks.ends:
        cuts = [(*cut, *tokens.tolist()) for cut in cuts for tokens in blocks.candidates(start, end).tokens]
        start = end
    return math.log(math.fsum(math.exp(model.log_prob_of(cut)) for cut in cuts))


@pytest.mark.long
@pytest.mark.parametrize("model", [NETWORK, BIGRAM], ids=["network", "bigram"])
@pytest.mark.parametrize("text", [LONG_WORD, THREE_WORDS])
def test_the_mean_weight_is_unbiased_and_so_is_its_variance(model: ToyPieceModel, text: str) -> None:
    log_p = model.brute_log_p("".join("▁" + word for word in text.split()))
    found = repeated(block_importance, model, text, SETTINGS, 200)
    values = ratios(found, log_p)
    assert abs(z_score(values)) < 4.0
    variances = [
        x.relative_variance * y**2 for x, y in zip(found, values, strict=True) if x.relative_variance is not None
    ]
    assert len(variances) == len(found)
    assert np.mean(variances) == pytest.approx(values.var(ddof=1), rel=0.4)
    assert {x.bound for x in found} == {"unbiased"}
    assert all(x.log_lower <= log_p + 1e-12 for x in found)


@pytest.mark.long
def test_without_tails_the_mean_weight_is_unbiased_for_the_sum_over_listed_cuts() -> None:
    settings = replace(SETTINGS, candidates=3, tail=False)
    part = listed_log_p(NETWORK, THREE_WORDS, 3)
    whole = NETWORK.brute_log_p("▁abab▁ba▁aba")
    found = repeated(block_importance, NETWORK, THREE_WORDS, settings, 200)
    assert abs(z_score(ratios(found, part))) < 4.0
    assert z_score(ratios(found, whole)) < -4.0
    assert {x.bound for x in found} == {"part"}
    assert (
        abs(z_score(ratios(repeated(block_importance, NETWORK, THREE_WORDS, replace(settings, tail=True), 200), whole)))
        < 4.0
    )


@pytest.mark.long
def test_the_lower_bound_is_the_sum_over_the_different_cuts_that_were_drawn() -> None:
    """With very many samples it is nearly everything; with one, it is P of a cut."""
    log_p = NETWORK.brute_log_p("▁abab▁ba▁aba")
    many = block_importance(NETWORK, document_of(NETWORK, THREE_WORDS), replace(SETTINGS, particles=3000))
    assert log_p - 0.02 < many.log_lower < log_p
    one = block_importance(NETWORK, document_of(NETWORK, THREE_WORDS), replace(SETTINGS, particles=1))
    assert one.relative_variance is None
    assert min(abs(one.log_lower - x) for x in NETWORK.brute("▁abab▁ba▁aba").values()) < 1e-12


def test_no_beginning_is_read_twice_and_steps_count_what_is_read() -> None:
    model = RecordingModel(AB, order=None, seed=2)
    found = block_importance(model, document_of(model, THREE_WORDS), SETTINGS)
    assert len(set(model.last.texts)) == len(model.last.texts)
    assert found.steps == len(model.last.texts) + 1 == model.last.steps
    merged = block_importance(BIGRAM, document_of(BIGRAM, THREE_WORDS), SETTINGS)
    assert merged.steps < found.steps


def test_contexts_are_forgotten_after_each_block() -> None:
    model = RecordingModel(AB, order=None, seed=2)
    settings = replace(SETTINGS, particles=2, candidates=3)
    block_importance(model, document_of(model, "abab " * 12), settings)
    assert model.last.most_held < 20


def test_the_same_seed_gives_the_same_bytes() -> None:
    document = document_of(NETWORK, THREE_WORDS)
    one, two = (block_importance(NETWORK, document, SETTINGS) for _ in range(2))
    assert one == two
    assert one != block_importance(NETWORK, document, replace(SETTINGS, seed=2))


@pytest.mark.long
def test_a_text_that_the_model_forbids_has_no_probability() -> None:
    pieces = {AB.pieces[i]: int(AB.ids[i]) for i in range(len(AB.pieces))}
    nothing = ToyPieceModel(AB, order=2, forbidden={BOS: list(pieces.values())})
    found = block_importance(nothing, document_of(nothing, "abab ba"), SETTINGS)
    assert (found.log_p, found.log_lower, found.relative_variance) == (-math.inf, -math.inf, None)
    some = ToyPieceModel(AB, order=2, forbidden={BOS: [pieces["▁"], pieces["▁a"]]})
    log_p = some.brute_log_p("▁abab▁ba")
    assert abs(z_score(ratios(repeated(block_importance, some, "abab ba", SETTINGS, 200), log_p))) < 4.0


@pytest.mark.long
def test_a_model_without_an_end_gives_the_probability_of_the_pieces() -> None:
    model = ToyPieceModel(AB, order=2, end=False)
    log_p = model.brute_log_p("▁ab▁a")
    found = repeated(block_importance, model, "ab a", SETTINGS, 200)
    assert abs(z_score(ratios(found, log_p))) < 4.0


def test_columns_are_drawn_in_proportion_to_their_weights() -> None:
    weights = np.array([0.0, 0.5, 0.0, 0.3, 0.2, 0.0])
    with np.errstate(divide="ignore"):
        table = np.tile(np.log(weights) - 800.0, (20000, 1))
    counts = np.bincount(drawn(table, np.random.default_rng(3)), minlength=6)
    assert (counts[weights == 0.0] == 0).all()
    assert counts / 20000 == pytest.approx(weights, abs=0.015)
