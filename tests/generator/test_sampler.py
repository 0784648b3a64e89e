"""Sampled derivations against exact probabilities that are enumerated here, independently."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from truesource.generator.sampler import Sampler, sample_treebank
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

# left recursion (S), a unary cycle of length two (S -> A -> S) and one of length one (B), ambiguity
RULES = [
    ("S", ("S", "A"), 0.25),
    ("S", ("A",), 0.35),
    ("S", ("x",), 0.4),
    ("A", ("S",), 0.2),
    ("A", ("B", "A"), 0.15),
    ("A", ("a",), 0.45),
    ("A", ("b",), 0.2),
    ("B", ("B",), 0.3),
    ("B", ("b",), 0.6),
    ("B", ("A", "B"), 0.1),
]


def is_word(_parent, children):
    return children[0].islower()


def make(rules, start="S", **kwargs):
    return PCFG.from_rules(rules, start=start, words=is_word, **kwargs)


def string_probabilities(rules, start, longest):
    """P(start derives w) for every w of at most ``longest`` words, by dynamic programming over strings."""
    symbols = sorted({parent for parent, _, _ in rules})
    at = {symbol: i for i, symbol in enumerate(symbols)}
    unary = np.zeros((len(symbols),) * 2)
    for parent, children, p in rules:
        if len(children) == 1 and children[0] in at:
            unary[at[parent], at[children[0]]] += p
    closure = np.linalg.inv(np.eye(len(symbols)) - unary)
    table = [{} for _ in symbols]
    for n in range(1, longest + 1):
        bare = [Counter() for _ in symbols]
        for parent, children, p in rules:
            if n == 1 and len(children) == 1 and children[0] not in at:
                bare[at[parent]][children] += p
            elif len(children) == 2:
                for left, weight in table[at[children[0]]].items():
                    for right, other in table[at[children[1]]].items():
                        if len(left) + len(right) == n:
                            bare[at[parent]][left + right] += p * weight * other
        for i in range(len(symbols)):
            for j, strings in enumerate(bare):
                for string, weight in strings.items():
                    if closure[i, j] > 0:
                        table[i][string] = table[i].get(string, 0.0) + closure[i, j] * weight
    return table[at[start]]


def chi_square_p(counts, probability, n):
    """p-value of observed counts; outcomes expected less than 8 times, and those not listed, are pooled."""
    frequent = [outcome for outcome, p in probability.items() if n * p >= 8]
    observed = [counts[outcome] for outcome in frequent]
    expected = [n * probability[outcome] for outcome in frequent]
    rest = n - sum(expected)
    if rest > 1e-6:
        observed.append(n - sum(observed))
        expected.append(rest)
    assert sum(observed) == n
    assert len(observed) > 3
    return stats.chisquare(observed, expected, sum_check=False).pvalue


@pytest.fixture(scope="module")
def pcfg():
    return make(RULES)


@pytest.fixture(scope="module")
def exact():
    return string_probabilities(RULES, "S", 7)


@pytest.mark.long
def test_strings_follow_the_grammar(pcfg, exact):
    n = 40_000
    sampler = Sampler(pcfg)
    counts = Counter(map(tuple, sampler.sentences(sampler.draw(n, random_state(3)))))
    assert chi_square_p(counts, exact, n) > 1e-3


@pytest.mark.parametrize("lengths", [LengthRange(1, 1), LengthRange(2, 5), LengthRange(7, 7)])
def test_strings_given_a_range_follow_the_truncated_grammar(pcfg, exact, lengths):
    n = 40_000
    inside = {string: p for string, p in exact.items() if len(string) in lengths}
    z = math.fsum(inside.values())
    sampler = Sampler(pcfg, lengths)
    assert sampler.log_mass == pytest.approx(math.log(z), abs=1e-12)
    counts = Counter(map(tuple, sampler.sentences(sampler.draw(n, random_state(4)))))
    assert set(counts) <= set(inside)
    p = {string: value / z for string, value in inside.items()}
    if lengths.high == 1:
        assert stats.chisquare([counts[w] for w in p], [n * q for q in p.values()]).pvalue > 1e-3
    else:
        assert chi_square_p(counts, p, n) > 1e-3


@pytest.mark.parametrize("lengths", [None, LengthRange(3, 6)])
def test_lengths(pcfg, exact, lengths):
    n = 400_000
    pmf = Counter()
    for string, p in exact.items():
        if lengths is None or len(string) in lengths:
            pmf[len(string)] += p
    z = 1.0 if lengths is None else pmf.total()
    counts = Counter(Sampler(pcfg, lengths).draw(n, random_state(5)).n_tokens.tolist())
    assert chi_square_p(counts, {m: p / z for m, p in pmf.items()}, n) > 1e-3


def test_expected_uses_of_every_rule(pcfg):
    """E[uses of r | range] = p_r d ln Z / d p_r, here by differences of enumerated Z; so unigrams too."""
    lengths, n, step = LengthRange(1, 5), 200_000, 1e-4

    def log_z(rule, factor):
        changed = [(a, below, p * factor if (a, below) == rule else p) for a, below, p in RULES]
        return math.log(math.fsum(string_probabilities(changed, "S", lengths.high).values()))

    sampler = Sampler(pcfg, lengths)
    drawn = sampler.draw(n, random_state(12))
    owner = np.repeat(np.arange(n), np.diff(drawn.ends))
    word, symbol = pcfg.word_ids, pcfg.symbol_ids
    for parent, below, _ in RULES:
        if below[0] in word:
            row = len(pcfg.binary) + len(pcfg.unary)
            row += np.flatnonzero((pcfg.lexical == (symbol[parent], word[below[0]])).all(axis=1))[0]
        else:
            table = pcfg.unary if len(below) == 1 else pcfg.binary
            row = np.flatnonzero((table == (symbol[parent], *(symbol[c] for c in below))).all(axis=1))[0]
            row += len(pcfg.binary) if len(below) == 1 else 0
        uses = np.bincount(owner[drawn.rules == row], minlength=n)
        expected = (log_z((parent, below), 1 + step) - log_z((parent, below), 1 - step)) / (2 * step)
        assert abs(uses.mean() - expected) < 4 * uses.std() / math.sqrt(n) + 1e-6, (parent, below)


@pytest.mark.long
@pytest.mark.parametrize("lengths", [None, LengthRange(2, 4)])
def test_derivations_follow_their_log_probabilities(pcfg, lengths):
    n = 40_000
    sampler = Sampler(pcfg, lengths)
    drawn = sampler.draw(n, random_state(6))
    z = math.exp(sampler.log_mass)
    probability = {}
    counts = Counter()
    rule = {(parent, children): math.log(p) for parent, children, p in RULES}
    trees = list(sampler.trees(drawn, coarse=False, binarised=True))
    for tree, log_prob in zip(trees, drawn.log_prob, strict=True):
        walked = 0.0
        for node in tree.subtrees():
            children = tuple(c if isinstance(c, str) else c.label for c in node.children)
            walked += rule[node.label, children]
        assert log_prob == pytest.approx(walked, abs=1e-9)
        counts[str(tree)] += 1
        probability[str(tree)] = math.exp(walked) / z
    assert chi_square_p(counts, probability, n) > 1e-3
    assert [tree.leaves() for tree in trees] == sampler.sentences(drawn)


@pytest.mark.long
def test_splits_of_the_length():
    """Given six words, k of them l, P(k) is proportional to (1/2)^k (1/3)^(6 - k): closed form."""
    rules = [("S", ("L", "R"), 1.0), ("L", ("M", "L"), 0.5), ("L", ("l",), 0.5), ("M", ("l",), 1.0)]
    rules += [("R", ("T", "R"), 1 / 3), ("R", ("r",), 2 / 3), ("T", ("r",), 1.0)]
    n = 100_000
    weights = np.array([0.5**k * (1 / 3) ** (6 - k) for k in range(1, 6)])
    sampler = Sampler(make(rules), LengthRange(6, 6))
    counts = Counter(sentence.count("l") for sentence in sampler.sentences(sampler.draw(n, random_state(2))))
    observed = [counts[k] for k in range(1, 6)]
    assert stats.chisquare(observed, n * weights / weights.sum()).pvalue > 1e-3


def test_any_start_symbol(pcfg):
    n = 20_000
    exact = string_probabilities(RULES, "B", 5)
    z = sum(exact.values())
    sampler = Sampler(pcfg, LengthRange(1, 5), start="B")
    counts = Counter(map(tuple, sampler.sentences(sampler.draw(n, random_state(7)))))
    assert chi_square_p(counts, {s: p / z for s, p in exact.items()}, n) > 1e-3
    free = Sampler(pcfg, start="B")
    assert {t.label for t in free.trees(free.draw(20, random_state(1)))} == {"B"}
    with pytest.raises(InputError, match="no symbol 'Q'"):
        Sampler(pcfg, start="Q")


def test_conditioning_serves_an_explosive_grammar():
    rules = [("S", ("S", "S"), 0.7), ("S", ("a",), 0.2), ("S", ("b",), 0.1)]
    explosive = make(rules)
    with pytest.raises(InputError, match=r"spectral radius 1\.4000"):
        Sampler(explosive)
    n = 20_000
    exact = string_probabilities(rules, "S", 5)
    z = sum(exact.values())
    sampler = Sampler(explosive, LengthRange(1, 5))
    counts = Counter(map(tuple, sampler.sentences(sampler.draw(n, random_state(8)))))
    assert chi_square_p(counts, {s: p / z for s, p in exact.items()}, n) > 1e-3


def test_a_derivation_has_a_cap(pcfg):
    for lengths in (None, LengthRange(5, 6)):
        with pytest.raises(InputError, match="a derivation exceeded 4 rules: the grammar's recursion is too probable;"):
            Sampler(pcfg, lengths).draw(100, random_state(1), max_nodes=4)


def test_impossible_range_says_which_lengths_there_are():
    odd = make([("S", ("S", "T"), 0.3), ("T", ("S", "S"), 1.0), ("S", ("a",), 0.7)])
    with pytest.raises(InputError, match=r"no sentence of 4\.\.4 tokens; possible lengths near it: 1, 3, 5, 7, 9"):
        Sampler(odd, LengthRange(4, 4))
    finite = make([("S", ("T", "T"), 1.0), ("T", ("a",), 1.0)])
    with pytest.raises(InputError, match=r"9\.\.12 tokens; possible lengths near it: 2"):
        Sampler(finite, LengthRange(9, 12))


def test_improbable_range():
    rare = make([("S", ("A", "S"), 0.001), ("S", ("b",), 0.999), ("A", ("a",), 1.0)])
    sampler = Sampler(rare, LengthRange(80, 80))
    drawn = sampler.draw(3, random_state(1))
    assert sampler.sentences(drawn) == [["a"] * 79 + ["b"]] * 3
    assert drawn.log_prob == pytest.approx([79 * math.log(0.001) + math.log(0.999)] * 3)
    for n in (100, 300):  # below 1e-290, and 0 in floating point
        with pytest.raises(InputError, match="too rare"):
            Sampler(rare, LengthRange(n, n))


@pytest.mark.long
def test_long_and_deep_sentences():
    long = make([("S", ("A", "S"), 0.9998), ("S", ("b",), 0.0002), ("A", ("a",), 1.0)])
    sampler = Sampler(long)
    drawn = sampler.draw(20, random_state(1))
    assert drawn.n_tokens.max() > 5_000
    for tree, n in zip(sampler.trees(drawn), drawn.n_tokens.tolist(), strict=True):
        assert tree.height() == n + 1
    conditioned = Sampler(long, LengthRange(300, 300))
    assert set(conditioned.draw(20, random_state(1)).n_tokens.tolist()) == {300}


@pytest.mark.parametrize("lengths", [None, LengthRange(2, 6)])
def test_same_seed_same_sample(pcfg, lengths):
    first, again = (Sampler(pcfg, lengths).draw(500, random_state(9, 0, 1)) for _ in range(2))
    assert (first.rules == again.rules).all()
    assert (first.ends == again.ends).all()
    other = Sampler(pcfg, lengths).draw(500, random_state(9, 1, 0))
    assert first.rules[:200].tolist() != other.rules[:200].tolist()
    # fewer sentences are a prefix, however the work was cut before
    sampler = Sampler(pcfg, lengths)
    state = random_state(9, 0, 1)
    parts = [sampler.draw(n, state) for n in (1, 99, 400)]
    assert np.concatenate([part.rules for part in parts]).tolist() == first.rules.tolist()


@pytest.mark.parametrize("seed", [-1, True, 1.0, "1", np.float64(3), None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InputError, match="a seed must be a whole number, 0 or more, got"):
        random_state(seed)


# -- trees ----------------------------------------------------------------------------------------------

LABELLED = [
    ("ROOT", ("NP-1", "@S-0"), 0.5),
    ("ROOT", ("@S-0",), 0.2),
    ("ROOT", ("NP-1",), 0.3),
    ("@S-0", ("V-0", "@S-1"), 0.6),
    ("@S-0", ("V-0", "NP-1"), 0.4),
    ("@S-1", ("NP-1", "NP-1"), 1.0),
    ("NP-1", ("it",), 0.5),
    ("NP-1", ("us",), 0.5),
    ("V-0", ("see",), 1.0),
]
LABELS = {"@S-0": "@S", "@S-1": "@S", "NP-1": "NP", "V-0": "V"}


def test_treebank_is_coarse_and_without_binarisation_nodes():
    grammar = make(LABELLED, "ROOT", labels=LABELS)
    trees = sample_treebank(grammar, 300, 1)
    assert len(trees) == 300
    assert {node.label for tree in trees for node in tree.subtrees()} == {"ROOT", "NP", "V"}
    assert {len(tree.children) for tree in trees} == {1, 2, 3, 4}
    fine = sample_treebank(grammar, 300, 1, coarse=False)
    assert {node.label for tree in fine for node in tree.subtrees()} == {"ROOT", "NP-1", "V-0"}
    assert [tree.leaves() for tree in fine] == [tree.leaves() for tree in trees]
    short = sample_treebank(grammar, 50, 1, LengthRange(1, 1))
    assert {str(tree) for tree in short} == {"(ROOT (NP it))", "(ROOT (NP us))"}
    with pytest.raises(InputError, match="at least one"):
        sample_treebank(grammar, 0, 1)


def test_a_root_that_binarisation_made_stays():
    grammar = make([("@X", ("A",), 0.5), ("@X", ("A", "A"), 0.5), ("A", ("a",), 1.0)], "@X")
    assert {str(tree) for tree in sample_treebank(grammar, 30, 1)} == {"(@X (A a))", "(@X (A a) (A a))"}


# -- any grammar ----------------------------------------------------------------------------------------


@st.composite
def grammars(draw):
    symbols = ["S", *"ABC"[: draw(st.integers(0, 3))]]
    rules = {(symbol, ("w" + symbol.lower(),)): draw(st.integers(1, 6)) for symbol in symbols}
    for _ in range(draw(st.integers(0, 8))):
        children = draw(st.lists(st.sampled_from([*symbols, "w", "v"]), min_size=1, max_size=2))
        if len(children) == 2 and any(c.islower() for c in children):
            continue
        rules[draw(st.sampled_from(symbols)), tuple(children)] = draw(st.integers(1, 6))
    return make([(*rule, weight) for rule, weight in rules.items()], normalise=True)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(grammars(), st.integers(1, 6), st.integers(0, 3), st.integers(0, 2**70))
def test_any_grammar(pcfg, low, more, seed):
    lengths = LengthRange(low, low + more)
    mass = pcfg.exact.length_masses(lengths.high)[low:, pcfg.start].sum()
    if mass == 0.0:
        with pytest.raises(InputError, match="no sentence of"):
            Sampler(pcfg, lengths)
        return
    sampler = Sampler(pcfg, lengths)
    drawn = sampler.draw(5, random_state(seed))
    for i, (tree, sentence) in enumerate(zip(sampler.trees(drawn), sampler.sentences(drawn), strict=True)):
        assert len(sentence) in lengths
        assert drawn.n_tokens[i] == len(sentence)
        assert tree.leaves() == sentence
        assert tree.label == "S"
        assert drawn.log_prob[i] <= pcfg.log_prob(sentence) + 1e-9
    assert len(drawn) == 5
    assert all(a < b for a, b in pairwise(drawn.ends.tolist()))
    assert isinstance(next(sampler.trees(drawn)), Tree)


@pytest.mark.long
@pytest.mark.parametrize("rule", ["T S", "S T"])
def test_a_linear_grammar_draws_ten_thousand_tokens(rule: str) -> None:
    """Lengths follow the geometric distribution cut to the range; a string has one derivation."""
    pcfg = PCFG.from_text(f"S -> {rule} 0.999 | a 0.001\nT -> a 0.5 | b 0.5")
    lengths = LengthRange(9_000, 10_000)
    sampler = Sampler(pcfg, lengths)
    drawn = sampler.draw(400, random_state(5))
    sizes = np.arange(lengths.low, lengths.high + 1)
    cdf = np.cumsum(0.999**sizes) / (0.999**sizes).sum()
    assert stats.ks_1samp(drawn.n_tokens, lambda n: cdf[np.asarray(n).astype(int) - lengths.low]).pvalue > 1e-3
    found = pcfg.exact.string_log_probs(sampler.sentences(drawn))
    np.testing.assert_allclose(found, drawn.log_prob, rtol=1e-12)
    tree = next(iter(sampler.trees(drawn)))
    assert tree.height() == drawn.n_tokens[0] + 1


def test_a_range_that_a_linear_grammar_does_not_reach_names_lengths_near_it() -> None:
    pcfg = PCFG.from_text("S -> T A 0.9 | a 0.1\nA -> T S 1\nT -> a 1")
    with pytest.raises(InputError, match=r"possible lengths near it: 3995, 3997, 3999, 4001, 4003, 4005"):
        Sampler(pcfg, LengthRange(4_000, 4_000))
