"""Unigram scores fitted by EM against EM over all cuts listed one by one, and against a general optimiser."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import enumerated_cuts as truth
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from truesource.evaluation.tokenisation.lattice import (
    LatticeBuilder,
    count_paths,
    entropy,
    fit_scores,
    log_partition,
    uniform_scores,
)
from truesource.generator.language_model import PieceInventory
from truesource.grammar.support.errors import InputError

BPE = ("▁", "a", "b", "c", "▁a", "ab", "bc", "▁ab", "abc", "cc")
WORDS = {"▁abc": 6, "▁a": 9, "▁abab": 3, "▁bcb": 2, "▁ccc": 1}


def likelihood(inventory: PieceInventory, scores: Mapping[str, float], words: Mapping[str, int]) -> float:
    return math.fsum(n * truth.log_partition(word, scores) for word, n in words.items())


def test_a_step_is_one_of_em_over_all_cuts() -> None:
    inventory = truth.inventory(BPE, kind="bpe")
    flat = dict.fromkeys(BPE, -math.log(len(BPE)))
    expected = dict.fromkeys(BPE, 0.0)
    for word, n in WORDS.items():
        for (_, piece), p in truth.marginals(word, flat).items():
            expected[piece] += n * p
    total = math.fsum(expected.values())
    found = fit_scores(inventory, WORDS, iterations=1, floor=1e-12)
    assert np.exp(found) == pytest.approx([expected[p] / total for p in BPE], rel=1e-10)


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=7), st.integers(1, 50), min_size=1, max_size=8),
    st.sets(st.text("abc", min_size=2, max_size=4), max_size=8),
    st.sampled_from([1e-12, 1e-4, 0.04]),
)
def test_the_likelihood_never_falls(words: dict[str, int], longer: set[str], floor: float) -> None:
    inventory = truth.inventory(["a", "b", "c", *sorted(longer)], kind="wordpiece")
    steps = [np.full(len(inventory.pieces), -math.log(len(inventory.pieces)))]
    steps += [fit_scores(inventory, words, iterations=n, tolerance=0.0, floor=floor) for n in (1, 2, 3, 10, 30)]
    values = [likelihood(inventory, dict(zip(inventory.pieces, s.tolist(), strict=True)), words) for s in steps]
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in itertools.pairwise(values))
    scores = steps[-1]
    assert np.exp(scores).sum() == pytest.approx(1.0, rel=1e-10)
    assert np.exp(scores).min() >= floor * (1.0 - 1e-10)


@pytest.mark.parametrize("floor", [1e-9, 0.03])
def test_the_end_is_the_best_there_is(floor: float) -> None:
    """No other probabilities, all at least ``floor``, make the words likelier."""
    inventory = truth.inventory(BPE, kind="bpe")
    scores = fit_scores(inventory, WORDS, iterations=5000, tolerance=0.0, floor=floor)

    def loss(p: np.ndarray) -> float:
        return -likelihood(inventory, dict(zip(BPE, np.log(p).tolist(), strict=True)), WORDS)

    best = min(
        minimize(
            loss,
            start,
            method="SLSQP",
            bounds=[(floor, 1.0)] * len(BPE),
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0},
            options={"maxiter": 500, "ftol": 1e-12},
        ).fun
        for start in (np.full(len(BPE), 0.1), np.exp(scores))
    )
    assert loss(np.exp(scores)) == pytest.approx(best, rel=1e-6)


def test_pieces_that_are_never_seen_keep_the_floor_and_all_paths() -> None:
    inventory = truth.inventory([*BPE, "x", "abcabc"], kind="bpe")
    scores = fit_scores(inventory, WORDS, floor=1e-6)
    named = dict(zip(inventory.pieces, scores.tolist(), strict=True))
    assert named["x"] == named["abcabc"] == pytest.approx(math.log(1e-6))
    text = "▁abcabcx"
    lattice = LatticeBuilder(inventory, scores).build(text)
    assert count_paths(lattice) == len(truth.cuts(text, inventory.pieces))
    assert log_partition(lattice) == pytest.approx(truth.log_partition(text, named), rel=1e-12)


def test_words_that_no_pieces_spell_are_left_out() -> None:
    inventory = truth.inventory(BPE, kind="bpe")
    other = WORDS | {"▁é": 100, "": 3, "▁ab": 0}
    assert fit_scores(inventory, other).tolist() == fit_scores(inventory, WORDS).tolist()


def test_it_stops_when_little_changes() -> None:
    inventory = truth.inventory(BPE, kind="bpe")
    found = fit_scores(inventory, WORDS, iterations=500, tolerance=1e-4)
    steps = [fit_scores(inventory, WORDS, iterations=n, tolerance=0.0) for n in range(1, 100)]
    (stop,) = [n for n, scores in enumerate(steps, start=1) if np.array_equal(scores, found)]
    values = [likelihood(inventory, dict(zip(BPE, scores.tolist(), strict=True)), WORDS) for scores in steps]
    changes = [(later - earlier) / abs(later) for earlier, later in itertools.pairwise(values[:stop])]
    assert stop > 2 and min(changes[:-1]) >= 1e-4 > changes[-1]


def test_uniform_scores_make_all_paths_alike() -> None:
    inventory = truth.inventory(BPE, kind="bpe")
    lattice = LatticeBuilder(inventory, uniform_scores(inventory)).build("▁abcab")
    assert log_partition(lattice) == pytest.approx(math.log(count_paths(lattice)), rel=1e-12)
    assert entropy(lattice, 3.0) == pytest.approx(math.log(count_paths(lattice)), rel=1e-12)


def test_what_is_refused() -> None:
    inventory = truth.inventory(BPE, kind="bpe")
    with pytest.raises(InputError, match="none of the words"):
        fit_scores(inventory, {"x": 3})
    with pytest.raises(InputError, match="none of the words"):
        fit_scores(inventory, {})
    with pytest.raises(InputError, match="at least one iteration"):
        fit_scores(inventory, WORDS, iterations=0)
    for tolerance in (-1.0, math.nan):
        with pytest.raises(InputError, match="tolerance"):
            fit_scores(inventory, WORDS, tolerance=tolerance)
    for floor in (0.0, 0.2, math.nan):
        with pytest.raises(InputError, match="above 0 and below 1/10"):
            fit_scores(inventory, WORDS, floor=floor)
