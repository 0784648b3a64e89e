"""Linear probes: what they learn, and that they repeat."""

from __future__ import annotations

import numpy as np
import pytest

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.linear_probe import WEIGHT_DECAYS, LinearProbe, fit_linear

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(3)


def softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def test_a_probe_recovers_a_posterior_that_is_linear_in_the_vectors() -> None:
    x = RNG.normal(size=(600, 6)) * [1, 5, 0.1, 1, 1, 1] + 3.0
    target = softmax(x @ RNG.normal(size=(6, 4)) + [0.5, -1, 0, 2])
    probe = fit_linear(x[:400], target[:400], x[400:500], target[400:500])
    found, wanted = probe.log_probs(x[500:]), target[500:]
    kl = float((wanted * (np.log(wanted) - found)).sum(axis=1).mean())
    assert np.exp(found).sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert 0.0 <= kl < 2e-3
    assert probe.weight_decay == min(WEIGHT_DECAYS)


def test_the_objective_has_its_minimum_where_the_probe_says() -> None:
    """Gradient of cross-entropy + decay / 2 |W|^2 in plain numpy, with the train part as dev part: zero."""
    x = RNG.normal(size=(200, 3))
    target = np.eye(3)[RNG.integers(3, size=200)]
    decay = 0.1
    probe = fit_linear(x, target, x, target, weight_decays=(decay,))
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    gap = np.exp(probe.log_probs(x)) - target
    assert gap.mean(axis=0) == pytest.approx(0.0, abs=1e-5)
    # the weights that are best on the dev part are not quite at the minimum, which the decay moves away from it
    gradient = gap.T @ standard / 200
    assert np.abs(gradient + decay * probe.weight).max() < 0.02


@pytest.mark.long
def test_weight_decay_is_chosen_on_the_dev_part() -> None:
    """Random labels: the less a probe learns of them, the better."""
    x, dev = RNG.normal(size=(120, 40)), RNG.normal(size=(400, 40))
    target, dev_target = (np.eye(2)[RNG.integers(2, size=n)] for n in (120, 400))
    probe = fit_linear(x, target, dev, dev_target)
    weak = fit_linear(x, target, dev, dev_target, weight_decays=(1e-6,))
    assert probe.weight_decay == max(WEIGHT_DECAYS)
    assert probe.dev_loss <= weak.dev_loss
    assert weak.dev_loss < np.log(2) + 0.02  # early stopping


@pytest.mark.long
def test_a_feature_that_never_varies_changes_nothing_and_probes_repeat() -> None:
    x = RNG.normal(size=(100, 4)).astype(np.float32)
    target = softmax(RNG.normal(size=(100, 3)))
    constant = np.concatenate([x, np.full((100, 1), 7.5, np.float32)], axis=1)
    one, again = (fit_linear(x[:80], target[:80], x[80:], target[80:]) for _ in range(2))
    other = fit_linear(constant[:80], target[:80], constant[80:], target[80:])
    assert np.array_equal(one.weight, again.weight)
    assert np.array_equal(one.log_probs(x), again.log_probs(x))
    assert other.log_probs(constant) == pytest.approx(one.log_probs(x), abs=1e-6)


def test_a_probe_that_finds_nothing_guesses_the_frequencies() -> None:
    """What holds in the train part does not in the dev part, so no look at the vectors helps."""
    x = RNG.normal(size=(100, 2))
    target = np.eye(2)[(x[:, 0] > 1).astype(int)]
    probe = fit_linear(x, target, -3 * x, target)
    share = target.mean(axis=0)
    assert probe.log_probs(x) == pytest.approx(np.tile(np.log((share + 0.01) / 1.02), (100, 1)), abs=1e-12)


@pytest.mark.parametrize(("n", "dev", "labels"), [(0, 5, 2), (5, 0, 2), (5, 5, 1)])
def test_too_little_to_learn_from_is_refused(n: int, dev: int, labels: int) -> None:
    with pytest.raises(InputError, match=r"a probe needs words to learn from"):
        fit_linear(np.zeros((n, 2)), np.ones((n, labels)), np.zeros((dev, 2)), np.ones((dev, labels)))


def test_log_probabilities_do_not_overflow() -> None:
    probe = LinearProbe(np.array([[1e3], [-1e3]]), np.zeros(2), np.zeros(1), np.ones(1), 0.1, 0.0)
    assert probe.log_probs(np.array([[5.0]])) == pytest.approx(np.array([[0.0, -1e4]]))
