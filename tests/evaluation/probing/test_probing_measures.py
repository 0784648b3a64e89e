"""Measures, splits, controls and codes of probes against hand-made cases and known laws."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from truesource.evaluation.measures.bootstrap import resampled_sums
from truesource.evaluation.measures.correlation import spearman
from truesource.evaluation.probing.experiment import (
    PORTIONS,
    blocks,
    control_labels,
    identity_guesses,
    majority_guess,
    one_hot,
    online_code,
    random_labels,
    word_correlations,
)
from truesource.evaluation.probing.measures import (
    confusion,
    entropies,
    group_accuracy,
    matthews,
    matthews_interval,
    per_group,
    probe_measures,
)
from truesource.evaluation.probing.splits import ProbingSplit, split
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.linear_probe import fit_linear

RNG = np.random.default_rng(8)


def test_matthews_correlation_of_two_labels_is_phi() -> None:
    """6 true positives, 2 false negatives, 1 false positive, 3 true negatives: (6*3 - 1*2) / sqrt(7*8*4*5)."""
    truth = np.array([1] * 8 + [0] * 4)
    guess = np.array([1] * 6 + [0] * 2 + [1] + [0] * 3)
    assert matthews(guess, truth, 2) == pytest.approx(16 / math.sqrt(1120), abs=1e-12)


def test_matthews_correlation_of_three_labels_by_hand() -> None:
    """Confusion [[2, 1, 0], [0, 3, 1], [1, 0, 2]]: c = 7, s = 10, t = (3, 4, 3), p = (3, 4, 3): (70 - 34) / 66."""
    table = np.array([[2, 1, 0], [0, 3, 1], [1, 0, 2]])
    truth, guess = (np.concatenate(x) for x in zip(*(
        (np.full(n, i), np.full(n, j)) for (i, j), n in np.ndenumerate(table)
    ), strict=True))  # fmt: skip
    assert matthews(guess, truth, 3) == pytest.approx(36 / 66, abs=1e-12)
    assert np.array_equal(confusion(guess, truth, 3), table)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40))
def test_matthews_correlation_is_that_of_indicator_covariances(pairs: list[tuple[int, int]]) -> None:
    guess, truth = (np.array(x) for x in zip(*pairs, strict=True))
    a, b = one_hot(guess, 4), one_hot(truth, 4)
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    below = math.sqrt((a * a).sum() * (b * b).sum())
    assert matthews(guess, truth, 4) == pytest.approx((a * b).sum() / below if below > 1e-9 else 0.0, abs=1e-9)


def test_a_probe_that_is_the_posterior_has_no_divergence_and_its_entropy() -> None:
    posterior = RNG.dirichlet([0.3, 0.5, 1.0], size=60)
    posterior[:5] = [0.0, 1.0, 0.0]
    with np.errstate(divide="ignore"):
        found = probe_measures(np.log(posterior), posterior, posterior.argmax(axis=1), np.arange(60) // 4, 1)
    assert found["kl"] == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)
    wanted = np.mean([stats.entropy(row) for row in posterior])
    assert found["cross_entropy"].value == pytest.approx(wanted, abs=1e-12)
    assert found["entropy"].value == pytest.approx(wanted, abs=1e-12)
    assert entropies(posterior)[:5] == pytest.approx(0.0)
    assert found["accuracy"].value == found["mcc"].value == 1.0
    assert found["expected_accuracy"].value == pytest.approx(posterior.max(axis=1).mean())


def test_the_mean_over_groups_counts_each_group_once() -> None:
    log_probs = np.log(np.array([[0.9, 0.1]] * 10))
    truth = np.array([0] * 8 + [1] * 2)
    unit = np.array([7] * 8 + [3, 4])
    found = probe_measures(log_probs, one_hot(truth, 2), truth, unit, 1)
    assert found["accuracy"].value == pytest.approx(0.8)
    assert group_accuracy((truth == 0).astype(float), unit, unit, 1).value == pytest.approx(1 / 3)


def test_units_are_resampled_with_their_groups() -> None:
    """Twelve groups of ten units that are right all together or not at all: as uncertain as twelve coins, not 120."""
    unit = np.arange(120)
    group = unit // 10
    right = (group % 2).astype(float)
    alone, whole = (group_accuracy(right, unit, which, 1) for which in (unit, group))
    assert alone.value == whole.value == 0.5
    assert alone.low is not None and alone.high is not None and whole.low is not None and whole.high is not None
    assert whole.high - whole.low > 2 * (alone.high - alone.low)


def test_few_groups_make_no_interval() -> None:
    log_probs = np.log(RNG.dirichlet([1.0, 1.0], size=60))
    truth = RNG.integers(2, size=60)
    values = RNG.normal(size=(3, 60))
    for groups, there in ((1, False), (9, False), (10, True)):
        group = np.arange(60) % groups
        found = [
            *probe_measures(log_probs, one_hot(truth, 2), truth, group, 1).values(),
            *word_correlations(*values, group).values(),
            group_accuracy((truth == 0).astype(float), np.arange(60), group, 1),
        ]
        assert all((one.low is not None and one.high is not None) == there for one in found)
        assert all((one.low is None) == (one.high is None) for one in found)


@pytest.mark.long
def test_counts_of_many_labels_and_items_stay_sparse() -> None:
    """20,000 labels, 30,000 items, 300 groups: a table of items by labels alone has 9 GiB."""
    rng = np.random.default_rng(2)
    truth = rng.integers(20_000, size=30_000)
    guess = np.where(rng.random(30_000) < 0.7, truth, 0)
    tracemalloc.start()
    found = matthews_interval(guess, truth, 20_000, np.arange(30_000) // 100, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400e6
    assert found.low is not None and found.high is not None
    assert 0.65 < found.low < found.value < found.high < 0.75


@pytest.mark.long
def test_intervals_of_matthews_correlation_cover_it() -> None:
    """200 samples of a known law in groups of 3: the 95% intervals hold the true value about as often."""
    law = np.array([[0.3, 0.1], [0.2, 0.4]])
    true, predicted = law.sum(axis=1), law.sum(axis=0)
    value = (np.trace(law) - true @ predicted) / math.sqrt((1 - true @ true) * (1 - predicted @ predicted))
    rng, inside = np.random.default_rng(0), 0
    for seed in range(200):
        cells = rng.choice(4, size=300, p=law.ravel())
        low, high = matthews_interval(cells % 2, cells // 2, 2, np.arange(300) // 3, seed)[1:]
        inside += low <= value <= high
    assert stats.binomtest(inside, 200, 0.95).pvalue > 0.001


def test_intervals_of_matthews_correlation_are_those_of_dense_counts() -> None:
    guess, truth, group = RNG.integers(5, size=(3, 90))
    group += 20 * (np.arange(90) % 4)
    table = np.concatenate([(guess == truth)[:, None], one_hot(guess, 5), one_hot(truth, 5)], axis=1)
    sums = resampled_sums(per_group(table.astype(float), group), seed=3)
    right, predicted, true = sums[:, 0], sums[:, 1:6], sums[:, 6:]
    total = true.sum(axis=1)
    above = right * total - (predicted * true).sum(axis=1)
    below = np.sqrt((total**2 - (predicted**2).sum(axis=1)) * (total**2 - (true**2).sum(axis=1)))
    wanted = np.quantile(above / below, (0.025, 0.975))
    assert matthews_interval(guess, truth, 5, group, 3)[1:] == pytest.approx(tuple(wanted), abs=1e-12)


# -- splits -----------------------------------------------------------------------------------------


def text(n: int, seed: int = 0) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Word types of a Zipf law, the label of each a function of its number, and sentences of ten."""
    rng = np.random.default_rng(seed)
    weight = 1.0 / np.arange(1, 301)
    words = rng.choice(300, size=n, p=weight / weight.sum())
    return [f"w{i}" for i in words], words % 7, np.arange(n) // 10


def test_a_split_by_type_shares_no_type_and_shows_every_label() -> None:
    keys, truth, sentence = text(5000)
    found = split("type", keys, truth, sentence, 1)
    parts = [found.train, found.dev, found.test]
    assert sorted(np.concatenate(parts)) == list(range(5000))
    types = [{keys[i] for i in part} for part in parts]
    assert not (types[0] & types[1] | types[0] & types[2] | types[1] & types[2])
    assert set(truth[found.train]) == set(range(7))
    assert [len(part) / 5000 for part in parts] == pytest.approx([0.8, 0.1, 0.1], abs=0.01)
    counts = {key: keys.count(key) for key in types[1] | types[2]}
    assert max(counts.values()) <= 0.01 * 5000  # no few words decide the result
    assert len(types[2]) > 20
    other = split("type", keys, truth, sentence, 2)
    assert not np.array_equal(found.test, other.test)
    assert np.array_equal(found.test, split("type", keys, truth, sentence, 1).test)
    assert len(set(zip(keys, found.group.tolist(), strict=True))) == len(set(keys))


def test_a_split_by_position_cuts_between_sentences() -> None:
    keys, truth, sentence = text(1000)
    found = split("position", keys, truth, sentence, 1)
    assert np.array_equal(found.train, np.arange(800))
    assert np.array_equal(found.dev, np.arange(800, 900))
    assert np.array_equal(found.test, np.arange(900, 1000))
    small = split("position", ["a", "b", "c", "d"], np.zeros(4, int), np.array([0, 5, 6, 6]), 1)
    assert [part.tolist() for part in (small.train, small.dev, small.test)] == [[0], [1], [2, 3]]


def test_too_little_to_divide_is_refused() -> None:
    with pytest.raises(InputError, match=r"2 sentences are too few to divide into train, dev and test; add more"):
        split("position", ["a"] * 3, np.zeros(3, int), np.array([0, 0, 1]), 1)
    with pytest.raises(InputError, match=r"3 word types are too few to divide .* or split by position"):
        split("type", ["a", "b", "c"] * 9, np.array([0, 1, 1] * 9), np.arange(27), 1)


def span_text(n: int, seed: int = 0) -> tuple[list[str], list[str], np.ndarray, np.ndarray]:
    """Ends of spans of a Zipf law, labels of both, sentences of ten."""
    rng = np.random.default_rng(seed)
    weight = 1.0 / np.arange(1, 601)
    first, last = rng.choice(600, size=(2, n), p=weight / weight.sum())
    begin, end = ([f"w{i}" for i in types] for types in (first, last))
    return begin, end, (first + last) % 5, np.arange(n) // 10


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_split_of_spans_by_type_holds_out_word_types(seed: int) -> None:
    begin, end, truth, sentence = span_text(6000)
    found = split("type", begin, truth, sentence, seed, ends=end)
    ends = list(zip(begin, end, strict=True))
    seen, chosen = ({word for i in part for word in ends[i]} for part in (found.train, found.dev))
    assert all(not seen.issuperset(ends[i]) for i in [*found.dev, *found.test])
    measured = {word for i in found.test for word in ends[i]} - seen
    assert all(measured & {*ends[i]} - chosen for i in found.test)  # an end that neither train nor dev spans have
    assert sorted(np.concatenate([found.train, found.dev, found.test])) == list(range(6000))
    assert set(truth[found.train]) == set(range(5))
    assert [len(p) / 6000 for p in (found.train, found.dev, found.test)] == pytest.approx([0.8, 0.1, 0.1], abs=0.01)
    name: dict[int, str] = {}
    for i in found.test:  # a group is a word type that is new at an end
        assert name.setdefault(int(found.group[i]), ends[i][0] if ends[i][0] not in seen | chosen else ends[i][1])
        assert name[int(found.group[i])] in ends[i]
        assert name[int(found.group[i])] not in seen | chosen
    assert len(name) > 20
    assert np.bincount(found.group[found.test]).max() <= 0.01 * 6000
    parts = [set(found.group[part]) for part in (found.train, found.dev, found.test)]
    assert not (parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2])


# -- controls ---------------------------------------------------------------------------------------


def test_control_labels_belong_to_types_and_follow_the_law_of_the_labels() -> None:
    keys = [f"w{i}" for i in range(4000)] * 2
    truth = np.array(([0] * 5 + [1] * 3 + [2] * 2) * 800)
    drawn = control_labels(keys, truth, 4)
    assert np.array_equal(drawn[:4000], drawn[4000:])
    assert stats.chisquare(np.bincount(drawn[:4000]), [2000, 1200, 800]).pvalue > 0.001
    assert np.array_equal(drawn, control_labels(keys, truth, 4))
    loose = random_labels(truth, 4)
    assert not np.array_equal(loose[:4000], loose[4000:])
    assert stats.chisquare(np.bincount(loose), [4000, 2400, 1600]).pvalue > 0.001


def test_baselines_look_at_words_only() -> None:
    keys, truth = ["a", "a", "b", "a", "c", "b"], np.array([1, 1, 0, 2, 2, 2])
    train, test = np.arange(4), np.array([4, 5, 0])
    assert majority_guess(truth[train]) == 1
    assert identity_guesses(keys, truth, train, test).tolist() == [1, 0, 1]  # c is new: the most frequent of all


# -- codes ------------------------------------------------------------------------------------------


def parts_of(n: int) -> ProbingSplit:
    keys = [str(i) for i in range(n)]
    return split("position", keys, np.zeros(n, int), np.arange(n), 0)


def test_blocks_end_with_groups_and_hold_every_item_once() -> None:
    group = np.repeat(np.arange(90), 4)
    order, ends = blocks(group, np.random.default_rng(0))
    assert sorted(order) == list(range(360))
    assert all(end % 4 == 0 for end in ends)
    assert ends[-1] == 360
    assert len(ends) <= len(PORTIONS)
    for end in ends[:-1]:
        assert not set(group[order[:end]]) & set(group[order[end:]])


@pytest.mark.long
def test_random_labels_take_as_many_bits_as_a_uniform_code() -> None:
    labels = RNG.integers(4, size=2000)
    found = online_code(RNG.normal(size=(2000, 5)), one_hot(labels, 4), parts_of(2000), fit_linear, seed=1)
    assert found.uniform == 2.0
    assert found.bits.value == pytest.approx(2.0, abs=0.03)
    assert found.compression == pytest.approx(1.0, abs=0.02)


@pytest.mark.long
def test_labels_that_the_vectors_tell_take_few_bits() -> None:
    labels = RNG.integers(4, size=2000)
    x = 8 * one_hot(labels, 4) + RNG.normal(size=(2000, 4))
    found = online_code(x, one_hot(labels, 4), parts_of(2000), fit_linear, seed=1)
    assert found.bits.value < 0.25
    assert found.compression > 8.0
    assert found.bits.low <= found.bits.value <= found.bits.high


@pytest.mark.long
def test_soft_labels_cost_at_least_their_entropy() -> None:
    posterior = RNG.dirichlet([1.0, 1.0, 1.0], size=1500)
    found = online_code(np.log(posterior), posterior, parts_of(1500), fit_linear, seed=1)
    floor = entropies(posterior[parts_of(1500).train]).mean() / math.log(2)
    assert floor < found.bits.value < floor + 0.05


# -- correlations -----------------------------------------------------------------------------------


def test_correlations_are_spearmans() -> None:
    label, truth = RNG.normal(size=80), RNG.normal(size=80) - 5
    model = truth + 0.2 * RNG.normal(size=80)
    found = word_correlations(label, truth, model, RNG.integers(20, size=80))
    assert found["rho_truth"].value == pytest.approx(stats.spearmanr(label, truth).statistic, abs=1e-12)
    assert found["rho_model"].value == pytest.approx(spearman(label, model), abs=1e-12)
    assert found["rho_difference"].value == pytest.approx(
        stats.spearmanr(label, np.abs(truth - model)).statistic, abs=1e-12
    )
    assert all(value.low < value.value < value.high for value in found.values())
