"""Hidden Markov models against the forward algorithm, and the law of their random probabilities."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, kstest

from truesource.grammar.building import dirichlet
from truesource.grammar.languages.hmm import HmmSettings, parameters
from truesource.grammar.pcfg import language

CONCENTRATION = st.floats(0.05, 5.0)
SETTINGS = st.builds(
    HmmSettings,
    states=st.integers(1, 5),
    vocabulary=st.integers(1, 3),
    initial=CONCENTRATION,
    transition=CONCENTRATION,
    emission=CONCENTRATION,
    mean_length=st.floats(1.5, 9.0),
    seed=st.integers(0, 2**32 - 1),
)


@pytest.mark.long
@given(SETTINGS)
@settings(max_examples=25, deadline=None)
def test_string_probabilities_are_those_of_the_forward_algorithm(given: HmmSettings) -> None:
    initial, transition, emission = parameters(given)
    end = 1.0 / given.mean_length
    grammar = language("hmm", **given.model_dump())
    words = range(given.vocabulary)
    strings = [s for n in range(1, 5) for s in itertools.product(words, repeat=n)]
    scores = grammar.exact.string_log_probs([[f"w{w + 1}" for w in s] for s in strings])
    for string, score in zip(strings, scores, strict=True):
        alpha = [initial[i] * emission[i, string[0]] for i in range(given.states)]
        for w in string[1:]:
            alpha = [
                sum(alpha[i] * (1.0 - end) * transition[i, j] for i in range(given.states)) * emission[j, w]
                for j in range(given.states)
            ]
        assert math.exp(score) == pytest.approx(sum(alpha) * end, rel=1e-10)
    assert grammar.exact.mean_length == pytest.approx(given.mean_length, rel=1e-10)


@pytest.mark.parametrize("concentration", [0.05, 0.5, 3.0])
def test_probabilities_have_the_dirichlet_law(concentration: float) -> None:
    """A component of the symmetric Dirichlet distribution has a beta distribution."""
    rows = dirichlet(np.random.default_rng(4), concentration, (3000, 5))
    assert np.allclose(rows.sum(axis=1), 1.0, rtol=0.0, atol=1e-14)
    assert (rows > 0.0).all()
    for column in rows.T:
        assert kstest(np.minimum(column, 1.0 - 1e-16), beta(concentration, 4 * concentration).cdf).pvalue > 1e-3


def test_each_concentration_is_that_of_its_own_probabilities() -> None:
    found = [
        parameters(HmmSettings(states=3, vocabulary=3, initial=5.0, transition=0.3, emission=1.5, seed=seed))
        for seed in range(300)
    ]
    for concentration, rows in zip((5.0, 0.3, 1.5), zip(*found, strict=True), strict=True):
        first = [np.atleast_2d(row)[0, 0] for row in rows]
        assert kstest(first, beta(concentration, 2 * concentration).cdf).pvalue > 1e-3
