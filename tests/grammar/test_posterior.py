"""Posterior marginals and sampled derivations against enumeration, exclusion and differentiation."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from random_grammars import cases
from reference_inference import derivations, rules_of, tree_log_prob
from reference_posterior import Reference, bottoms, nodes
from scipy.stats import chisquare

from truesource.grammar.inference.posterior import posterior
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

Case = tuple[PCFG, list[list[str]]]
CYCLES = PCFG.from_text(
    "S -> A 0.45 | S B 0.25 | b 0.1 | B S 0.2\n"
    "A -> S 0.3 | B 0.5 | A A 0.1 | a 0.1\nB -> A 0.2 | B B 0.1 | b 0.6 | a 0.1"
)
FREE = PCFG.from_text("S -> S S 0.2 | X S 0.2 | X 0.2 | a 0.4\nX -> Y Y 0.5 | b 0.2 | Y 0.3\nY -> a 0.6 | b 0.4")
COARSE = {"S": "S", "A": "X", "B": "X", "C": "Y", "D": "Y"}
CLOSE = {"rel": 1e-10, "abs": 1e-10}


def coarse(pcfg: PCFG) -> PCFG:
    """The same grammar with two symbols to a label."""
    return replace(pcfg, labels=tuple(COARSE[name] for name in pcfg.symbols))


def spans(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(i + 1, n + 1)]


@pytest.mark.long
@given(cases(max_size=4))
@settings(max_examples=30)
def test_marginals_of_every_span_and_position(case: Case) -> None:
    pcfg, (sentence,) = coarse(case[0]), case[1]
    reference = Reference(pcfg, sentence)
    if reference.total == 0.0:
        with pytest.raises(InputError, match="has probability 0"):
            posterior(pcfg, sentence)
        return
    found = posterior(pcfg, sentence)
    assert found.log_prob == pytest.approx(math.log(reference.total), **CLOSE)
    assert set(found.labels) == set(pcfg.labels)
    states = {label: [a for a, own in enumerate(pcfg.labels) if own == label] for label in found.labels}
    every = range(len(pcfg.symbols))
    for at in spans(len(sentence)):
        assert found.expected_symbols(*at) == pytest.approx([reference.count(at, nodes([a])) for a in every], **CLOSE)
        assert found.symbols(*at) == pytest.approx([reference.occurs(at, nodes([a])) for a in every], **CLOSE)
        row = [reference.occurs(at, nodes(states[label])) for label in found.labels]
        assert found.label_table[found.span(*at)] == pytest.approx(row, **CLOSE)
    for i in range(len(sentence)):
        own = [reference.count((i, i + 1), bottoms([a])) for a in every]
        assert found.preterminals[i] == pytest.approx(own, **CLOSE)
        tags = [reference.count((i, i + 1), bottoms(states[label])) for label in found.labels]
        assert found.tags[i] == pytest.approx(tags, **CLOSE)


@pytest.mark.long
@given(cases(max_size=4, max_symbols=4, unary_cycles=False))
def test_marginals_without_unary_cycles_are_sums_over_derivations(case: Case) -> None:
    pcfg, (sentence,) = case
    enumerated = derivations(rules_of(pcfg), sentence)
    if not enumerated:
        return
    total = math.fsum(p for _, p in enumerated)
    wanted: Counter[tuple[int, int, str]] = Counter()
    tags: Counter[tuple[int, str]] = Counter()
    for tree, p in enumerated:
        end = 0
        for node in tree.subtrees():
            wanted[end, end + len(node.leaves()), node.label] += p / total
            if node.is_preterminal:
                tags[end, node.label] += p / total
                end += 1
    found = posterior(pcfg, sentence)
    for i, j in spans(len(sentence)):
        expected = [wanted[i, j, name] for name in pcfg.symbols]
        assert found.expected_symbols(i, j) == pytest.approx(expected, **CLOSE)
    for i in range(len(sentence)):
        assert found.preterminals[i] == pytest.approx([tags[i, name] for name in pcfg.symbols], **CLOSE)


@pytest.mark.long
@pytest.mark.parametrize(
    ("pcfg", "sentence"),
    [(CYCLES, "a"), (CYCLES, "a b"), (CYCLES, "b a b"), (FREE, "a b a"), (FREE, "b b a a")],
    ids=["cycles-1", "cycles-2", "cycles-3", "free-3", "free-4"],
)
def test_sampled_derivations_have_their_exact_posterior(pcfg: PCFG, sentence: str) -> None:
    words = sentence.split()
    found = posterior(pcfg, words)
    rng = np.random.default_rng(7)
    n = 20_000
    drawn = Counter(str(found.sample(rng)) for _ in range(n))
    # what revisits a symbol on a chain is enumerated by no one: such derivations are counted together
    exact = {str(tree): n * p / math.exp(found.log_prob) for tree, p in derivations(rules_of(pcfg), words)}
    cells = {tree: wanted for tree, wanted in exact.items() if wanted >= 5.0}
    observed = [drawn[tree] for tree in cells]
    observed.append(n - sum(observed))
    expected = [*cells.values(), n - math.fsum(cells.values())]
    if expected[-1] < 5.0:
        assert observed.pop() < 25
        expected.pop()
        expected = [x * sum(observed) / math.fsum(expected) for x in expected]
    assert len(cells) >= 2
    assert chisquare(observed, expected).pvalue > 0.001


@pytest.mark.long
def test_sampled_cycles_go_round_as_often_as_they_should() -> None:
    """Rounds of S -> A -> S over a word are geometric."""
    pcfg = PCFG.from_text("S -> A 0.5 | a 0.5\nA -> S 0.8 | a 0.2")
    found = posterior(pcfg, ["a"])
    rng = np.random.default_rng(3)
    n = 20_000
    heights = Counter(found.sample(rng).height() - 1 for _ in range(n))
    probs = []
    for length in range(1, 9):  # S A S A ...: odd chains end in S -> a, even ones in A -> a
        steps = 0.5 ** (length // 2) * 0.8 ** ((length - 1) // 2)
        probs.append(steps * (0.5 if length % 2 else 0.2) / math.exp(found.log_prob))
    observed = [heights[k] for k in range(1, 9)]
    observed.append(n - sum(observed))
    assert chisquare(observed, [n * p for p in [*probs, 1.0 - math.fsum(probs)]]).pvalue > 0.001
    assert found.expected_symbols(0, 1)[0] == pytest.approx(1.0 / (1.0 - 0.4), **CLOSE)
    assert found.symbols(0, 1)[0] == pytest.approx(1.0, **CLOSE)


@pytest.mark.long
@given(cases(max_size=4))
@settings(max_examples=20)
def test_samples_are_derivations_and_the_seed_decides(case: Case) -> None:
    pcfg, (sentence,) = case
    rules = rules_of(pcfg)
    if pcfg.log_prob(sentence) == -math.inf:
        return
    found = posterior(pcfg, sentence)
    trees = [found.sample(np.random.default_rng(seed)) for seed in (1, 2, 1)]
    assert trees[0] == trees[2]
    for tree in trees:
        assert (tree.label, tree.leaves()) == (rules.start, sentence)
        assert tree_log_prob(rules, tree) < 1e-12  # KeyError if it uses a rule that is not there


@pytest.mark.long
@pytest.mark.parametrize("word", [0.7, 0.7e-12])
def test_long_sentences_neither_under_nor_overflow(word: float) -> None:
    """S -> S S makes every binary tree: the Catalan numbers are exact at any length."""
    rare = f" | rare {word} | other {0.7 - word}" if word < 0.7 else " | rare 0.7"
    pcfg = PCFG.from_text("S -> S S 0.2 | S 0.1" + rare)
    n = 200
    found = posterior(pcfg, ["rare"] * n)
    catalan = math.log(math.comb(2 * n - 2, n - 1) // n)
    # every node may have any number of S -> S above it
    exact = catalan + (n - 1) * math.log(0.2) + n * math.log(word) - (2 * n - 1) * math.log(0.9)
    assert found.log_prob == pytest.approx(exact, rel=1e-12)
    assert found.label_table.sum() == pytest.approx(2 * n - 1, rel=1e-10)
    assert found.label_table[found.leaves] == pytest.approx(np.ones((n, 1)), rel=1e-10)
    assert found.tags == pytest.approx(np.ones((n, 1)), rel=1e-10)
    tree = found.sample(np.random.default_rng(0))
    assert len(tree.leaves()) == n
    # P(a span of two tokens) at the left edge: a tree over n - 1 leaves remains
    pair = (math.comb(2 * n - 4, n - 2) // (n - 1)) / (math.comb(2 * n - 2, n - 1) // n)
    assert found.symbols(0, 2)[0] == pytest.approx(pair, rel=1e-10)


def test_symbols_of_very_different_weight_over_one_span() -> None:
    """The context may ask for the symbol that is 1e-100 times as probable as its rival."""
    pcfg = PCFG.from_text(
        "S -> A e 0.5 | B f 0.5\nA -> A A 0.4 | 'a' 0.6\nB -> B B 0.4 | 'a' 1e-3 | 'b' 0.599\n"
        "e -> 'e' 1.0\nf -> 'f' 1.0"
    )
    n = 40
    found = posterior(pcfg, ["a"] * n + ["f"])
    trees = math.log(math.comb(2 * n - 2, n - 1) // n)
    assert found.log_prob == pytest.approx(
        trees + math.log(0.5) + (n - 1) * math.log(0.4) + n * math.log(1e-3), rel=1e-12
    )
    assert found.label_probs(0, n) == {"B": pytest.approx(1.0)}


def test_a_grammar_that_leaks_mass_has_its_posterior_too() -> None:
    pcfg = PCFG.from_text("S -> S S 0.6 | a 0.4")
    assert pcfg.exact.total_mass < 0.9
    found = posterior(pcfg, ["a"] * 3)
    assert found.label_probs(0, 2) == {"S": pytest.approx(0.5)}
    dead = PCFG.from_text("S -> a 0.5 | D 0.5\nD -> D 1.0")  # D never ends
    assert posterior(dead, ["a"]).label_probs(0, 1) == {"S": pytest.approx(1.0)}
    assert str(posterior(dead, ["a"]).sample(np.random.default_rng(0))) == "(S a)"


def test_by_hand() -> None:
    found = posterior(FREE, ["b", "b"])
    x = 0.2 + 0.3 * 0.4  # X => b
    s = 0.2 * x  # S => b
    flat, nested, double = 0.2 * 0.5 * 0.16, 0.2 * x * s, 0.2 * s * s
    assert math.exp(found.log_prob) == pytest.approx(flat + nested + double, rel=1e-12)
    assert found.label_probs(0, 2)["X"] == pytest.approx(flat / (flat + nested + double), rel=1e-12)


@pytest.mark.parametrize("sentence", [[], ["never-seen"], ["a", "never-seen", "a"]])
def test_sentences_without_a_tree_are_refused(sentence: list[str]) -> None:
    with pytest.raises(InputError):
        posterior(CYCLES, sentence)


@pytest.mark.parametrize("span", [(0, 0), (1, 1), (0, 3), (-1, 1)])
def test_spans_outside_the_sentence_are_refused(span: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="is no span"):
        posterior(CYCLES, ["a", "b"]).symbols(*span)


def left_garden_path() -> PCFG:
    """The last word decides between two left recursions, of which a^n favours the other by a factor of 9 a word."""
    return PCFG.from_text(
        "S -> A Y 0.5 | B W 0.5\nA -> A X 0.9 | X X 0.1\nB -> B Z 0.9 | Z Z 0.1\n"
        "X -> a 0.9 | b 0.1\nZ -> a 0.1 | b 0.9\nY -> y 1\nW -> w 1"
    )


@pytest.mark.long
def test_weights_too_far_apart_are_refused_and_never_called_impossible() -> None:
    pcfg = left_garden_path()
    near = posterior(pcfg, ["a"] * 200 + ["w"])
    assert near.log_prob == pytest.approx(math.log(0.05) + 198 * math.log(0.9) - 200 * math.log(10.0), rel=1e-12)
    assert near.label_probs(0, 200) == {"B": pytest.approx(1.0, rel=1e-10)}
    with pytest.raises(InputError, match=r"more than 1e250.*-725\.169 nats"):
        posterior(pcfg, ["a"] * 300 + ["w"])
    with pytest.raises(InputError, match="has probability 0"):
        posterior(pcfg, ["a"] * 300)


def test_tiny_rules_have_a_posterior() -> None:
    """Weights below 1e-250 of their span that lead nowhere cost nothing."""
    pcfg = PCFG.from_text("S -> A B 1\nA -> a 1 | b 1e-280\nB -> a 1e-290 | b 1\nC -> b 1e-270 | c 1")
    found = posterior(pcfg, ["a", "b"])
    assert found.log_prob == pytest.approx(0.0, abs=1e-12)
    assert found.label_probs(1, 2) == {"B": pytest.approx(1.0, rel=1e-12)}


def test_more_symbols_than_fit_into_one_number() -> None:
    """Pairs of children are found by sets of 64 symbols; strings have their probability from other charts."""
    rng = np.random.default_rng(1)
    names = [f"X{i}" for i in range(190)]
    lines = [f"{a} -> {b} {c} 0.1 | {d} {a} 0.1 | {w} 0.8" for a in names for b, c, d, w in [_children(rng, names)]]
    pcfg = PCFG.from_text("\n".join([f"S -> {' 1 | '.join(names)} 1", *lines]), normalise=True)
    for sentence in (list("abcab"), list("ccbaacb")):
        found = posterior(pcfg, sentence)
        assert found.log_prob == pytest.approx(float(pcfg.exact.string_log_probs([sentence])[0]), abs=1e-10)
        assert found.preterminals.sum(axis=1) == pytest.approx(np.ones(len(sentence)), abs=1e-10)


def _children(rng: np.random.Generator, names: list[str]) -> tuple[str, str, str, str]:
    b, c, d = (names[i] for i in rng.integers(len(names), size=3))
    return b, c, d, "'" + "abc"[rng.integers(3)] + "'"
