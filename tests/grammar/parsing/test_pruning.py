"""Coarse-to-fine pruning: the first pass against the exact posterior, charts of what is allowed against plain sums."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_grammars import as_split, cases, small_pcfgs

from truesource.grammar._kernels.kernel import WIDTH
from truesource.grammar.inference.batch import NothingLeftError
from truesource.grammar.inference.exact import viterbi_tree
from truesource.grammar.inference.posterior import max_rule_tree, posterior
from truesource.grammar.parsing.parser import CoarseToFine, Level, Parser, parsing_levels
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.errors import InputError

Case = tuple[PCFG, list[list[str]]]
DEEP = PCFG.from_text("S -> S S 0.4 | A 0.3 | a 0.3\nA -> S A 0.2 | b 0.8")


def twice(pcfg: PCFG) -> CoarseToFine:
    """A first pass with the grammar itself."""
    same = np.arange(len(pcfg.symbols))
    return CoarseToFine([Level(pcfg, np.full_like(same, -1)), Level(pcfg, same)], [1e-9])


def expected_nodes(pcfg: PCFG, sentence: list[str]) -> FloatArray:
    try:
        found = posterior(pcfg, sentence)
    except InputError:
        return np.zeros((len(sentence) * (len(sentence) + 1) // 2, len(pcfg.symbols)))
    return np.asarray(found.closed * found.chart.inside)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(cases(max_size=6, most=11))
def test_the_first_pass_finds_the_expected_nodes_of_every_sentence(case: Case) -> None:
    pcfg, sentences = case
    found = dict(twice(pcfg).expected(sentences))
    assert sorted(found) == list(range(len(sentences)))
    for number, sentence in enumerate(sentences):
        np.testing.assert_allclose(found[number], expected_nodes(pcfg, sentence), rtol=2e-5, atol=1e-6)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(cases(max_size=6, most=2 * WIDTH + 1))
def test_what_the_first_pass_finds_does_not_depend_on_the_other_sentences(case: Case) -> None:
    pcfg, sentences = case
    pruning = twice(pcfg)
    together = {number: expected.tobytes() for number, expected in pruning.expected(sentences)}
    for number, sentence in enumerate(sentences):
        ((_, alone),) = pruning.expected([sentence])
        assert alone.tobytes() == together[number]


@pytest.mark.long
def test_long_sentences_neither_under_nor_overflow() -> None:
    sentence = ["a", "b"] * 100
    ((_, found),) = twice(DEEP).expected([sentence])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected_nodes(DEEP, sentence), rtol=1e-3, atol=1e-5)


def plain_inside(pcfg: PCFG, sentence: list[str], allowed: BoolArray) -> FloatArray:
    """Inside weights (n, n+1, S), rule by rule; unary chains begin and end at what is allowed."""
    n, size = len(sentence), len(pcfg.symbols)
    full = np.zeros((n, n + 1, size))
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length
            bare = np.zeros(size)
            for (a, word), logp in zip(pcfg.lexical, pcfg.lexical_logp, strict=True):
                if length == 1 and pcfg.vocabulary[word] == sentence[i]:
                    bare[a] += math.exp(logp)
            for (a, b, c), logp in zip(pcfg.binary, pcfg.binary_logp, strict=True):
                for k in range(i + 1, j):
                    bare[a] += math.exp(logp) * full[i, k, b] * full[k, j, c]
            here = allowed[j * (j - 1) // 2 + i]
            full[i, j] = here * (pcfg.exact.unary_closure @ (here * bare))
    return full


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(cases(max_size=5), st.integers(0, 2**32 - 1), st.floats(0.3, 1.0))
def test_charts_of_what_is_allowed(case: Case, seed: int, share: float) -> None:
    pcfg, (sentence,) = case
    n = len(sentence)
    allowed = np.random.default_rng(seed).random((n * (n + 1) // 2, len(pcfg.symbols))) < share
    plain = plain_inside(pcfg, sentence, allowed)
    if plain[0, n, pcfg.start] == 0.0:
        with pytest.raises(NothingLeftError):
            posterior(pcfg, sentence, allowed)
        return
    found = posterior(pcfg, sentence, allowed)
    assert found.log_prob == pytest.approx(math.log(plain[0, n, pcfg.start]), abs=1e-10)
    for i in range(n):
        for j in range(i + 1, n + 1):
            span = found.span(i, j)
            weights = np.ldexp(found.chart.inside[span], int(found.chart.shift[span]))
            np.testing.assert_allclose(weights, plain[i, j], rtol=1e-10, atol=1e-14)
            assert (found.closed[span][~allowed[span]] == 0.0).all()
    # every derivation has one preterminal over each word
    np.testing.assert_allclose(found.preterminals.sum(axis=1), 1.0, rtol=0, atol=1e-10)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(cases(max_size=5))
def test_with_everything_allowed_charts_and_trees_are_the_exact_ones(case: Case) -> None:
    pcfg, (sentence,) = case
    every = np.ones((len(sentence) * (len(sentence) + 1) // 2, len(pcfg.symbols)), dtype=np.bool_)
    try:
        exact = posterior(pcfg, sentence)
    except InputError:
        with pytest.raises(NothingLeftError):
            posterior(pcfg, sentence, every)
        with pytest.raises(NothingLeftError):
            viterbi_tree(pcfg.exact, pcfg.exact.best_chains, sentence, every)
        return
    found = posterior(pcfg, sentence, every)
    assert found.chart.inside.tobytes() == exact.chart.inside.tobytes()
    assert found.closed.tobytes() == exact.closed.tobytes()
    assert max_rule_tree(found) == max_rule_tree(exact)
    chains = pcfg.exact.best_chains
    assert viterbi_tree(pcfg.exact, chains, sentence, every) == viterbi_tree(pcfg.exact, chains, sentence)


@pytest.mark.long
@settings(max_examples=80, deadline=None)
@given(cases(max_size=5, grammars=st.builds(as_split, small_pcfgs(), st.integers(0, 3))), st.floats(1e-6, 0.3))
def test_symbols_are_left_out_where_their_parents_are_improbable(case: Case, threshold: float) -> None:
    fine, (sentence,) = case
    levels = parsing_levels(fine)
    if len(levels) != 2 or not expected_nodes(fine, sentence).any():
        return
    coarse, (_, finest) = levels[0].pcfg, levels
    expected = expected_nodes(coarse, sentence)
    if (np.abs(expected - threshold) < 1e-4 * threshold + 1e-7).any():
        return  # float32 may fall on either side
    pruning = CoarseToFine(levels, [threshold])
    ((_, first),) = pruning.expected([sentence])
    allowed = pruning.allowed(sentence, first)
    for span, row in enumerate(allowed):
        for symbol, is_allowed in enumerate(row):
            parent = finest.parent_of[symbol]
            assert is_allowed == (parent >= 0 and expected[span, parent] >= threshold)


def test_a_split_grammar_without_projections_is_parsed_whole_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    rules = {"S -> A B": 0.5, "S -> B A": 0.5, "A -> 'a'": 1.0, "B -> 'b'": 1.0}
    fine = as_split(PCFG.from_text("\n".join(f"{rule} [{p}]" for rule, p in rules.items())), 0)
    assert Parser(fine).prunes
    damaged = replace(fine, meta={**fine.meta, "split_trees": {"other": [0, 1]}})
    assert not Parser(damaged).prunes
    assert "has no split tree" in caplog.text
    caplog.clear()
    assert not Parser(replace(fine, meta={})).prunes
    assert not caplog.text


def test_thresholds_are_checked() -> None:
    levels = parsing_levels(as_split(DEEP, 0))
    for thresholds in ([], [0.0], [1.0], [0.1, math.nan]):
        with pytest.raises(InputError, match="between 0 and 1"):
            CoarseToFine(levels, thresholds)
