"""Importance sampling from the model, kept to the pieces that the text allows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from guided_estimates import AB, LONG_WORD, THREE_WORDS, RecordingModel, document_of, ratios, repeated, z_score
from piece_models import BOS, ToyPieceModel

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.estimators.guided import guided

NETWORK = ToyPieceModel(AB, order=None, seed=2)  #: never comes to the same context twice
BIGRAM = ToyPieceModel(AB, order=2, seed=2)
SETTINGS = EstimatorSettings(samples=16)
THREE = "▁abab▁ba▁aba"


@pytest.mark.long
@pytest.mark.parametrize("model", [NETWORK, BIGRAM], ids=["network", "bigram"])
@pytest.mark.parametrize("text", [LONG_WORD, THREE_WORDS])
def test_the_mean_weight_is_unbiased_and_so_is_its_variance(model: ToyPieceModel, text: str) -> None:
    log_p = model.brute_log_p("".join("▁" + word for word in text.split()))
    found = repeated(guided, model, text, SETTINGS, 150)
    values = ratios(found, log_p)
    assert abs(z_score(values)) < 4.0
    variances = [
        x.relative_variance * y**2 for x, y in zip(found, values, strict=True) if x.relative_variance is not None
    ]
    assert np.mean(variances) == pytest.approx(values.var(ddof=1), rel=0.4)
    assert {x.bound for x in found} == {"unbiased"}
    assert all(x.log_lower <= log_p + 1e-12 for x in found)


def test_one_sample_has_the_weight_of_its_cut() -> None:
    """P of the cut over the product of what each of its pieces has among those that can stand there."""
    document = document_of(NETWORK, "ab")
    weights = {}
    for cut, log_p in NETWORK.brute("▁ab").items():
        log_q, position, read = 0.0, 0, []
        for piece in cut:
            rest = "▁ab"[position:]
            expects = NETWORK.expects(read)
            fits = {int(AB.ids[i]) for i, x in enumerate(AB.pieces) if rest.startswith(x)}
            log_q += expects[int(AB.ids[piece])] - math.log(sum(math.exp(expects[token]) for token in fits))
            read.append(int(AB.ids[piece]))
            position += len(AB.pieces[piece])
        weights[cut] = log_p - log_q
    found = {round(guided(NETWORK, document, EstimatorSettings(samples=1, seed=seed)).log_p, 10) for seed in range(60)}
    assert found == {round(x, 10) for x in weights.values()}
    assert sum(math.exp(NETWORK.brute("▁ab")[cut] - w) for cut, w in weights.items()) == pytest.approx(1.0, abs=1e-12)


def test_the_lower_bound_counts_each_cut_once() -> None:
    log_p = NETWORK.brute_log_p(THREE)
    found = guided(NETWORK, document_of(NETWORK, THREE_WORDS), EstimatorSettings(samples=4000))
    assert log_p - 0.05 < found.log_lower < log_p


def test_no_beginning_is_read_twice_and_steps_count_what_is_read() -> None:
    model = RecordingModel(AB, order=None, seed=2)
    found = guided(model, document_of(model, THREE_WORDS), SETTINGS)
    assert len(set(model.last.texts)) == len(model.last.texts) == found.steps - 1
    assert model.last.most_held < 60


def test_the_same_seed_gives_the_same_bytes() -> None:
    document = document_of(NETWORK, THREE_WORDS)
    one, two = (guided(NETWORK, document, SETTINGS) for _ in range(2))
    assert one == two
    assert one != guided(NETWORK, document, replace(SETTINGS, seed=2))


@pytest.mark.long
def test_samples_that_come_to_a_dead_end_weigh_nothing() -> None:
    pieces = {AB.pieces[i]: int(AB.ids[i]) for i in range(len(AB.pieces))}
    nothing = ToyPieceModel(AB, order=2, forbidden={BOS: AB.ids.tolist()})
    found = guided(nothing, document_of(nothing, "abab"), SETTINGS)
    assert (found.log_p, found.log_lower, found.relative_variance) == (-math.inf, -math.inf, None)
    after = [pieces["b"], pieces["ba"], pieces["▁a"], pieces["▁"]]
    some = ToyPieceModel(AB, order=2, forbidden={pieces["a"]: after, pieces["▁a"]: after})
    log_p = some.brute_log_p("▁abab▁a")
    found_ = repeated(guided, some, "abab a", SETTINGS, 150)
    assert abs(z_score(ratios(found_, log_p))) < 4.0
