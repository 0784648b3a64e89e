"""Paths drawn with replacement, against their exact distribution."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from enumerated_cuts import inventory, score
from hypothesis import given, settings
from hypothesis import strategies as st
from lattice_paths import AB_SCORES, EIGHTY, Cutter, fit_p
from scipy import stats

from truesource.evaluation.tokenisation import lattice as sums
from truesource.evaluation.tokenisation._kernels import paths as kernels
from truesource.evaluation.tokenisation.paths import (
    MOST_REPEATS,
    DistinctPaths,
    Method,
    Proposal,
    choose,
    kernel_seed,
    log_inclusion,
    n_best,
    sample,
    sample_distinct,
)
from truesource.generator.piece_model import PieceInventory
from truesource.grammar.support.errors import InputError

AB = inventory(AB_SCORES)


@pytest.fixture(scope="module")
def eighty() -> Cutter:
    return Cutter(AB, EIGHTY)


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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
        ({"k": 0}, "at least 1"),
        ({"b": -0.1}, "inverse temperature"),
        ({"b": math.nan}, "inverse temperature"),
        ({"seed": -1}, "a seed is"),
        ({"avoid": np.array([0])}, "not a path"),
        ({"avoid": np.array([], dtype=np.int64)}, "not a path"),
        ({"avoid": np.array([10**6])}, "not a path"),
    ],
)
def test_bad_requests_are_refused(eighty: Cutter, given: dict[str, object], message: str) -> None:
    request = {"k": 1, "seed": 1, **given}
    with pytest.raises(InputError, match=message):
        sample(eighty.lattice, request.pop("k"), **request)  # type: ignore[arg-type]


# -- the most probable paths, against enumeration --


@st.composite
def _inventories(draw: st.DrawFn) -> PieceInventory:
    """All single letters and some more pieces over two letters; coarse scores make ties."""
    longer = draw(st.sets(st.text("ab", min_size=2, max_size=4), max_size=8))
    pieces = ["a", "b", *sorted(longer)]
    exact = st.sampled_from([-3.0, -2.0, -1.0, -0.5]) | st.just(0.0)
    rough = st.floats(-20.0, 1.0)
    scores = draw(st.lists(draw(st.sampled_from([exact, rough])), min_size=len(pieces), max_size=len(pieces)))
    return inventory(dict(zip(pieces, scores, strict=True)))


@pytest.mark.long
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
    with pytest.raises(InputError, match="at least 1"):
        n_best(Cutter(AB, "▁ab").lattice, 0)


# -- paths drawn without replacement: both methods have one law, and the estimates are unbiased --

METHODS: tuple[Method, Method] = ("top-down", "race")
REPEATS = 4000


@pytest.fixture(scope="module", params=[None, 0, 3], ids=["all", "but-the-best", "but-the-fourth"])
def runs(request: pytest.FixtureRequest, eighty: Cutter) -> tuple[Cutter, np.ndarray | None, dict[str, list]]:
    """Many draws of four paths by each method, perhaps with one path avoided."""
    avoid = None if request.param is None else n_best(eighty.lattice, 4).each()[request.param]
    drawn = {
        method: [
            sample_distinct(eighty.lattice, 4, b=0.7, seed=seed, avoid=avoid, method=method) for seed in range(REPEATS)
        ]
        for method in METHODS
    }
    return eighty, avoid, drawn


Runs = tuple[Cutter, np.ndarray | None, dict[str, list[DistinctPaths]]]


@pytest.mark.long
def test_thresholds_and_inclusions_have_the_same_law(runs: Runs) -> None:
    _, _, drawn = runs
    top_down, race = (drawn[method] for method in METHODS)
    assert stats.ks_2samp([d.kappa for d in top_down], [d.kappa for d in race]).pvalue > 1e-3
    for place in range(4):
        pair = ([d.log_inclusion[place] for d in found] for found in (top_down, race))
        assert stats.ks_2samp(*pair).pvalue > 1e-3


@pytest.mark.long
def test_thresholds_have_the_law_of_enumerated_gumbels(runs: Runs) -> None:
    cutter, avoid, drawn = runs
    left_out = None if avoid is None else cutter.cut(avoid)
    log_q = np.log([q for cut, q in cutter.truth(0.7).items() if cut != left_out])
    perturbed = log_q + np.random.default_rng(1).gumbel(size=(REPEATS, len(log_q)))
    fifth = np.sort(perturbed, axis=1)[:, -5]
    for method in METHODS:
        assert stats.ks_2samp(fifth, [d.kappa for d in drawn[method]]).pvalue > 1e-3


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_what_is_drawn_first_and_second_has_the_law_of_draws_without_replacement(runs: Runs, method: Method) -> None:
    cutter, avoid, drawn = runs
    truth = cutter.truth(0.7, None if avoid is None else cutter.cut(avoid))
    pairs = [tuple(cutter.cut(path) for path in d.paths.each()[:2]) for d in drawn[method]]
    assert fit_p(Counter(first for first, _ in pairs), truth) > 1e-3
    second = {cut: math.fsum(p * truth[cut] / (1.0 - p) for o, p in truth.items() if o != cut) for cut in truth}
    assert fit_p(Counter(second for _, second in pairs), second) > 1e-3


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_weighted_sums_are_unbiased_and_so_is_their_variance(runs: Runs, method: Method) -> None:
    cutter, avoid, drawn = runs
    # in no relation to Q, but never far from it, so that no rare draw weighs much
    value = {cut: q * (1 + i % 5) for i, (cut, q) in enumerate(sorted(cutter.truth(0.7).items()))}
    exact = math.fsum(f for cut, f in value.items() if avoid is None or cut != cutter.cut(avoid))
    values, variances = np.empty(REPEATS), np.empty(REPEATS)
    for i, d in enumerate(drawn[method]):
        q = np.exp(d.log_inclusion)
        f = np.array([value[cut] for cut in cutter.cuts(d.paths)])
        values[i] = (f / q).sum()
        variances[i] = (f**2 * (1.0 - q) / q**2).sum()
    assert abs(values.mean() - exact) < 4.0 * values.std() / math.sqrt(REPEATS)
    spread = (values - exact) ** 2 - variances
    assert abs(spread.mean()) < 4.0 * spread.std() / math.sqrt(REPEATS)


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_what_is_drawn_is_told_with_its_probabilities(runs: Runs, method: Method) -> None:
    cutter, avoid, drawn = runs
    whole = cutter.truth(0.7)
    for d in drawn[method][:50]:
        cuts = cutter.cuts(d.paths)
        assert len(set(cuts)) == 4
        assert avoid is None or cutter.cut(avoid) not in cuts
        np.testing.assert_allclose(d.paths.log_q, [math.log(whole[cut]) for cut in cuts], atol=1e-10)
        above = [math.log(-math.expm1(-math.exp(log_q - d.kappa))) for log_q in d.paths.log_q.tolist()]
        np.testing.assert_allclose(d.log_inclusion, above, atol=1e-10)
        assert d.method == method


def test_log_inclusion_far_above_and_far_below_the_threshold() -> None:
    x = np.array([-800.0, -40.0, -10.0001, -9.9999, 0.0, 3.0, 6.0, 800.0])
    found = log_inclusion(x, 0.0)
    assert found[0] == -800.0
    assert found[1] == pytest.approx(-40.0, abs=1e-15)
    assert found[-1] == 0.0
    exact = [math.log(-math.expm1(-math.exp(v))) for v in x[2:6].tolist()]
    np.testing.assert_allclose(found[2:6], exact, rtol=1e-14)


@pytest.mark.parametrize(("k", "avoid_best"), [(80, False), (500, False), (79, True), (80, True)])
def test_all_paths_where_no_more_are_there(eighty: Cutter, k: int, avoid_best: bool) -> None:
    best = n_best(eighty.lattice, 1).each()[0]
    found = sample_distinct(eighty.lattice, k, b=0.7, seed=1, avoid=best if avoid_best else None)
    truth = eighty.truth(0.7)
    assert found.method == "all"
    assert found.kappa == -math.inf
    assert found.log_inclusion.tolist() == [0.0] * (80 - avoid_best)
    cuts = eighty.cuts(found.paths)
    assert set(cuts) == set(truth) - ({eighty.cut(best)} if avoid_best else set())
    assert len(cuts) == len(set(cuts))
    np.testing.assert_allclose(np.exp(found.paths.log_q), [truth[cut] for cut in cuts], atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [78, 79])
def test_nearly_all_paths(eighty: Cutter, method: Method, k: int) -> None:
    found = sample_distinct(eighty.lattice, k, b=0.1, seed=3, method=method)
    cuts = eighty.cuts(found.paths)
    assert len(set(cuts)) == k
    assert set(cuts) < set(eighty.truth())
    assert found.kappa > -math.inf


def test_one_path_only() -> None:
    single = Cutter(inventory({"▁b": -1.0}), "▁b")
    found = sample_distinct(single.lattice, 1, seed=1)
    assert (found.method, single.cuts(found.paths)) == ("all", [("▁b",)])
    nothing = sample_distinct(single.lattice, 5, seed=1, avoid=found.paths.each()[0])
    assert (nothing.method, len(nothing.paths), len(nothing.log_inclusion)) == ("all", 0, 0)


@pytest.mark.parametrize("b", [0.0, 0.5, 1.0, 60.0])
def test_long_and_peaked_texts(b: float) -> None:
    rng = np.random.default_rng(2)
    scores = {piece: float(rng.uniform(-6.0, -2.0)) for piece in AB_SCORES}
    cutter = Cutter(inventory(scores), "▁abab▁ba▁aab▁b" * 300)
    lattice = cutter.lattice
    best = sums.best_path(lattice)
    for avoid in (None, best):
        found = sample_distinct(lattice, 40, b=b, seed=8, avoid=avoid)
        paths = found.paths.each()
        assert len({path.tobytes() for path in paths}) == 40
        assert np.isfinite(found.log_inclusion).all()
        assert math.isfinite(found.kappa)
        for path, log_q in zip(paths, found.paths.log_q, strict=True):
            assert "".join(cutter.cut(path)) == lattice.spelling
            expected = b * math.fsum(lattice.score[path].tolist()) - sums.log_partition(lattice, b)
            assert log_q == pytest.approx(expected, abs=1e-6)
            assert avoid is None or not np.array_equal(path, avoid)
        if b == 60.0:  # hardly any noise is left: they come nearly in the order of their probabilities
            assert found.method == "top-down"
        if b == 0.0:
            assert found.method == "race"


def test_the_rule_bounds_repeats_from_the_exact_collision_mass(eighty: Cutter) -> None:
    for avoid in (None, n_best(eighty.lattice, 1).each()[0]):
        left_out = None if avoid is None else eighty.cut(avoid)
        for b in (0.0, 0.5, 1.0, 2.0):
            truth = sorted(eighty.truth(b, left_out).values(), reverse=True)
            collision = math.fsum(q * q for q in truth)
            for k in (2, 4, 10, 60):
                chosen = choose(Proposal(eighty.lattice, b, avoid), k)
                assert chosen == ("race" if k * collision <= MOST_REPEATS**2 else "top-down")
                if chosen == "race":
                    assert math.fsum(truth[:k]) <= MOST_REPEATS
    assert choose(Proposal(eighty.lattice, 0.0), 2) == "race"
    assert choose(Proposal(eighty.lattice, 2.0), 2) == "top-down"


def test_the_rule_is_safe_where_the_avoided_path_holds_all(eighty: Cutter) -> None:
    best = n_best(eighty.lattice, 1).each()[0]
    assert choose(Proposal(eighty.lattice, 300.0, best), 4) == "top-down"
    found = sample_distinct(eighty.lattice, 4, b=300.0, seed=1, avoid=best)
    assert np.isfinite(found.log_inclusion).all()
    assert len(found.paths) == 4


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides_which_different_paths(eighty: Cutter, method: Method) -> None:
    one, again, other = (sample_distinct(eighty.lattice, 6, seed=seed, method=method) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one.paths.arcs, again.paths.arcs)
    assert one.kappa == again.kappa != other.kappa


@pytest.mark.parametrize(
    ("k", "given", "message"),
    [
        (0, {}, "at least 2"),
        (1, {}, "infinite variance"),
        (2, {"b": -1.0}, "inverse temperature"),
        (2, {"seed": 1.5}, "a seed is"),
        (2, {"avoid": np.array([0])}, "not a path"),
    ],
)
def test_bad_requests_of_different_paths(eighty: Cutter, k: int, given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample_distinct(eighty.lattice, k, **{"seed": 1, **given})  # type: ignore[arg-type]
