"""Grammars with symbols in levels: the published rules, the authors' own next-token distributions, random ones."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from truesource.generator.sampler import Sampler
from truesource.grammar.inference.batch import Distributions
from truesource.grammar.inference.distributions import next_token_distributions
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.languages import parameters, parse
from truesource.grammar.languages.cfg3 import PUBLISHED, Cfg3Settings, drawn_rules, published_rules
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError

#: rules, mean length, fewest and most tokens of a string, worked out from the published rules
FACTS = {
    "b": (32, Fraction(2205, 8), 138, 432),
    "i": (32, Fraction(9859, 32), 114, 564),
    "h": (39, Fraction(51059, 216), 97, 459),
    "g": (48, Fraction(184024, 729), 80, 729),
    "f": (54, Fraction(5181103, 20736), 64, 729),
    "j": (57, Fraction(14686, 27), 128, 2052),
    "k": (68, Fraction(5353051, 10368), 132, 1458),
}
needs_shared = pytest.mark.skipif(
    "TRUESOURCE_SHARED_DATA" not in os.environ, reason="TRUESOURCE_SHARED_DATA is not set"
)


def shared(name: str) -> Path:
    return Path(os.environ["TRUESOURCE_SHARED_DATA"]) / "languages" / name


def recursion(rules: dict[int, list[tuple[int, ...]]]) -> tuple[Fraction, float]:
    """Mean length and entropy of derivations (nats), level by level; rules of a symbol have equal probabilities."""
    tokens: dict[int, Fraction] = defaultdict(lambda: Fraction(1))
    entropy: dict[int, float] = defaultdict(float)
    for parent in reversed(rules):
        own = rules[parent]
        tokens[parent] = sum((tokens[child] for rule in own for child in rule), Fraction(0)) / len(own)
        entropy[parent] = math.log(len(own)) + sum(entropy[child] for rule in own for child in rule) / len(own)
    start = next(iter(rules))
    return tokens[start], entropy[start]


Triples = dict[tuple[str, tuple[str, ...]], float]


def table(grammar: PCFG) -> Triples:
    """Every rule with its probability, by the names of its symbols and words."""
    found: Triples = {}
    for (rules, logp), kind in zip(grammar.tables(), ("binary", "unary", "lexical"), strict=True):
        names = grammar.vocabulary if kind == "lexical" else grammar.symbols
        for (parent, *below), value in zip(rules.tolist(), np.exp(logp).tolist(), strict=True):
            found[grammar.symbols[parent], tuple(names[child] for child in below)] = value
    return found


@needs_shared
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_rules_are_those_of_the_authors(name: str) -> None:
    theirs = PCFG.load(shared(f"cfg3{name}.txt"))
    ours = language(f"cfg3{name}")
    assert table(ours) == pytest.approx(table(theirs), rel=1e-14)
    if name == "b":
        sampler = Sampler(theirs, None)
        strings = sampler.sentences(sampler.draw(2, random_state(1, 2)))
        assert ours.exact.string_log_probs(strings) == pytest.approx(theirs.exact.string_log_probs(strings), rel=1e-12)


@needs_shared
def test_next_token_distributions_are_those_of_the_authors_program() -> None:
    for name, case in json.loads(shared("cfg3_next_token.json").read_text()).items():
        grammar = language(name)
        order = [*(grammar.word_ids[word] for word in case["columns"][1:])]
        rows: dict[int, list[float]] = {}

        def keep(block: Distributions, order: list[int] = order, rows: dict[int, list[float]] = rows) -> None:
            end, words = block.probability[0, -1], block.probability[0, order]
            rows[block.position] = [end, *words]

        list(next_token_distributions(grammar.exact, [case["tokens"]], keep))
        found = np.array([rows[i] for i in range(len(case["tokens"]) + 1)])
        assert found == pytest.approx(np.array(case["next"]), abs=1e-9)


@pytest.mark.parametrize("name", PUBLISHED)
def test_facts_of_the_published_grammars(name: str) -> None:
    """Numbers of rules and lengths of strings; mean length and entropy by recursion over the levels."""
    rules = dict(published_rules(name))
    n_rules, mean, shortest, longest = FACTS[name]
    grammar = language(f"cfg3{name}")
    assert sum(map(len, rules.values())) == n_rules
    tokens, entropy = recursion(rules)
    assert tokens == mean
    assert grammar.exact.mean_length == pytest.approx(float(mean), rel=1e-12)
    assert derivational_entropy(grammar) == pytest.approx(entropy, rel=1e-12)
    for choose, most in ((min, shortest), (max, longest)):
        sizes: dict[int, int] = defaultdict(lambda: 1)
        for parent in reversed(rules):
            sizes[parent] = choose(sum(sizes[child] for child in rule) for rule in rules[parent])
        assert sizes[next(iter(rules))] == most
    if name == "b":
        assert all(len(set(rule)) == len(rule) for own in rules.values() for rule in own)


def test_a_published_grammar_has_no_other_settings() -> None:
    assert language("cfg3b").identity.startswith("cfg3:published=b ")
    assert [each.key for each in parameters(parse("cfg3b")[1])] == ["published"]
    for wrong in ("cfg3b:seed=2", "cfg3:published=b,levels=7"):
        with pytest.raises(InputError, match="the rules of a published grammar are fixed; remove"):
            language(wrong)


several = st.lists(st.integers(2, 4), min_size=1, max_size=2).map(tuple)


@pytest.mark.long
@given(st.integers(2, 5), st.integers(1, 6), several, several, st.booleans(), st.integers(0, 2**32 - 1))
def test_random_grammars_are_of_the_recipe(
    levels: int, symbols: int, degree: tuple[int, ...], lengths: tuple[int, ...], distinct: bool, seed: int
) -> None:
    given = {"levels": levels, "symbols": symbols, "degree": degree, "lengths": lengths, "distinct": distinct}
    try:
        grammar, chosen = language("cfg3", **given, seed=seed), parse("cfg3", {**given, "seed": seed})[1]
    except InputError:
        assume(False)
    assert isinstance(chosen, Cfg3Settings)
    assert chosen.n_rules() >= grammar.n_rules
    rules = dict(drawn_rules(chosen))
    level = {number: (number - 1) // symbols for number in (*range(1, symbols + 1), *rules)}
    assert Counter(level.values()) == dict.fromkeys(range(levels - 1), symbols) | {levels - 1: 1}
    used: dict[int, set[int]] = defaultdict(set)
    for parent, own in rules.items():
        assert len(set(own)) == len(own)
        assert len(own) in degree
        for rule in own:
            assert len(rule) in lengths
            assert not distinct or len(set(rule)) == len(rule)
            assert {level[child] for child in rule} == {level[parent] - 1}
            used[level[parent] - 1].update(rule)
    assert {key: len(found) for key, found in used.items()} == dict.fromkeys(range(levels - 1), symbols)
    assert len(grammar.vocabulary) == symbols
    tokens, entropy = recursion(rules)
    assert grammar.exact.mean_length == pytest.approx(float(tokens), rel=1e-12)
    assert derivational_entropy(grammar) == pytest.approx(entropy, rel=1e-12, abs=1e-12)


@pytest.mark.long
def test_rules_are_drawn_as_stated() -> None:
    """Two rules of two different children of three symbols: the law written out, chi-square test of 3,000 seeds."""
    pairs = list(itertools.permutations((1, 2, 3), 2))
    law: dict[tuple[tuple[int, int], ...], Fraction] = defaultdict(Fraction)
    for first, second in itertools.permutations(pairs, 2):
        p, uses = Fraction(1, 30), Counter((*first, *second))
        unused = {1, 2, 3} - uses.keys()
        if not unused:
            law[first, second] += p
            continue
        places = [at for at in range(4) if uses[(*first, *second)[at]] > 1]
        for at in places:
            changed = [*first, *second]
            changed[at] = min(unused)
            law[(changed[0], changed[1]), (changed[2], changed[3])] += p / len(places)
    assert sum(law.values()) == 1
    drawn: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for seed in range(3000):
        settings = Cfg3Settings(levels=2, lengths=(2,), distinct=True, seed=seed)
        ((_, rules),) = drawn_rules(settings)
        drawn[tuple(rules)] += 1
    assert drawn.keys() <= law.keys()
    keys = list(law)
    assert stats.chisquare([drawn[key] for key in keys], [3000 * float(law[key]) for key in keys]).pvalue > 0.01


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("degree=0", "language cfg3: degree: choose one or more integers from 1 to 100, joined"),
        ("lengths=2+11", "language cfg3: lengths: choose one or more integers from 2 to 10, joined"),
        ("symbols=2,distinct=true", "2 symbols cannot be 3 distinct children"),
        ("symbols=1,degree=3", "1 symbols allow only 2 distinct rules of these lengths"),
        ("symbols=5", "as few as 4 children in all its rules, but 5 symbols below it"),
        ("levels=20", "strings have up to 1,162,261,467 tokens"),
    ],
)
def test_impossible_recipes_are_refused(settings: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        language(f"cfg3:{settings}")
    assert caught.value.code == "bad-setting"
