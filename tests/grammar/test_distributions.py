"""Full distributions of many sentences, against those of one prefix or sentence at a time and enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from distribution_rows import masked_rows, next_rows
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import cases, length_ranges
from reference_inference import derivations, rules_of

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.distributions import class_posteriors
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

Case = tuple[PCFG, list[list[str]]]
CHAINS = PCFG.from_text("S -> A 0.5 | a 0.5\nA -> a 0.4 | b 0.6")
TWO = PCFG.from_text("S -> S S 0.3 | a 0.4 | b 0.3")


@pytest.mark.long
@given(cases(most=4), st.one_of(st.none(), length_ranges(5)))
def test_next_token_rows_are_those_of_one_prefix(case: Case, lengths: LengthRange | None) -> None:
    pcfg, sentences = case
    if lengths is not None:
        assume(pcfg.exact.length_pmf(lengths.high)[lengths.low :].sum() > 0.0)
    for sentence, found in zip(sentences, next_rows(pcfg.exact, sentences, lengths), strict=True):
        assert len(found) == len(sentence) + 1
        for j, (row, possible, observed, _) in enumerate(found):
            assert observed == (pcfg.word_ids.get(sentence[j], -1) if j < len(sentence) else len(pcfg.vocabulary))
            try:
                wanted = pcfg.next_token(sentence[:j], lengths)
            except InputError:
                assert not possible
                assert not row.any()
                continue
            if not possible:  # a prefix that is a sentence's only beginning of too long ones has nothing after it
                assert wanted.probability.sum() + wanted.stop == 0.0
                continue
            np.testing.assert_allclose(row, [*wanted.probability, wanted.stop], rtol=1e-10, atol=1e-300)
            assert row.sum() == pytest.approx(1.0, rel=1e-10)


@pytest.mark.long
@given(cases(most=4))
def test_masked_rows_are_those_of_one_sentence(case: Case) -> None:
    pcfg, sentences = case
    for sentence, found in zip(sentences, masked_rows(pcfg.exact, sentences), strict=True):
        for j, (row, possible, _, _) in enumerate(found):
            try:
                wanted = pcfg.exact.masked(sentence, j)
            except InputError:
                assert not possible
                assert not row.any()
                continue
            assert possible
            np.testing.assert_allclose(row, wanted, rtol=1e-10, atol=1e-300)


@pytest.mark.long
@given(cases(most=3))
def test_what_stands_there_has_the_probability_of_the_scores(case: Case) -> None:
    pcfg, sentences = case
    for rows, scores in (
        (next_rows(pcfg.exact, sentences), pcfg.exact.causal_log_probs(sentences)),
        (masked_rows(pcfg.exact, sentences), pcfg.exact.masked_log_probs(sentences)),
    ):
        for found, score in zip(rows, scores, strict=True):
            np.testing.assert_allclose([row.log_observed for row in found], score, rtol=1e-10, atol=1e-12)


def tags(tree: Tree) -> list[str]:
    """The symbol over each word."""
    if all(isinstance(child, str) for child in tree.children):
        return [tree.label]
    return [tag for child in tree.children if isinstance(child, Tree) for tag in tags(child)]


@pytest.mark.long
@given(cases(max_size=4, unary_cycles=False))
def test_class_posteriors_are_shares_of_the_derivations(case: Case) -> None:
    pcfg, (sentence,) = case
    trees = derivations(rules_of(pcfg), sentence)
    found = class_posteriors(pcfg.exact, [sentence])[0]
    assert found.shape == (len(sentence), len(pcfg.symbols))
    if not trees:
        assert not found.any()
        return
    wanted = np.zeros_like(found)
    for tree, p in trees:
        for i, tag in enumerate(tags(tree)):
            wanted[i, pcfg.symbols.index(tag)] += p
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-14)
    two = [i % 2 for i in range(len(pcfg.symbols))]
    coarse = class_posteriors(pcfg.exact, [sentence], two)[0]
    np.testing.assert_allclose(coarse, [[r[0::2].sum(), r[1::2].sum()][: coarse.shape[1]] for r in wanted], atol=1e-12)


def test_classes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="a class of 0 or more for each of the 2 symbols"):
        class_posteriors(CHAINS.exact, [["a"]], [0])


@pytest.mark.long
def test_the_paper_variant_counts_a_derivation_once_for_each_symbol_of_its_chain() -> None:
    """'a' by S: 0.7 in all, by A below it 0.5 times 0.4 more; the exact share is 0.7."""
    ((literal,),) = masked_rows(CHAINS.exact, [["a"]], "paper")
    ((exact,),) = masked_rows(CHAINS.exact, [["a"]])
    np.testing.assert_allclose(literal.probability, [0.9 / 1.5, 0.6 / 1.5], rtol=1e-12)
    np.testing.assert_allclose(exact.probability, [0.7, 0.3], rtol=1e-12)
    score = CHAINS.exact.masked_log_probs([["a"]], variant="paper")[0]
    np.testing.assert_allclose(np.exp(score), [0.6], rtol=1e-12)


def test_a_small_memory_budget_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [["a"], ["b", "a"], ["a", "a"], ["a", "b", "b"], ["b"], ["a"]]
    wanted = next_rows(TWO.exact, sentences)
    monkeypatch.setattr("truesource.grammar.inference.batch.BUDGET", 1)
    for found, expected in zip(next_rows(TWO.exact, sentences), wanted, strict=True):
        np.testing.assert_allclose([r.probability for r in found], [r.probability for r in expected], rtol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("n", [1, 40, 200])
def test_float32_is_near_float64(n: int) -> None:
    rng = np.random.default_rng(n)
    sentences = [[str(w) for w in rng.choice(["a", "b"], size=n)] for _ in range(3)]
    for scores in (TWO.exact.causal_log_probs, TWO.exact.masked_log_probs):
        for one, other in zip(scores(sentences, dtype=np.float32), scores(sentences), strict=True):
            assert np.abs(one - other).max() < 1e-4
    wide = LengthRange(1, n + 2)
    for one, other in zip(
        TWO.exact.causal_log_probs(sentences, wide, dtype=np.float32),
        TWO.exact.causal_log_probs(sentences, wide),
        strict=True,
    ):
        assert np.abs(one - other).max() < 1e-4


def test_other_precisions_are_refused() -> None:
    for grammar in (TWO, CHAINS):  # by charts, and linear
        with pytest.raises(InputError, match="float64 or float32, not float16"):
            grammar.exact.causal_log_probs([["a"]], dtype=np.float16)


def test_a_rare_range_is_refused_in_float32_only() -> None:
    grammar = PCFG.from_text("S -> S S 0.0001 | a 0.9999")
    lengths = LengthRange(6, 6)
    assert np.isfinite(grammar.exact.causal_log_probs([["a"] * 6], lengths)[0]).all()
    with pytest.raises(InputError, match="too small for exact scores in float32"):
        grammar.exact.causal_log_probs([["a"] * 6], lengths, dtype=np.float32)


@pytest.mark.long
def test_masked_beside_an_unknown_word_of_a_very_long_sentence() -> None:
    """The columns after an impossible word are scaled too, so that nothing underflows."""
    found = TWO.masked(["a"] * 300 + ["never-seen"] + ["b"] * 900, 300)
    np.testing.assert_allclose(found, [4 / 7, 3 / 7], rtol=1e-10)
