"""Linear maps from vectors to beliefs, against least squares and known shares of variance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy

from truesource.evaluation.beliefs.measure import (
    AffineMap,
    BeliefParts,
    divergences,
    fit,
    last_words,
    mean_after,
    neighbours,
    picture,
    r2,
    readable,
)
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError, NothingToMeasureError

RNG = np.random.default_rng(3)
SENTENCE = np.repeat(np.arange(100), 6)
PARTS = BeliefParts.of(SENTENCE)


def test_parts_share_no_sentence() -> None:
    found = [set(SENTENCE[part].tolist()) for part in (PARTS.train, PARTS.dev, PARTS.test)]
    assert [len(each) for each in found] == [70, 10, 20] and not found[0] & found[1] | found[0] & found[2]
    assert sum(map(len, (PARTS.train, PARTS.dev, PARTS.test))) == len(SENTENCE)
    with pytest.raises(NothingToMeasureError, match="too few"):
        BeliefParts.of(np.repeat(np.arange(9), 3))


def test_the_map_is_that_of_least_squares_where_nothing_holds_it_back() -> None:
    x = RNG.normal(size=(600, 5)).astype(np.float32)
    beliefs = x.astype(np.float64) @ RNG.normal(size=(5, 3)) + np.array([1.0, -2.0, 0.5])
    made = fit(x, beliefs, PARTS)
    np.testing.assert_allclose(made(x), beliefs, atol=1e-5)
    design = np.column_stack([x[PARTS.train].astype(np.float64), np.ones(len(PARTS.train))])
    wanted = np.linalg.lstsq(design, beliefs[PARTS.train], rcond=None)[0]
    np.testing.assert_allclose(np.vstack([made.weight, made.bias]), wanted, atol=1e-6)
    assert r2(made(x), beliefs, PARTS, SENTENCE).value == pytest.approx(1.0, abs=1e-9)


def test_r2_is_the_share_that_is_signal() -> None:
    """Half of the variance is noise that no input knows: R2 is about a half; of noise alone it is not above 0."""
    n = 40_000
    sentence = np.repeat(np.arange(n // 10), 10)
    parts, x = BeliefParts.of(sentence), RNG.normal(size=(n, 4))
    signal, noise = x[:, :2], RNG.normal(size=(n, 2))
    found = r2(fit(x, signal + noise, parts)(x), signal + noise, parts, sentence)
    assert found.low is not None and found.high is not None
    assert found.low < 0.5 < found.high and found.high - found.low < 0.05
    assert r2(fit(x, noise, parts)(x), noise, parts, sentence).value < 0.002
    with pytest.raises(NothingToMeasureError, match="the same after all words"):
        r2(np.ones((n, 1)), np.ones((n, 1)), parts, sentence)


def test_a_belief_is_readable_from_itself_and_not_from_noise() -> None:
    grammar = PCFG.from_text("S -> A B 1\nA -> 'a' 0.5 | 'b' 0.5\nB -> 'c' 1")
    beliefs = grammar.beliefs([["a", "c"], ["b", "c"]] * 200, "next-word")
    x = np.column_stack([beliefs.values @ RNG.normal(size=(beliefs.values.shape[1], 3)), RNG.normal(size=len(beliefs))])
    assert readable(x, beliefs).value == pytest.approx(1.0, abs=1e-6)
    assert readable(x[:, 3:], beliefs).value < 0.05
    with pytest.raises(InputError, match="800 words need as many rows"):
        readable(x[:5], beliefs)


def test_vectors_that_outnumber_the_words_are_held_back() -> None:
    x = RNG.normal(size=(600, 500))
    beliefs = x[:, :1] + RNG.normal(size=(600, 1))
    made = fit(x, beliefs, PARTS)
    assert made.decay > 1e-6 and r2(made(x), beliefs, PARTS, SENTENCE).value > -1.0


def test_vectors_change_with_beliefs_as_the_map_back_says() -> None:
    beliefs, frame = RNG.dirichlet(np.ones(3), 600), RNG.normal(size=(3, 7))
    vectors = beliefs @ frame + 0.01 * RNG.normal(size=(600, 7))
    back = fit(beliefs, vectors, PARTS)
    change = np.array([[0.5, -0.25, -0.25], [0.1, 0.2, -0.3]])  # beliefs sum to one, so their changes to zero
    np.testing.assert_allclose(change @ back.weight, change @ frame, atol=0.02)
    assert isinstance(back, AffineMap)


def test_means_after_words_fall_back_to_fewer_words() -> None:
    pcfg = PCFG.from_text("S -> A S 0.7 | A 0.3\nA -> 'a' 0.5 | 'b' 0.5")
    sentences = [["a", "b"], ["b", "b"], ["a"]] * 5 + [["b", "a"]] * 2
    found = pcfg.beliefs(sentences, "next-word")
    assert last_words(found, 2)[:5] == [(0,), (0, 1), (1,), (1, 1), (0,)]
    assert neighbours(found, 2)[:2] == [(-1, -1, 1, -1), (-1, 0, -1, -1)]
    assert neighbours(found, 1)[:5] == [(-1, 1), (0, -1), (-1, 1), (1, -1), (-1, -1)]
    values = np.arange(len(found), dtype=np.float64)[:, None]
    parts = BeliefParts(np.arange(5), np.arange(5, 8), np.arange(8, len(found)))
    read = mean_after([last_words(found, 2), last_words(found, 1)], values, parts)
    train = values[:5, 0]
    assert read[5, 0] == pytest.approx(train[[0, 4]].mean() if found.position[5] == 0 and found.token[5] == 0 else 1.0)
    assert read[-1, 0] == pytest.approx(train[[0, 4]].mean())  # "b a" is new, "a" is not


def test_the_picture_has_the_plane_of_most_variance() -> None:
    plane = RNG.normal(size=(2, 6))
    beliefs = RNG.normal(size=(300, 2)) @ plane
    made = picture(beliefs, beliefs, most=100)
    assert made.truth.shape == (100, 2) and made.share == pytest.approx(1.0) and made.colour.shape == (100, 3)
    np.testing.assert_array_equal(made.truth, made.read)
    centred = beliefs - beliefs.mean(axis=0)
    np.testing.assert_allclose(np.square(made.truth).sum(1), np.square(centred[:100]).sum(1), atol=1e-10)
    three = RNG.dirichlet(np.ones(3), 50)
    assert picture(three, three).colour.min() == 0.0 and picture(three, three).colour.max() == 1.0
    assert picture(three[:, :1], three[:, :1]).truth[:, 1] == pytest.approx(0.0)


def test_divergences_are_those_of_scipy() -> None:
    truth, model = RNG.dirichlet(np.ones(5), 6), RNG.dirichlet(np.ones(5), 6)
    truth[0] = [0.0, 0.5, 0.5, 0.0, 0.0]
    with np.errstate(divide="ignore"):
        found = divergences(np.log(truth), np.log(model))
    np.testing.assert_allclose(found, [entropy(p, q) for p, q in zip(truth, model, strict=True)], atol=1e-12)
