"""The most probable paths, against enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from enumerated_cuts import inventory, score
from hypothesis import given, settings
from hypothesis import strategies as st
from lattice_paths import AB_SCORES, EIGHTY, Cutter

from truesource.evaluation.tokenisation import lattice as sums
from truesource.evaluation.tokenisation.paths import n_best
from truesource.generator.language_model import PieceInventory
from truesource.grammar.support.errors import InputError

AB = inventory(AB_SCORES)


@st.composite
def _inventories(draw: st.DrawFn) -> PieceInventory:
    """All single letters and some more pieces over two letters; coarse scores make ties."""
    longer = draw(st.sets(st.text("ab", min_size=2, max_size=4), max_size=8))
    pieces = ["a", "b", *sorted(longer)]
    exact = st.sampled_from([-3.0, -2.0, -1.0, -0.5]) | st.just(0.0)
    rough = st.floats(-20.0, 1.0)
    scores = draw(st.lists(draw(st.sampled_from([exact, rough])), min_size=len(pieces), max_size=len(pieces)))
    return inventory(dict(zip(pieces, scores, strict=True)))


@settings(max_examples=150, deadline=None)
@given(_inventories(), st.text("ab", min_size=1, max_size=9), st.integers(1, 200))
def test_the_best_are_those_of_enumeration(pieces: PieceInventory, text: str, k: int) -> None:
    cutter = Cutter(pieces, text)
    truth = cutter.truth()
    found = n_best(cutter.lattice, k)
    cuts = cutter.cuts(found)
    assert len(cuts) == len(set(cuts)) == min(k, len(truth))
    np.testing.assert_allclose(found.log_q, [math.log(truth[cut]) for cut in cuts], atol=1e-10)
    np.testing.assert_allclose(np.exp(found.log_q), sorted(truth.values(), reverse=True)[:k], atol=1e-12)
    assert (np.diff(found.log_q) <= 0.0).all()
    np.testing.assert_array_equal(found.each()[0], sums.best_path(cutter.lattice))


def test_ties_are_broken_in_the_same_way_however_many_are_asked_for() -> None:
    cutter = Cutter(inventory(dict.fromkeys(AB_SCORES, 0.0)), EIGHTY)
    whole = cutter.cuts(n_best(cutter.lattice, 80))
    assert len(set(whole)) == 80
    assert cutter.cuts(n_best(cutter.lattice, 80)) == whole
    for k in (1, 7, 33):
        few = cutter.cuts(n_best(cutter.lattice, k))
        assert len(set(few)) == k
        assert few[0] == whole[0]


def test_a_hundred_thousand_paths_of_a_small_lattice() -> None:
    cutter = Cutter(AB, "▁ababababababababababab")
    assert sums.count_paths(cutter.lattice) > 100_000
    found = n_best(cutter.lattice, 100_000)
    assert len({path.tobytes() for path in found.each()}) == 100_000
    assert (np.diff(found.log_q) <= 0.0).all()
    totals = np.add.reduceat(cutter.lattice.score[found.arcs], found.bounds[:-1])
    np.testing.assert_allclose(found.log_q, totals - sums.log_partition(cutter.lattice), atol=1e-10)
    # none is left out: a dynamic programme over rounded scores counts the paths above the last one
    margin = totals[-1] + 1e-9
    assert _count_above(cutter, margin) <= 100_000 <= _count_above(cutter, margin - 2e-9)


def _count_above(cutter: Cutter, limit: float) -> int:
    """How many paths have a sum of scores of at least ``limit``, by counting equal sums at each position."""
    lattice = cutter.lattice
    sums_at: list[dict[int, int]] = [{0: 1}] + [{} for _ in range(lattice.n)]
    for i in range(1, lattice.n + 1):
        for arc in range(lattice.first[i], lattice.first[i + 1]):
            step = round(float(lattice.score[arc]) * 10)  # all scores of the toy have one decimal
            for total, number in sums_at[lattice.source[arc]].items():
                sums_at[i][total + step] = sums_at[i].get(total + step, 0) + number
    return sum(number for total, number in sums_at[-1].items() if total / 10 >= limit)


@pytest.mark.parametrize("repeats", [300, 1200])
def test_long_texts_give_as_many_as_asked_for(repeats: int) -> None:
    rng = np.random.default_rng(repeats)
    scores = {piece: float(rng.uniform(-6.0, -2.0)) for piece in AB_SCORES}
    cutter = Cutter(inventory(scores), "▁abab▁ba▁aab▁b" * repeats)
    found = n_best(cutter.lattice, 512)
    paths = found.each()
    assert len({path.tobytes() for path in paths}) == 512
    assert (np.diff(found.log_q) <= 0.0).all()
    log_z = sums.log_partition(cutter.lattice)
    for path, log_q in zip(paths[::37], found.log_q[::37], strict=True):
        cut = cutter.cut(path)
        assert "".join(cut) == cutter.lattice.spelling
        assert log_q == pytest.approx(score(cut, scores) - log_z, abs=1e-6)


def test_a_long_text_of_one_ambiguity_many_times_over() -> None:
    """Each word has two cuts, d nats apart: the sorted sums are those of 0, 1, 2 ... words cut in the worse way."""
    d, words = 0.75, 40
    cutter = Cutter(inventory({"▁": -1.0, "b": -d, "▁b": -1.0}), "▁b" * words)
    found = n_best(cutter.lattice, 1 + words + words * (words - 1) // 2 + 10)
    worse = [0.0] + [d] * words + [2 * d] * (words * (words - 1) // 2) + [3 * d] * 10
    np.testing.assert_allclose(found.log_q[0] - found.log_q, worse, atol=1e-10)


def test_nothing_asked_for_is_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        n_best(Cutter(AB, "▁ab").lattice, 0)
