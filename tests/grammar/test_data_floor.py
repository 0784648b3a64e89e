"""The floor of the data against simulation, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.estimate.data_floor import data_floor, expected_log, free_parameters
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError


def simulated(pcfg: PCFG, trees: int, repeats: int) -> tuple[float, float]:
    """Mean and standard error of the divergence of learners that count trees drawn anew."""
    sampler, counts = Sampler(pcfg), expected_counts(pcfg)
    parent = np.concatenate([rules[:, 0] for rules, _ in pcfg.tables()])
    log_p = np.concatenate([logp for _, logp in pcfg.tables()])
    uses = np.concatenate([counts.binary, counts.unary, counts.lexical])
    found, size = [], np.bincount(parent)
    for seed in range(repeats):
        seen = np.bincount(sampler.draw(trees, random_state(seed)).rules, minlength=len(parent))
        estimate = (seen + 0.5) / (np.bincount(parent, seen)[parent] + 0.5 * size[parent])
        found.append(float(uses @ (log_p - np.log(estimate))))
    return float(np.mean(found)), float(np.std(found) / math.sqrt(repeats))


@pytest.mark.long
@pytest.mark.parametrize(
    ("pcfg", "trees"),
    [
        (language("dyck", k=3, depth=3), 300),
        (language("hmm", states=4, vocabulary=8), 100),
        (language("english", size="small"), 2000),
    ],
    ids=["dyck", "hmm", "english"],
)
def test_the_floor_is_the_mean_of_learners_that_count_trees(pcfg: PCFG, trees: int) -> None:
    mean, error = simulated(pcfg, trees, 3000 if trees < 1000 else 300)
    found = data_floor(pcfg, trees)
    assert error < 0.01 * mean
    assert abs(found - mean) < 0.01 * mean + 3.0 * error


def test_for_many_trees_it_is_half_a_free_parameter_each() -> None:
    for pcfg in (language("dyck"), language("hmm", states=3, vocabulary=5)):
        d = free_parameters(pcfg)
        floors = [data_floor(pcfg, n) for n in (10**5, 10**6, 10**7)]
        assert floors == pytest.approx([d / (2 * n) for n in (10**5, 10**6, 10**7)], rel=0.02)
        slopes = np.diff(np.log(floors)) / math.log(10)
        assert slopes == pytest.approx([-1.0, -1.0], abs=0.01)


def test_under_a_condition_rules_are_counted_in_trees_of_such_lengths() -> None:
    """A range that leaves nothing out changes nothing; one that leaves rules out needs not learn them."""
    pcfg = language("hmm", states=3, vocabulary=5)
    assert data_floor(pcfg, 200, lengths=LengthRange(1, 400)) == pytest.approx(data_floor(pcfg, 200), rel=1e-9)
    branching = PCFG.from_text("S -> A S 0.5 | 'a' 0.3 | 'b' 0.2\nA -> 'c' 0.6 | 'd' 0.4\n")
    one_word = data_floor(branching, 10**6, lengths=LengthRange(1, 1))
    assert one_word == pytest.approx(1 / (2 * 10**6), rel=0.01)  # a or b: one free parameter
    with pytest.raises(InputError):
        data_floor(branching, 10, lengths=LengthRange(0, 0))


def test_the_logarithm_of_a_count_is_expected_as_its_law_says() -> None:
    mean, add = np.array([0.0, 0.3, 7.0, 900.0, 9_999.0]), np.array([0.5, 0.5, 3.0, 0.5, 0.5])
    wanted = []
    for m, a in zip(mean.tolist(), add.tolist(), strict=True):
        p, terms = math.exp(-m), []
        log_p = -m
        for x in range(int(m + 20 * math.sqrt(m) + 60)):
            terms.append(math.exp(log_p) * math.log(x + a))
            log_p += math.log(m) - math.log(x + 1) if m else -math.inf
        wanted.append(math.fsum(terms))
        assert p >= 0.0
    np.testing.assert_allclose(expected_log(mean, add), wanted, rtol=1e-10)
    near = expected_log(np.array([1e4, 1e4 + 1e-6]), np.array([0.5, 0.5]))
    assert near[1] == pytest.approx(near[0], abs=1e-9)  # summed below, expanded above


def test_bad_calls_are_refused() -> None:
    for trees, smoothing in ((0, 0.5), (10, 0.0)):
        with pytest.raises(InputError, match="the data floor needs 1 tree or more"):
            data_floor(language("dyck"), trees, smoothing)
