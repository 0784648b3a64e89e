"""Paths that cut all tokens of a word in the same way."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from enumerated_cuts import Cut, cuts, distribution, inventory, score
from lattice_paths import AB_SCORES, Cutter, fit_p

from truesource.evaluation.tokenisation import lattice as sums
from truesource.evaluation.tokenisation.estimators.paths import ConsistentPaths
from truesource.evaluation.tokenisation.lattice import LatticeBuilder, count_paths
from truesource.evaluation.tokenisation.paths import n_best, sample, sample_distinct
from truesource.generator.language_model import PieceInventory
from truesource.grammar.support.errors import InputError

TEXT = "▁aba▁b▁ab▁aba▁ab▁b▁aba"
WORDS = ("▁aba", "▁b", "▁ab")
OF_TEXT = (0, 1, 2, 0, 2, 1, 0)
AB = inventory(AB_SCORES)
ENDS = {(piece[1:] + "▁" if piece.startswith("▁") else piece): score for piece, score in AB_SCORES.items()}


def enumerated(
    words: tuple[str, ...], of_text: tuple[int, ...], scores: dict[str, float], b: float
) -> dict[Cut, float]:
    """Q_cons of every consistent cut: the product over different words."""
    found: dict[Cut, float] = {}
    for chosen in itertools.product(*(distribution(word, scores, b).items() for word in words)):
        whole = tuple(piece for w in of_text for piece in chosen[w][0])
        found[whole] = math.prod(q for _, q in chosen)
    return found


@pytest.fixture(scope="module")
def whole() -> Cutter:
    return Cutter(AB, TEXT)


@pytest.fixture(scope="module")
def consistent(whole: Cutter) -> ConsistentPaths:
    return ConsistentPaths(whole.lattice, AB)


def test_all_of_them_sum_to_one_and_products_over_tokens_do_not(whole: Cutter, consistent: ConsistentPaths) -> None:
    truth = enumerated(WORDS, OF_TEXT, AB_SCORES, 1.0)
    assert consistent.words == WORDS
    assert count_paths(consistent.lattice) == len(truth)
    found = consistent.expanded(n_best(consistent.lattice, 10_000))
    assert dict(zip(whole.cuts(found), np.exp(found.log_q).tolist(), strict=True)) == pytest.approx(truth, abs=1e-12)
    assert math.fsum(np.exp(found.log_q)) == pytest.approx(1.0, abs=1e-12)
    log_z = sums.log_partition(whole.lattice)
    over_tokens = math.fsum(math.exp(score(cut, AB_SCORES) - log_z) for cut in whole.cuts(found))
    assert over_tokens < 0.5
    shares = (
        sum(q ** OF_TEXT.count(w) for q in distribution(word, AB_SCORES).values()) for w, word in enumerate(WORDS)
    )
    assert over_tokens == pytest.approx(math.prod(shares), abs=1e-12)


def test_its_lattice_is_that_of_the_different_words(consistent: ConsistentPaths) -> None:
    built = LatticeBuilder(AB).build("".join(WORDS))
    assert consistent.lattice.spelling == built.spelling
    for name in ("first", "source", "piece", "score"):
        np.testing.assert_array_equal(getattr(consistent.lattice, name), getattr(built, name))


def test_the_best_path_of_the_text_is_consistent(whole: Cutter, consistent: ConsistentPaths) -> None:
    best = sums.best_path(whole.lattice)
    np.testing.assert_array_equal(consistent.expanded(n_best(consistent.lattice, 1)).each()[0], best)
    np.testing.assert_array_equal(consistent.reduced(best), sums.best_path(consistent.lattice))


@pytest.mark.parametrize("b", [0.3, 1.0])
@pytest.mark.parametrize("avoiding", [False, True])
def test_draws_follow_the_distribution(whole: Cutter, consistent: ConsistentPaths, b: float, avoiding: bool) -> None:
    best = sums.best_path(whole.lattice)
    truth = enumerated(WORDS, OF_TEXT, AB_SCORES, b)
    if avoiding:
        rest = 1.0 - truth.pop(whole.cut(best))
        truth = {cut: q / rest for cut, q in truth.items()}
    drawn = consistent.expanded(
        sample(consistent.lattice, 20_000, b=b, seed=2, avoid=consistent.reduced(best) if avoiding else None)
    )
    assert fit_p(whole.counts(drawn), truth) > 1e-3
    expected = [math.log(truth[cut]) for cut in whole.cuts(drawn)[:200]]
    np.testing.assert_allclose(drawn.log_q[:200], expected, atol=1e-10)


@pytest.mark.parametrize("avoiding", [False, True])
def test_weighted_sums_without_replacement_are_unbiased(
    whole: Cutter, consistent: ConsistentPaths, avoiding: bool
) -> None:
    best = sums.best_path(whole.lattice)
    truth = enumerated(WORDS, OF_TEXT, AB_SCORES, 1.0)
    value = {cut: q**1.4 for cut, q in truth.items()}
    exact = math.fsum(v for cut, v in value.items() if not (avoiding and cut == whole.cut(best)))
    avoid = consistent.reduced(best) if avoiding else None
    found = np.empty(2000)
    for seed in range(len(found)):
        d = sample_distinct(consistent.lattice, 4, seed=seed, avoid=avoid)
        drawn = whole.cuts(consistent.expanded(d.paths))
        assert len(set(drawn)) == 4
        found[seed] = sum(value[cut] / q for cut, q in zip(drawn, np.exp(d.log_inclusion).tolist(), strict=True))
    assert abs(found.mean() - exact) < 4.0 * found.std() / math.sqrt(len(found))
    everything = sample_distinct(consistent.lattice, len(truth), seed=1, avoid=avoid)
    assert everything.method == "all"
    assert len(everything.paths) == len(truth) - avoiding


@pytest.mark.parametrize(
    ("inventory_", "text", "words"),
    [
        (inventory(ENDS, marker_ends=True), "aba▁b▁aba▁b", ("aba▁", "b▁", "b")),
        (AB, "aba▁b▁aba▁b", ("aba", "▁b", "▁aba")),
        (AB, "▁▁b▁b▁▁b▁▁", ("▁▁b", "▁b", "▁▁")),
    ],
    ids=["marker ends words", "no marker at the beginning", "runs of markers"],
)
def test_where_words_begin_and_end(inventory_: PieceInventory, text: str, words: tuple[str, ...]) -> None:
    cutter = Cutter(inventory_, text)
    found = ConsistentPaths(cutter.lattice, inventory_)
    assert found.words == words
    paths = found.expanded(n_best(found.lattice, 1000))
    assert len(paths) == math.prod(len(cuts(word, inventory_.pieces)) for word in words)
    assert math.fsum(np.exp(paths.log_q)) == pytest.approx(1.0, abs=1e-12)
    for path in paths.each():
        assert "".join(cutter.cut(path)) == text
        found.reduced(path)


def test_a_piece_across_words_is_refused() -> None:
    joined = inventory({**AB_SCORES, "b▁a": -1.0})
    cutter = Cutter(joined, "▁b▁a")
    with pytest.raises(InputError, match="'b▁a' joins two words"):
        ConsistentPaths(cutter.lattice, joined)


def test_a_path_with_two_cuts_of_a_word_cannot_be_avoided(whole: Cutter, consistent: ConsistentPaths) -> None:
    one, other = (
        LatticeBuilder(AB).path(whole.lattice, np.array([AB.pieces.index(p) for p in pieces]))
        for pieces in (
            ("▁aba", "▁b", "▁ab", "▁aba", "▁ab", "▁b", "▁aba"),
            ("▁aba", "▁b", "▁ab", "▁aba", "▁ab", "▁", "b", "▁aba"),
        )
    )
    consistent.reduced(one)
    with pytest.raises(InputError, match="two ways"):
        consistent.reduced(other)
