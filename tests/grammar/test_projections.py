"""Projections of split grammars against counts added up one by one, and against a sample."""

import math
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_grammars import as_split, small_pcfgs

from truesource.generator.sampler import sample_treebank
from truesource.grammar.estimate.relative_frequency import relative_frequency
from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.estimate.split_merge.projection import n_levels, project
from truesource.grammar.estimate.split_merge.train import split_merge
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

Rule = tuple[str, ...]


def rule_counts(pcfg: PCFG, name: dict[str, str]) -> dict[Rule, float]:
    """Expected uses of every rule, symbols renamed, added up one by one."""
    counts = expected_counts(pcfg)
    found: dict[Rule, float] = defaultdict(float)
    for rules, uses, lexical in (
        (pcfg.binary, counts.binary, False),
        (pcfg.unary, counts.unary, False),
        (pcfg.lexical, counts.lexical, True),
    ):
        for rule, n in zip(rules.tolist(), uses.tolist(), strict=True):
            symbols = [name[pcfg.symbols[i]] for i in (rule[:1] if lexical else rule)]
            found[*symbols, *([repr(pcfg.vocabulary[rule[1]])] if lexical else [])] += n
    return {rule: n for rule, n in found.items() if n > 0.0}


def probabilities(pcfg: PCFG) -> dict[Rule, float]:
    found: dict[Rule, float] = {}
    for rules, logp in ((pcfg.binary, pcfg.binary_logp), (pcfg.unary, pcfg.unary_logp)):
        for rule, p in zip(rules.tolist(), logp.tolist(), strict=True):
            found[tuple(pcfg.symbols[i] for i in rule)] = math.exp(p)
    for (a, w), p in zip(pcfg.lexical.tolist(), pcfg.lexical_logp.tolist(), strict=True):
        found[pcfg.symbols[a], repr(pcfg.vocabulary[w])] = math.exp(p)
    return found


def under(tree: Any, path: tuple[int, ...] = ()) -> dict[int, tuple[int, ...]]:
    """Path of each substate in its split tree."""
    if isinstance(tree, int):
        return {tree: path}
    return {leaf: p for i, branch in enumerate(tree) for leaf, p in under(branch, (*path, i)).items()}


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(small_pcfgs(), st.integers(0, 3))
def test_every_projection_has_the_expected_counts_of_the_fine_grammar(small: PCFG, dealt: int) -> None:
    fine = as_split(small, dealt)
    trees = fine.meta["split_trees"]
    levels = n_levels(fine)
    assert levels == 1 + max(len(path) for tree in trees.values() for path in under(tree).values())
    fine_counts = expected_counts(fine)
    for level in range(levels):
        coarse = project(fine, level)
        np.testing.assert_allclose(coarse.row_sums, 1.0, rtol=0, atol=1e-12)
        name = {}
        for symbol in fine.symbols:
            label, _, k = symbol.rpartition("-")
            if level == 0 or not label:
                name[symbol] = label or symbol
            else:
                branches = sorted({path[:level] for path in under(trees[label]).values()})
                name[symbol] = f"{label}-{branches.index(under(trees[label])[int(k)][:level])}"
        expected = rule_counts(fine, name)
        totals: Counter[str] = Counter()
        for rule, n in expected.items():
            totals[rule[0]] += n
        found = probabilities(coarse)
        assert found.keys() == expected.keys()
        for rule, p in found.items():
            assert p == pytest.approx(expected[rule] / totals[rule[0]], abs=1e-10)
        same = rule_counts(coarse, {symbol: symbol for symbol in coarse.symbols})
        assert same == pytest.approx(expected, rel=1e-8, abs=1e-10)
        assert coarse.labels == tuple(
            name.rpartition("-")[0] if level and name != "S" else name for name in coarse.symbols
        )
        assert n_levels(coarse) <= level + 1
        np.testing.assert_allclose(expected_counts(coarse).words, fine_counts.words, rtol=1e-8, atol=1e-10)
        again = project(coarse, 0)
        assert probabilities(again) == pytest.approx(probabilities(project(fine, 0)), rel=1e-8)


@pytest.mark.long
def test_the_deepest_level_is_the_grammar_and_level_0_that_of_its_infinite_sample() -> None:
    trees = [
        Tree("ROOT", (Tree("S", (Tree("NP", (Tree("N", (subject,)),)), Tree("VP", (Tree("V", ("sees",)), rest)))),))
        for subject, rest in (
            ("he", Tree("NP", (Tree("N", ("him",)),))),
            ("she", Tree("NP", (Tree("N", ("her",)),))),
            (
                "he",
                Tree("NP", (Tree("NP", (Tree("N", ("him",)),)), Tree("S", (Tree("N", ("x",)), Tree("V", ("naps",)))))),
            ),
        )
    ] * 10
    pcfg = split_merge(trees, SplitMerge(cycles=2, em_split=8, em_merge=4, em_smooth=2), seed=1).pcfg
    deepest = project(pcfg, n_levels(pcfg) - 1)
    assert n_levels(pcfg) == 3
    fine, same = probabilities(pcfg), probabilities(deepest)
    assert set(fine) == set(same)
    assert same == pytest.approx(fine, rel=1e-12)
    base = project(pcfg, 0)
    sample = relative_frequency(sample_treebank(pcfg, 20_000, 7))
    assert set(base.symbols) == {*sample.symbols} == {"ROOT", "S", "NP", "VP", "N", "V"}
    counted, exact = probabilities(sample), probabilities(base)
    assert set(counted) == {rule for rule, p in exact.items() if p > 1e-4 or rule in counted}
    for rule, p in counted.items():
        assert p == pytest.approx(exact[rule], abs=0.01)


def test_what_cannot_be_projected_is_refused() -> None:
    plain = PCFG.from_text("S -> a 1.0")
    with pytest.raises(InputError, match="no split trees"):
        project(plain, 0)
    split = plain.with_meta(split_trees={"S": 0})
    for level in (-1, 1, True, 0.5):
        with pytest.raises(InputError, match="levels 0 to 0, got"):
            project(split, level)  # type: ignore[arg-type]
    other = replace(split, symbols=("T",))
    with pytest.raises(InputError, match="'T' has no split tree"):
        project(other, 0)
    with pytest.raises(InputError, match="does not have the substate of the symbol 'S-4'"):
        project(replace(split, symbols=("S-4",)), 0)
    endless = PCFG.from_text("S -> S S 0.7 | a 0.3").with_meta(split_trees={"S": 0})
    with pytest.raises(InputError, match="spectral radius"):
        project(endless, 0)
