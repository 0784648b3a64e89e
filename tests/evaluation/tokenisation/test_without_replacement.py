"""Paths drawn without replacement: both methods have one law, and the estimates are unbiased."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from enumerated_cuts import inventory
from lattice_paths import AB_SCORES, EIGHTY, Cutter, fit_p
from scipy import stats

from truesource.evaluation.tokenisation import lattice as sums
from truesource.evaluation.tokenisation.paths import (
    MOST_REPEATS,
    DistinctPaths,
    Method,
    Proposal,
    choose,
    log_inclusion,
    n_best,
    sample_distinct,
)
from truesource.grammar.support.errors import InputError

AB = inventory(AB_SCORES)
METHODS: tuple[Method, Method] = ("top-down", "race")
REPEATS = 4000


@pytest.fixture(scope="module")
def eighty() -> Cutter:
    return Cutter(AB, EIGHTY)


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


def test_thresholds_and_inclusions_have_the_same_law(runs: Runs) -> None:
    _, _, drawn = runs
    top_down, race = (drawn[method] for method in METHODS)
    assert stats.ks_2samp([d.kappa for d in top_down], [d.kappa for d in race]).pvalue > 1e-3
    for place in range(4):
        pair = ([d.log_inclusion[place] for d in found] for found in (top_down, race))
        assert stats.ks_2samp(*pair).pvalue > 1e-3


def test_thresholds_have_the_law_of_enumerated_gumbels(runs: Runs) -> None:
    cutter, avoid, drawn = runs
    left_out = None if avoid is None else cutter.cut(avoid)
    log_q = np.log([q for cut, q in cutter.truth(0.7).items() if cut != left_out])
    perturbed = log_q + np.random.default_rng(1).gumbel(size=(REPEATS, len(log_q)))
    fifth = np.sort(perturbed, axis=1)[:, -5]
    for method in METHODS:
        assert stats.ks_2samp(fifth, [d.kappa for d in drawn[method]]).pvalue > 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_what_is_drawn_first_and_second_has_the_law_of_draws_without_replacement(runs: Runs, method: Method) -> None:
    cutter, avoid, drawn = runs
    truth = cutter.truth(0.7, None if avoid is None else cutter.cut(avoid))
    pairs = [tuple(cutter.cut(path) for path in d.paths.each()[:2]) for d in drawn[method]]
    assert fit_p(Counter(first for first, _ in pairs), truth) > 1e-3
    second = {cut: math.fsum(p * truth[cut] / (1.0 - p) for o, p in truth.items() if o != cut) for cut in truth}
    assert fit_p(Counter(second for _, second in pairs), second) > 1e-3


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
def test_the_seed_decides(eighty: Cutter, method: Method) -> None:
    one, again, other = (sample_distinct(eighty.lattice, 6, seed=seed, method=method) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one.paths.arcs, again.paths.arcs)
    assert one.kappa == again.kappa != other.kappa


@pytest.mark.parametrize(
    ("k", "given", "message"),
    [
        (0, {}, "at least two"),
        (1, {}, "infinite variance"),
        (2, {"b": -1.0}, "inverse temperature"),
        (2, {"seed": 1.5}, "a seed is"),
        (2, {"avoid": np.array([0])}, "no path"),
    ],
)
def test_bad_requests_are_refused(eighty: Cutter, k: int, given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample_distinct(eighty.lattice, k, **{"seed": 1, **given})  # type: ignore[arg-type]
