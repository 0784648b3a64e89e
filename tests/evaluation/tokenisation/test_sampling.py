"""Paths drawn with replacement, against their exact distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from enumerated_cuts import inventory
from lattice_paths import AB_SCORES, EIGHTY, Cutter, fit_p

from truesource.evaluation.tokenisation import lattice as sums
from truesource.evaluation.tokenisation._kernels import paths as kernels
from truesource.evaluation.tokenisation.paths import Proposal, kernel_seed, n_best, sample
from truesource.grammar.support.errors import InputError

AB = inventory(AB_SCORES)


@pytest.fixture(scope="module")
def eighty() -> Cutter:
    return Cutter(AB, EIGHTY)


@pytest.mark.parametrize("b", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("rank", [None, 0, 6, 79])
def test_draws_follow_the_distribution_with_and_without_one_path(eighty: Cutter, b: float, rank: int | None) -> None:
    ranked = n_best(eighty.lattice, 80)
    avoid = None if rank is None else ranked.each()[rank]
    truth = eighty.truth(b, None if avoid is None else eighty.cut(avoid))
    assert len(truth) == (80 if rank is None else 79)
    drawn = sample(eighty.lattice, 20_000, b=b, seed=5, avoid=avoid)
    assert fit_p(eighty.counts(drawn), truth) > 1e-3
    expected = [math.log(truth[cut]) for cut in eighty.cuts(drawn)[:500]]
    np.testing.assert_allclose(drawn.log_q[:500], expected, atol=1e-10)


def test_the_wrong_temperature_would_be_noticed(eighty: Cutter) -> None:
    drawn = sample(eighty.lattice, 20_000, b=1.0, seed=5)
    assert fit_p(eighty.counts(drawn), eighty.truth(1.1)) < 1e-6


def test_the_estimate_with_the_best_path_apart_is_unbiased(eighty: Cutter) -> None:
    truth = eighty.truth(1.0)
    best = n_best(eighty.lattice, 1).each()[0]
    drawn = sample(eighty.lattice, 40_000, b=0.5, seed=9, avoid=best)
    values = np.array([truth[cut] ** 1.5 for cut in eighty.cuts(drawn)]) / np.exp(drawn.log_q)
    exact = math.fsum(q**1.5 for cut, q in truth.items() if cut != eighty.cut(best))
    assert abs(values.mean() - exact) < 4.0 * values.std() / math.sqrt(len(values))


def test_one_path_can_hold_nearly_all_probability() -> None:
    """Where 1 - Q(T*) is 1e-40, it is still known to ten digits, and the other paths are drawn."""
    cutter = Cutter(AB, EIGHTY)
    b = 400.0
    best, second = n_best(cutter.lattice, 2).each()
    gap = b * (cutter.lattice.score[best].sum() - cutter.lattice.score[second].sum())
    assert gap > 35.0
    drawn = sample(cutter.lattice, 50, b=b, seed=1, avoid=best)
    logs = np.array([b * cutter.lattice.score[path].sum() for path in n_best(cutter.lattice, 80).each()[1:]])
    rest = float(np.logaddexp.reduce(logs))
    expected = [b * cutter.lattice.score[path].sum() - rest for path in drawn.each()]
    np.testing.assert_allclose(drawn.log_q, expected, atol=1e-9)
    assert not any(np.array_equal(path, best) for path in drawn.each())
    assert Proposal(cutter.lattice, b, best).log_rest == pytest.approx(
        rest - sums.log_partition(cutter.lattice, b), abs=1e-9
    )


@pytest.mark.parametrize("b", [0.0, 1.0, 3.0])
def test_every_draw_of_a_long_text_is_a_path_with_its_probability(b: float) -> None:
    cutter = Cutter(AB, "▁abab▁ba▁aab▁b" * 1000)
    lattice = cutter.lattice
    best = sums.best_path(lattice)
    for avoid in (None, best):
        drawn = sample(lattice, 5, b=b, seed=3, avoid=avoid)
        for path, log_q in zip(drawn.each(), drawn.log_q, strict=True):
            assert "".join(cutter.cut(path)) == lattice.spelling
            expected = b * math.fsum(lattice.score[path].tolist()) - sums.log_partition(lattice, b)
            assert log_q == pytest.approx(expected, abs=1e-7)


def test_the_seed_decides(eighty: Cutter) -> None:
    one, again, other = (sample(eighty.lattice, 200, seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one.arcs, again.arcs)
    assert not np.array_equal(one.arcs, other.arcs)
    few = sample(eighty.lattice, 20, seed=4)  # the first draws do not depend on how many follow
    np.testing.assert_array_equal(few.arcs, one.arcs[: len(few.arcs)])


@pytest.mark.parametrize("b", [0.0, 0.5, 1.0, 3.0])
def test_draws_in_one_call_are_those_from_sums_made_before(eighty: Cutter, b: float) -> None:
    proposal = Proposal(eighty.lattice, b)
    lattice, guard = proposal.lattice, proposal.guard
    sums_made = (proposal.score, proposal.running, guard.guarded, guard.avoided)
    for seed in range(20):
        found = sample(lattice, 7, b=b, seed=seed)
        arcs, bounds, totals = kernels.draw(lattice.first, lattice.source, *sums_made, 7, kernel_seed(seed), 1)
        np.testing.assert_array_equal(found.arcs, arcs)
        np.testing.assert_array_equal(found.bounds, bounds)
        np.testing.assert_array_equal(found.log_q, totals - proposal.log_z)


def test_seeds_next_to_each_other_give_independent_draws(eighty: Cutter) -> None:
    counts = sum(
        (eighty.counts(sample(eighty.lattice, 1, seed=seed)) for seed in range(5000)),
        eighty.counts(sample(eighty.lattice, 1, seed=5000)),
    )
    assert fit_p(counts, eighty.truth()) > 1e-3


def test_a_text_with_one_path() -> None:
    cutter = Cutter(AB, "▁b")
    single = Cutter(inventory({"▁b": -1.0}), "▁b")
    drawn = sample(single.lattice, 3, seed=1)
    assert single.cuts(drawn) == [("▁b",)] * 3
    assert drawn.log_q.tolist() == [0.0, 0.0, 0.0]
    assert len(sample(single.lattice, 3, seed=1, avoid=drawn.each()[0])) == 0
    other = sample(cutter.lattice, 10, seed=1, avoid=n_best(cutter.lattice, 1).each()[0])
    assert len(set(cutter.cuts(other))) == 1  # of two paths, the other, with certainty
    np.testing.assert_allclose(other.log_q, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 0}, "at least one"),
        ({"b": -0.1}, "inverse temperature"),
        ({"b": math.nan}, "inverse temperature"),
        ({"seed": -1}, "a seed is"),
        ({"avoid": np.array([0])}, "no path"),
        ({"avoid": np.array([], dtype=np.int64)}, "no path"),
        ({"avoid": np.array([10**6])}, "no path"),
    ],
)
def test_bad_requests_are_refused(eighty: Cutter, given: dict[str, object], message: str) -> None:
    request = {"k": 1, "seed": 1, **given}
    with pytest.raises(InputError, match=message):
        sample(eighty.lattice, request.pop("k"), **request)  # type: ignore[arg-type]
