"""Random grammars: the mean length that was asked for, the shares of branchings, Zipf's law in each class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, kstest

from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.languages.zipf_pcfg import ZipfPcfgSettings
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.errors import InputError

SHARES = st.sampled_from([0.0, 0.3, 1.0])
CHOICES = st.fixed_dictionaries(
    {
        "nonterminals": st.integers(1, 12),
        "classes": st.integers(1, 12),
        "vocabulary": st.integers(12, 60),
        "rules": st.integers(1, 6),
        "concentration": st.floats(0.05, 5.0),
        "both": SHARES,
        "right": SHARES,
        "zipf": st.floats(0.0, 3.0),
        "mean_length": st.floats(1.5, 300.0),
        "seed": st.integers(0, 2**32 - 1),
    }
)


def branchings(grammar: PCFG) -> dict[str, float]:
    """Expected number of nodes with two children, by whether these are phrases (N) or classes (C)."""
    found = {"NN": 0.0, "CN": 0.0, "NC": 0.0}
    for (_, left, right), uses in zip(grammar.binary, expected_counts(grammar).binary, strict=True):
        found[grammar.symbols[left][0] + grammar.symbols[right][0]] += uses
    return found


@pytest.mark.long
@given(CHOICES)
@settings(max_examples=40, deadline=None)
def test_mean_length_and_shares_are_those_asked_for(chosen: dict[str, Any]) -> None:
    grammar = language("zipf-pcfg", **chosen)
    length, both, right = chosen["mean_length"], chosen["both"], chosen["right"]
    assert grammar.exact.mean_length == pytest.approx(length, rel=1e-9)
    assert grammar.exact.total_mass == pytest.approx(1.0, abs=1e-9)
    assert grammar.exact.reached.all()
    assert len(grammar.vocabulary) == chosen["vocabulary"]
    assert grammar.n_rules <= ZipfPcfgSettings(**chosen).n_rules()
    found = branchings(grammar)
    assert sum(found.values()) == pytest.approx(length - 1.0, rel=1e-8), "a word more for each branching"
    assert found["NN"] / sum(found.values()) == pytest.approx(both, abs=1e-9)
    one_phrase = found["CN"] + found["NC"]
    if both < 1.0:
        assert found["CN"] / one_phrase == pytest.approx(right, abs=1e-9)


@given(CHOICES)
@settings(max_examples=15, deadline=None)
def test_every_phrase_has_the_mean_length_and_a_spectral_radius_below_1(chosen: dict[str, Any]) -> None:
    """All rows of the matrix of children that are phrases sum to b (1 + both), so this is its spectral radius."""
    grammar = language("zipf-pcfg", **chosen)
    radius = ZipfPcfgSettings(**chosen).branching * (1.0 + chosen["both"])
    assert radius < 1.0
    assert grammar.exact.spectral_radius == pytest.approx(radius, rel=1e-6)
    pairs = expected_counts(grammar)
    phrases = [i for i, name in enumerate(grammar.symbols) if name.startswith("N")]
    assert pairs.symbols[phrases].sum() == pytest.approx(1.0 / (1.0 - radius), rel=1e-8)


def test_words_follow_zipfs_law_in_each_class() -> None:
    grammar = language("zipf-pcfg", classes=7, vocabulary=100, zipf=1.3)
    sizes = []
    for symbol in (name for name in grammar.symbols if name.startswith("C")):
        rows = grammar.lexical[:, 0] == grammar.symbol_ids[symbol]
        number = [int(grammar.vocabulary[w][1:]) for w in grammar.lexical[rows, 1]]
        p = np.exp(grammar.lexical_logp[rows][np.argsort(number)])
        sizes.append(len(p))
        np.testing.assert_allclose(p / p[0], np.arange(1.0, len(p) + 1.0) ** -1.3, rtol=1e-10)
    assert sorted(sizes) == [14] * 5 + [15] * 2


def test_one_kind_of_branching_makes_a_regular_language() -> None:
    grammar = language("zipf-pcfg", both=0.0, right=1.0, mean_length=12.0)
    assert {tuple(grammar.symbols[i][0] for i in rule) for rule in grammar.binary} == {("N", "C", "N")}
    pmf = grammar.exact.length_pmf(60)[1:]
    stop = 1.0 / 12.0
    np.testing.assert_allclose(pmf, stop * (1.0 - stop) ** np.arange(60), rtol=1e-10)


def test_rules_are_sparse_and_seeds_differ() -> None:
    grammar = language("zipf-pcfg", nonterminals=30, rules=2)
    parents = np.bincount(grammar.binary[:, 0], minlength=len(grammar.symbols))
    assert parents.max() < 40
    assert (parents[[grammar.symbol_ids[f"N{i}"] for i in range(30)]] >= 6).all()
    assert language("zipf-pcfg", seed=2) != language("zipf-pcfg") == language("zipf-pcfg", seed=1)


def test_a_class_without_a_word_is_refused() -> None:
    with pytest.raises(InputError, match="language zipf-pcfg: vocabulary: 10 classes need at least as many words"):
        language("zipf-pcfg", vocabulary=9)


@pytest.mark.parametrize("concentration", [0.2, 3.0])
def test_rules_have_the_dirichlet_law_of_the_concentration(concentration: float) -> None:
    """Of phrases with two rules of one child: their shares have a beta distribution."""
    grammar = language("zipf-pcfg", nonterminals=400, rules=2, concentration=concentration)
    shares = []
    for a in range(10, 400):  # the first ten also have the rules that classes need to be reached
        p = np.exp(grammar.unary_logp[grammar.unary[:, 0] == grammar.symbol_ids[f"N{a}"]])
        assert len(p) == 2
        shares.append(p[0] / p.sum())
    assert kstest(shares, beta(concentration, concentration).cdf).pvalue > 1e-3
