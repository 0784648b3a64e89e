"""The discrete particle filter."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from guided_estimates import AB, LONG_WORD, THREE_WORDS, RecordingModel, document_of, ratios, repeated, z_score
from hypothesis import given
from hypothesis import strategies as st
from piece_models import BOS, ToyPieceModel
from scipy import stats

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import log_interval
from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS
from truesource.evaluation.tokenisation.estimators.sequential import particle_filter, resampled

NETWORK = ToyPieceModel(AB, order=None, seed=2)  #: never comes to the same context twice
TRIGRAM = ToyPieceModel(AB, order=3, seed=2)
SETTINGS = EstimatorSettings(candidates=6, particles=4, replicates=1)
THREE = "▁abab▁ba▁aba"


# -- resampling -------------------------------------------------------------------------------------


class Fixed(np.random.Generator):
    """Gives one number between 0 and 1 again and again."""

    def __init__(self, value: float) -> None:
        super().__init__(np.random.PCG64(0))
        self._value = value

    def random(self, *args: object, **kwargs: object) -> float:  # type: ignore[override]
        return self._value


@given(
    st.lists(st.floats(-40.0, 5.0) | st.floats(-2000.0, 5.0) | st.sampled_from([0.0, -1.0]), min_size=1, max_size=30),
    st.integers(1, 12),
    st.floats(0.0, 0.999999),
)
def test_at_most_so_many_stay_and_the_heavy_ones_as_they_are(log_w: list[float], most: int, u: float) -> None:
    weights = np.array(log_w)
    stay, new = resampled(weights, most, Fixed(u))
    assert len(stay) == min(most, len(weights))
    assert (np.diff(stay) > 0).all()
    if len(weights) <= most:
        assert (new == weights).all()
        return
    c = new[new > weights[stay] + 1e-12].max(initial=-math.inf)
    if c > -math.inf:
        assert new[new > weights[stay] + 1e-12] == pytest.approx(c)
        shares = np.minimum(np.exp(weights - c), 1.0)
        assert shares.sum() == pytest.approx(most, rel=1e-9)
        gone = np.setdiff1d(np.arange(len(weights)), stay)
        assert (weights[gone] <= c + 1e-9).all()
    assert np.exp(new).sum() == pytest.approx(np.exp(weights).sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("log_w", "most", "c"),
    [
        ([0.0, -800.0, -900.0, -901.0], 3, -900.0 + math.log1p(math.exp(-1.0))),
        ([0.0, -800.0, -800.0, -800.0], 3, -800.0 + math.log(1.5)),
        ([-5000.0, -800.0, 0.0], 1, 0.0),
    ],
)
def test_weights_far_below_the_largest_are_drawn_by_their_own_scale(log_w: list[float], most: int, c: float) -> None:
    weights = np.array(log_w)
    seen = set()
    for u in (0.0, 0.3, 0.6, 0.9999):
        stay, new = resampled(weights, most, Fixed(u))
        seen |= set(stay.tolist())
        assert len(stay) == most
        assert new == pytest.approx(np.maximum(weights[stay], c), abs=1e-9)
    assert seen == {i for i, w in enumerate(log_w) if w > c - 745.0}


@pytest.mark.long
def test_expected_weights_are_the_old_ones() -> None:
    """Averaged over a grid of the one number that is drawn."""
    weights = np.random.default_rng(1).exponential(size=14) ** 3
    total = np.zeros(14)
    n = 4000
    for i in range(n):
        stay, new = resampled(np.log(weights), 5, Fixed((i + 0.5) / n))
        total[stay] += np.exp(new)
    assert total / n == pytest.approx(weights, abs=weights.sum() / n)


# -- estimates --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [NETWORK, TRIGRAM], ids=["network", "trigram"])
@pytest.mark.parametrize(("text", "spelling"), [(LONG_WORD, "▁abababa"), (THREE_WORDS, THREE)])
def test_it_is_exact_where_nothing_is_left_out(model: ToyPieceModel, text: str, spelling: str) -> None:
    found = particle_filter(
        model, document_of(model, text), EstimatorSettings(candidates=80, particles=320, replicates=1)
    )
    assert found.log_p == pytest.approx(model.brute_log_p(spelling), abs=1e-12)
    assert found.log_lower == pytest.approx(found.log_p, abs=1e-12)
    assert (found.bound, found.relative_variance) == ("exact", 0.0)


@pytest.mark.long
@pytest.mark.parametrize("model", [NETWORK, TRIGRAM], ids=["network", "trigram"])
@pytest.mark.parametrize("text", [LONG_WORD, THREE_WORDS])
def test_the_sum_of_weights_is_unbiased(model: ToyPieceModel, text: str) -> None:
    log_p = model.brute_log_p("".join("▁" + word for word in text.split()))
    found = repeated(particle_filter, model, text, SETTINGS, 200)
    values = ratios(found, log_p)
    assert values.std() > 1e-3
    assert abs(z_score(values)) < 4.0
    assert all(x.log_lower <= log_p + 1e-12 for x in found)
    assert {(x.bound, x.relative_variance) for x in found} == {("unbiased", None)}


@pytest.mark.long
def test_without_tails_it_is_unbiased_for_the_sum_over_listed_cuts() -> None:
    """That sum is found by the filter itself with room for all of them, a lower bound."""
    settings = replace(SETTINGS, candidates=4, particles=3, tail=False)
    part = particle_filter(NETWORK, document_of(NETWORK, THREE_WORDS), replace(settings, particles=10**4))
    assert part.bound == "lower"
    assert part.log_p == part.log_lower < NETWORK.brute_log_p(THREE) - 0.01
    found = repeated(particle_filter, NETWORK, THREE_WORDS, settings, 150)
    assert abs(z_score(ratios(found, part.log_p))) < 4.0
    assert {x.bound for x in found} == {"part"}
    with_tails = repeated(particle_filter, NETWORK, THREE_WORDS, replace(settings, tail=True), 150)
    assert abs(z_score(ratios(with_tails, NETWORK.brute_log_p(THREE)))) < 4.0


@pytest.mark.long
def test_replicates_give_an_unbiased_variance() -> None:
    log_p = TRIGRAM.brute_log_p(THREE)
    found = repeated(particle_filter, TRIGRAM, THREE_WORDS, replace(SETTINGS, particles=3, replicates=3), 150)
    values = ratios(found, log_p)
    assert abs(z_score(values)) < 4.0
    variances = [
        x.relative_variance * y**2 for x, y in zip(found, values, strict=True) if x.relative_variance is not None
    ]
    assert len(variances) == len(found)
    assert np.mean(variances) == pytest.approx(values.var(ddof=1), rel=0.4)
    assert all(x.log_lower <= log_p + 1e-12 for x in found)


def test_a_spread_over_filters_has_one_degree_of_freedom_less() -> None:
    document = document_of(TRIGRAM, THREE_WORDS)
    for filters in (2, 4):
        found = particle_filter(TRIGRAM, document, replace(SETTINGS, candidates=15, particles=3, replicates=filters))
        assert found.degrees == filters - 1
        assert found.interval is not None and found.relative_variance is not None
        half = stats.t.ppf(0.975, filters - 1) * math.sqrt(found.relative_variance)
        middle = found.log_p + found.relative_variance / 2.0
        assert found.interval == pytest.approx((middle - half, middle + half), rel=1e-12)
    assert particle_filter(TRIGRAM, document, replace(SETTINGS, particles=3)).interval is None


@pytest.mark.parametrize(("order", "seed", "spread"), [(3, 5, 1.0), (3, 2, 1.5), (4, 7, 2.0)])
def test_a_tail_that_filters_miss_is_in_the_error_bar_or_there_is_none(order: int, seed: int, spread: float) -> None:
    """A word of 80 segmentations of which one unlisted may weigh much; the spread of filters holds in 8% to 80%."""
    model = ToyPieceModel(AB, order=order, seed=seed, spread=spread)
    document = document_of(model, LONG_WORD)
    truth = ESTIMATORS["exact"].run(model, document, EstimatorSettings()).log_p
    wide = EstimatorSettings(candidates=40, particles=16, replicates=4)
    found = [particle_filter(model, document, replace(wide, seed=i)) for i in range(30)]
    ends = [one.interval for one in found if one.interval is not None]
    assert len(ends) == len(found)
    assert np.mean([low <= truth <= high for low, high in ends]) >= 0.9
    alone = [log_interval(one.log_p, one.relative_variance or 0.0, 3) for one in found]
    assert np.mean([low <= truth <= high for low, high in alone]) <= 0.8
    few = particle_filter(model, document, replace(wide, candidates=20))
    assert few.bound == "unbiased"
    assert (few.interval, few.standard_error) == (None, None)
    whole = particle_filter(model, document, replace(wide, candidates=80, particles=2))
    assert whole.unlisted == 0.0
    assert whole.interval is not None


@pytest.mark.parametrize(("filters", "texts"), [(2, 1), (4, 1), (4, 20), (8, 20)])
def test_intervals_of_few_independent_estimates_hold(filters: int, texts: int) -> None:
    """Relative standard deviations up to .3; 1.96 standard errors of one text hold in less than 90%."""
    rng = np.random.default_rng(filters * texts)
    shape = 1.0 / rng.uniform(0.02, 0.3, texts)[:, None] ** 2
    weights = rng.gamma(shape, 1.0 / shape, (1500, texts, filters))
    mean = weights.mean(axis=2)
    variance = weights.var(axis=2, ddof=1) / filters / mean**2
    total, whole = np.log(mean).sum(axis=1), variance.sum(axis=1)
    degrees = whole**2 / (variance**2 / (filters - 1)).sum(axis=1)
    ends = np.array([log_interval(*row) for row in zip(total, whole, degrees, strict=True)])
    assert 0.93 <= np.mean((ends[:, 0] <= 0.0) & (ends[:, 1] >= 0.0)) <= 0.985
    if texts == 1:
        assert np.mean(np.abs(total) <= 1.96 * np.sqrt(whole)) < 0.9


def test_effective_samples_are_of_the_filters_and_not_of_their_particles() -> None:
    document = document_of(TRIGRAM, THREE_WORDS)
    for seed in range(5):
        two = particle_filter(TRIGRAM, document, replace(SETTINGS, particles=3, replicates=2, seed=seed))
        assert two.ess is not None
        assert two.max_share is not None
        assert two.relative_variance is not None
        assert 1.0 <= two.ess <= 2.0 + 1e-12
        assert 0.5 <= two.max_share <= 1.0
        high, low = two.max_share, 1.0 - two.max_share  # of the two totals
        assert two.ess == pytest.approx(1.0 / (high**2 + low**2), rel=1e-9)
        assert two.relative_variance == pytest.approx((high - low) ** 2, rel=1e-6)
    one = particle_filter(TRIGRAM, document, replace(SETTINGS, particles=3))
    assert (one.ess, one.max_share, one.relative_variance) == (None, None, None)
    beam = ESTIMATORS["beam"].run(TRIGRAM, document, SETTINGS)
    assert (beam.ess, beam.max_share) == (None, None)


def test_replicates_share_what_they_read() -> None:
    model = RecordingModel(AB, order=None, seed=2)
    document = document_of(model, THREE_WORDS)
    one = particle_filter(model, document, replace(SETTINGS, tail=False))
    two = particle_filter(model, document, replace(SETTINGS, tail=False, replicates=2))
    assert one.steps < two.steps < 2 * one.steps
    assert len(set(model.last.texts)) == len(model.last.texts) == two.steps - 1


@pytest.mark.long
def test_equal_contexts_become_one_particle() -> None:
    bigram = ToyPieceModel(AB, order=2, seed=2)
    wide = EstimatorSettings(candidates=15, particles=80, replicates=1)
    found, other = (particle_filter(model, document_of(model, "abab " * 3), wide) for model in (bigram, NETWORK))
    assert 10 * found.steps < other.steps
    expected = ESTIMATORS["exact"].run(bigram, document_of(bigram, "abab " * 3), EstimatorSettings())
    assert (found.bound, other.bound) == ("exact", "unbiased")
    assert found.log_p == pytest.approx(expected.log_p, abs=1e-12)


@pytest.mark.long
def test_it_beats_n_best_at_equal_steps() -> None:
    """Five words, 15 * 4 * 8 * 15 * 4 cuts: mean squared error of the logarithm."""
    text = "abab ba aba abab ba"
    model = ToyPieceModel(AB, order=4, seed=5, spread=1.0)
    document = document_of(model, text)
    truth = ESTIMATORS["exact"].run(model, document, EstimatorSettings()).log_p
    found = repeated(particle_filter, model, text, EstimatorSettings(candidates=8, particles=8, replicates=1), 20)
    steps = np.mean([x.steps for x in found])
    k = next(
        k
        for k in range(4, 400, 2)
        if ESTIMATORS["nbest"].run(model, document, EstimatorSettings(samples=k)).steps > steps
    )
    n_best = ESTIMATORS["nbest"].run(model, document, EstimatorSettings(samples=k))
    assert np.mean([(x.log_p - truth) ** 2 for x in found]) < 0.25 * (n_best.log_p - truth) ** 2


def test_the_same_seed_gives_the_same_bytes() -> None:
    document = document_of(NETWORK, THREE_WORDS)
    one, two = (particle_filter(NETWORK, document, SETTINGS) for _ in range(2))
    assert one == two
    assert one != particle_filter(NETWORK, document, replace(SETTINGS, seed=2))


def test_particles_that_the_model_forbids_go() -> None:
    pieces = {AB.pieces[i]: int(AB.ids[i]) for i in range(len(AB.pieces))}
    nothing = ToyPieceModel(AB, order=2, forbidden={BOS: list(pieces.values())})
    for replicates in (1, 2):
        found = particle_filter(nothing, document_of(nothing, "abab ba"), replace(SETTINGS, replicates=replicates))
        assert (found.log_p, found.log_lower) == (-math.inf, -math.inf)
    some = ToyPieceModel(AB, order=2, forbidden={BOS: [pieces["▁"], pieces["▁a"]]})
    found = particle_filter(
        some, document_of(some, "abab ba"), EstimatorSettings(candidates=80, particles=80, replicates=1)
    )
    assert found.log_p == pytest.approx(some.brute_log_p("▁abab▁ba"), abs=1e-12)
