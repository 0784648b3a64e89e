"""Random n-gram languages: next-token probabilities are those of the tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, kstest

from truesource.grammar.languages.ngram import RandomNgramSettings, tables
from truesource.grammar.pcfg import language

SETTINGS = st.builds(
    RandomNgramSettings,
    order=st.integers(1, 4),
    vocabulary=st.integers(1, 3),
    concentration=st.floats(0.05, 5.0),
    mean_length=st.floats(1.5, 9.0),
    seed=st.integers(0, 2**32 - 1),
)


@pytest.mark.long
@given(SETTINGS)
@settings(max_examples=25, deadline=None)
def test_next_token_probabilities_are_those_of_the_tables(given: RandomNgramSettings) -> None:
    v, end, rng = given.vocabulary, 1.0 / given.mean_length, np.random.default_rng(6)
    table = tables(given)
    grammar = language("ngram", **given.model_dump())
    assert grammar.exact.mean_length == pytest.approx(given.mean_length, rel=1e-10)
    column = [grammar.word_ids[f"w{w + 1}"] for w in range(v)]
    for _ in range(6):
        words = rng.integers(v, size=rng.integers(0, 7)).tolist()
        context = words[max(len(words) - given.order + 1, 0) :] if given.order > 1 else []
        row = sum(v**length for length in range(len(context))) + sum(
            w * v**place for place, w in enumerate(reversed(context))
        )
        found = grammar.next_token([f"w{w + 1}" for w in words])
        share = 1.0 - end if words else 1.0
        assert found.probability[column] == pytest.approx(table[row] * share, rel=1e-10)
        assert found.stop == pytest.approx(end if words else 0.0, rel=1e-10, abs=1e-15)


def test_symbols_are_contexts() -> None:
    grammar = language("ngram", order=3, vocabulary=2)
    assert [name for name in grammar.symbols if name.startswith("after")] == [
        "after <bos>",
        "after <bos> w1",
        "after <bos> w2",
        *(f"after w{i} w{j}" for i in (1, 2) for j in (1, 2)),
    ]


@pytest.mark.parametrize("concentration", [0.1, 2.0])
def test_words_have_the_dirichlet_law_of_the_concentration(concentration: float) -> None:
    rows = tables(RandomNgramSettings(order=3, vocabulary=20, concentration=concentration))
    assert kstest(rows[:, 0], beta(concentration, 19 * concentration).cdf).pvalue > 1e-3
