"""String, prefix, next-token and length probabilities against enumeration of all strings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from chart_grammar import by_charts
from hypothesis import given
from hypothesis import strategies as st
from random_grammars import cases, sentences, small_pcfgs
from reference_inference import (
    all_strings,
    derivations,
    expected,
    joint,
    length_mass,
    long_log_prob,
    prefix_probability,
    rules_of,
    total_mass,
)

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

Case = tuple[PCFG, list[list[str]]]
BRACKETS = PCFG.from_text("S -> S S 0.3 | a 0.7")
FINITE = PCFG.from_text("S -> A B 0.7 | A 0.2 | s 0.1\nA -> B B 0.25 | B 0.25 | a 0.5\nB -> b 0.6 | a 0.4")
AMBIGUOUS = PCFG.from_text("S -> S S 0.25 | A S 0.2 | a 0.3 | b 0.25\nA -> A A 0.2 | S A 0.1 | a 0.4 | c 0.3")


def every_string(pcfg: PCFG, high: int) -> list[tuple[str, ...]]:
    return [s for m in range(1, high + 1) for s in itertools.product(pcfg.vocabulary, repeat=m)]


def possible_prefixes(pcfg: PCFG, high: int) -> list[tuple[str, ...]]:
    """Prefixes of up to ``high`` words of the strings of up to ``high + 1`` words."""
    strings = all_strings(rules_of(pcfg), high + 1)[pcfg.symbols[pcfg.start]]
    return sorted({s[:k] for table in strings for s in table for k in range(high + 1)})


# -- strings ----------------------------------------------------------------------------------------


@pytest.mark.long
@given(small_pcfgs())
def test_string_probability_is_that_of_enumeration(pcfg: PCFG) -> None:
    strings = all_strings(rules_of(pcfg), 4)[pcfg.symbols[pcfg.start]]
    asked = list(dict.fromkeys([*every_string(pcfg, 3), *strings[4]]))
    wanted = [strings[len(s)].get(s, 0.0) for s in asked]
    np.testing.assert_allclose(np.exp(pcfg.exact.string_log_probs(asked)), wanted, rtol=1e-10, atol=0.0)


@pytest.mark.long
@given(cases(max_size=3, max_symbols=3, unary_cycles=False))
def test_string_probability_is_the_sum_over_all_derivations(case: Case) -> None:
    pcfg, (sentence,) = case
    wanted = math.fsum(p for _, p in derivations(rules_of(pcfg), sentence))
    assert math.exp(pcfg.log_prob(sentence)) == pytest.approx(wanted, rel=1e-10, abs=0.0)


@pytest.mark.parametrize(("n", "catalan"), [(1, 1), (2, 1), (3, 2), (4, 5), (5, 14), (8, 429)])
def test_bracketing_grammar_counts_binary_trees(n: int, catalan: int) -> None:
    """S -> S S (0.3) | a (0.7) gives P(a^n) = C(n-1) 0.3^(n-1) 0.7^n; C is OEIS A000108."""
    wanted = catalan * 0.3 ** (n - 1) * 0.7**n
    assert math.exp(BRACKETS.log_prob(["a"] * n)) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.long
@given(cases(most=12), st.randoms(use_true_random=False))
def test_a_score_does_not_depend_on_the_rest_of_the_batch(case: Case, random: object) -> None:
    pcfg, batch = case
    alone = [pcfg.exact.causal_log_probs([s])[0] for s in batch]
    masked_alone = [pcfg.exact.masked_log_probs([s])[0] for s in batch]
    order = [*range(len(batch)), *range(len(batch))]  # every sentence twice
    random.shuffle(order)  # type: ignore[attr-defined]
    together = pcfg.exact.causal_log_probs([batch[i] for i in order])
    masked_together = pcfg.exact.masked_log_probs([batch[i] for i in order])
    for place, i in enumerate(order):
        np.testing.assert_allclose(together[place], alone[i], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(masked_together[place], masked_alone[i], rtol=1e-12, atol=1e-14)


def test_many_sentences_of_many_lengths_come_back_in_order() -> None:
    rng = np.random.default_rng(3)
    batch = [[str(w) for w in rng.choice(["a", "b", "c"], size=rng.integers(1, 9))] for _ in range(300)]
    found = AMBIGUOUS.exact.string_log_probs(batch)
    strings = all_strings(rules_of(AMBIGUOUS), 6)["S"]
    for sentence, value in zip(batch, found, strict=True):
        if len(sentence) <= 6:
            assert math.exp(value) == pytest.approx(strings[len(sentence)].get(tuple(sentence), 0.0), rel=1e-10, abs=0)


def test_a_small_memory_budget_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = [list(s) for s in every_string(AMBIGUOUS, 4)]
    whole = AMBIGUOUS.exact.string_log_probs(batch)
    monkeypatch.setattr("truesource.grammar.inference.batch.BUDGET", 1)
    np.testing.assert_allclose(AMBIGUOUS.exact.string_log_probs(batch), whole, rtol=1e-12)


# -- lengths ----------------------------------------------------------------------------------------


@pytest.mark.long
@given(small_pcfgs())
def test_strings_of_a_length_sum_to_the_length_pmf(pcfg: PCFG) -> None:
    rules = rules_of(pcfg)
    strings = all_strings(rules, 4)[rules.start]
    pmf = pcfg.exact.length_pmf(4)
    np.testing.assert_allclose(pmf, [math.fsum(table.values()) for table in strings], rtol=1e-10, atol=0.0)
    np.testing.assert_allclose(pmf, length_mass(rules, 4), rtol=1e-10, atol=0.0)


def test_the_length_pmf_sums_to_one_and_has_the_exact_mean() -> None:
    pmf = AMBIGUOUS.exact.length_pmf(1500)
    assert pmf.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.arange(1501) @ pmf == pytest.approx(AMBIGUOUS.exact.mean_length, rel=1e-10)


# -- prefixes and next tokens -----------------------------------------------------------------------


@pytest.mark.long
@given(small_pcfgs())
def test_next_token_and_stop_sum_to_one_at_every_possible_prefix(pcfg: PCFG) -> None:
    for prefix in possible_prefixes(pcfg, 3):
        found = pcfg.next_token(prefix)
        assert found.probability.min() >= 0.0
        assert found.stop >= 0.0
        assert found.probability.sum() + found.stop == pytest.approx(1.0, rel=1e-10), prefix


@pytest.mark.long
@given(cases(max_size=5), st.integers(1, 5))
def test_prefix_probability_is_that_of_the_backward_recursion(case: Case, size: int) -> None:
    pcfg, (sentence,) = case
    prefix = sentence[:size]
    wanted = prefix_probability(rules_of(pcfg), prefix)
    assert math.exp(pcfg.prefix_log_prob(prefix)) == pytest.approx(wanted, rel=1e-10, abs=0.0)


@pytest.mark.long
@given(small_pcfgs(max_words=3))
def test_next_token_distribution_is_the_ratio_of_prefix_probabilities(pcfg: PCFG) -> None:
    rules = rules_of(pcfg)
    for prefix in possible_prefixes(pcfg, 2):
        found = pcfg.next_token(prefix)
        whole = prefix_probability(rules, prefix)
        wanted = [prefix_probability(rules, [*prefix, w]) / whole for w in found.words]
        np.testing.assert_allclose(found.probability, wanted, rtol=1e-10, atol=0.0)
        stop = joint(rules, prefix) / whole if prefix else 0.0
        assert found.stop == pytest.approx(stop, rel=1e-10, abs=0.0)


@pytest.mark.long
@given(small_pcfgs())
def test_prefix_probability_is_the_sum_over_its_continuations(pcfg: PCFG) -> None:
    """P(prefix) = P(prefix as a sentence) + sum over words of P(prefix word), all by our own inference."""
    for prefix in possible_prefixes(pcfg, 2):
        parts = [pcfg.prefix_log_prob([*prefix, w]) for w in pcfg.vocabulary]
        if prefix:
            parts.append(pcfg.log_prob(prefix))
        assert np.exp(parts).sum() == pytest.approx(math.exp(pcfg.prefix_log_prob(prefix)), rel=1e-10)


@pytest.mark.long
@given(cases(max_size=5, most=4))
def test_causal_scores_are_ratios_of_prefix_probabilities(case: Case) -> None:
    pcfg, batch = case
    rules = rules_of(pcfg)
    for sentence, scores in zip(batch, pcfg.exact.causal_log_probs(batch), strict=True):
        assert scores.shape == (len(sentence) + 1,)
        before = prefix_probability(rules, [])
        for j, score in enumerate(scores):
            whole = j == len(sentence)
            after = joint(rules, sentence) if whole else prefix_probability(rules, sentence[: j + 1])
            if after == 0.0:
                assert (scores[j:] == -np.inf).all()
                break
            assert math.exp(score) == pytest.approx(after / before, rel=1e-10)
            before = after


@pytest.mark.long
@given(small_pcfgs())
def test_expected_symbols_that_start_next_count_every_left_corner(pcfg: PCFG) -> None:
    """The weight of each symbol at the very start, by iteration of the left-corner steps from the start symbol."""
    rules = rules_of(pcfg)
    mass = total_mass(rules)
    weight = dict.fromkeys(rules.symbols, 0.0)
    for _ in range(20_000):
        new = {a: float(a == rules.start) for a in rules.symbols}
        for a, b, p in rules.unary:
            new[b] += p * weight[a]
        for a, b, c, p in rules.binary:
            new[b] += p * mass[c] * weight[a]
        if all(abs(new[a] - weight[a]) <= 1e-15 * new[a] for a in new):
            break
        weight = new
    np.testing.assert_allclose(pcfg.next_token([]).states, [weight[a] for a in pcfg.symbols], rtol=1e-10, atol=0.0)


# -- expected counts --------------------------------------------------------------------------------


@pytest.mark.long
@given(small_pcfgs())
def test_expected_words_and_mean_length_are_those_of_iteration(pcfg: PCFG) -> None:
    rules = rules_of(pcfg)
    for word, found in zip(pcfg.vocabulary, pcfg.exact.expected_words, strict=True):
        gain = {a: math.fsum(p for left, w, p in rules.lexical if (left, w) == (a, word)) for a in rules.symbols}
        assert found == pytest.approx(expected(rules, gain), rel=1e-10, abs=1e-300)
    gain = {a: math.fsum(p for left, _, p in rules.lexical if left == a) for a in rules.symbols}
    assert pcfg.exact.mean_length == pytest.approx(expected(rules, gain), rel=1e-10)


def test_expected_words_are_the_sum_over_all_strings_of_a_finite_language() -> None:
    strings = {s: p for table in all_strings(rules_of(FINITE), 4)["S"] for s, p in table.items()}
    assert math.fsum(strings.values()) == pytest.approx(1.0, rel=1e-12)
    for word, found in zip(FINITE.vocabulary, FINITE.exact.expected_words, strict=True):
        assert found == pytest.approx(math.fsum(p * s.count(word) for s, p in strings.items()), rel=1e-12)
    assert FINITE.exact.mean_length == pytest.approx(math.fsum(p * len(s) for s, p in strings.items()), rel=1e-12)


# -- vocabulary -------------------------------------------------------------------------------------


@pytest.mark.long
@given(small_pcfgs(), st.sets(st.sampled_from("abcd")))
def test_collapsing_sums_the_strings_that_read_the_same(pcfg: PCFG, vocabulary: set[str]) -> None:
    strings = all_strings(rules_of(pcfg), 3)[pcfg.symbols[pcfg.start]]
    wanted: dict[tuple[str, ...], float] = {}
    for table in strings:
        for s, p in table.items():
            read = tuple(w if w in vocabulary else "<unk>" for w in s)
            wanted[read] = wanted.get(read, 0.0) + p
    collapsed = pcfg.collapse(vocabulary)
    asked = every_string(collapsed, 3)
    found = np.exp(collapsed.exact.string_log_probs(asked))
    np.testing.assert_allclose(found, [wanted.get(s, 0.0) for s in asked], rtol=1e-10, atol=0.0)
    np.testing.assert_allclose(collapsed.exact.length_pmf(6), pcfg.exact.length_pmf(6), rtol=1e-10, atol=0.0)


# -- long sentences ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PCFG.of, by_charts])
def test_200_tokens_of_a_right_recursive_grammar_have_their_closed_form(kind: Callable[[PCFG], PCFG]) -> None:
    grammar = kind(PCFG.from_text("S -> A S 0.9 | a 0.04 | b 0.06\nA -> a 0.7 | b 0.3"))
    sentence = ["a", "b"] * 100
    inner = 100 * math.log(0.7) + 99 * math.log(0.3)
    wanted = 199 * math.log(0.9) + inner + math.log(0.06)
    scores = grammar.exact.causal_log_probs([sentence])[0]
    assert scores.sum() == pytest.approx(wanted, rel=1e-12)
    # each word: goes on with it, or ends with it
    assert scores[0] == pytest.approx(math.log(0.9 * 0.7 + 0.04), rel=1e-12)
    masked = grammar.exact.masked_log_probs([sentence])[0]
    np.testing.assert_allclose(masked[:-1], np.log([0.7, 0.3] * 100)[:-1], rtol=1e-12)
    assert masked[-1] == pytest.approx(math.log(0.6), rel=1e-12)


@pytest.mark.parametrize("n", [200, 350])
def test_long_bracketing_sentences_do_not_underflow(n: int) -> None:
    catalan = math.lgamma(2 * n - 1) - math.lgamma(n) - math.lgamma(n + 1)  # ln C(n-1)
    wanted = catalan + (n - 1) * math.log(0.3) + n * math.log(0.7)
    assert BRACKETS.log_prob(["a"] * n) == pytest.approx(wanted, rel=1e-11)


@pytest.mark.long
def test_200_tokens_of_an_ambiguous_grammar_against_log_space() -> None:
    rng = np.random.default_rng(1)
    sentence = [str(w) for w in rng.choice(["a", "b", "c"], size=199)] + ["b"]
    wanted = long_log_prob(rules_of(AMBIGUOUS), sentence)
    scores = AMBIGUOUS.exact.causal_log_probs([sentence])[0]
    assert np.isfinite(scores).all()
    assert scores.sum() == pytest.approx(wanted, rel=1e-11)


@pytest.mark.long
@pytest.mark.parametrize("extra", ["B -> B B 0.5 | a 0.5", "B -> A B 0.5 | b 0.5"])
def test_a_symbol_that_cannot_start_here_never_overflows(extra: str) -> None:
    """B makes a's at once, S only at 1e-10 each: scaled to the sentence, B's share of the chart is 1e2000."""
    share = "0.9999999998 | B a 0.0000000001" if extra.startswith("B -> A") else "0.9999999999"
    text = f"S -> A S 0.9 | a 0.0000000001 | b 0.0999999999\nA -> a 0.0000000001 | b {share}"
    grammar = by_charts(PCFG.from_text(f"{text}\n{extra}".replace("B a", "B A")))
    sentence = ["a"] * 200
    assert grammar.log_prob(sentence) == pytest.approx(long_log_prob(rules_of(grammar), sentence), rel=1e-10)
    assert np.isfinite(grammar.exact.masked_log_probs([sentence])[0]).all()


# -- edges ------------------------------------------------------------------------------------------


def test_a_sentence_of_one_token() -> None:
    scores = BRACKETS.exact.causal_log_probs([["a"]])[0]
    # the first word is certain; 'a' alone has probability 0.7
    np.testing.assert_allclose(np.exp(scores), [1.0, 0.7], rtol=1e-12)


@pytest.mark.long
@given(cases(), st.integers(0, 4), sentences(max_size=2))
def test_an_unknown_word_is_impossible_and_never_nan(case: Case, at: int, right: list[str]) -> None:
    pcfg, (left,) = case
    sentence = [*left[:at], "never-seen", *right]
    place = len(left[:at])
    scores = pcfg.exact.causal_log_probs([sentence])[0]
    assert not np.isnan(scores).any()
    assert (scores[place:] == -np.inf).all()
    known = pcfg.exact.causal_log_probs([left])[0]
    np.testing.assert_allclose(scores[:place], known[:place], rtol=1e-12, atol=1e-14)
    assert pcfg.log_prob(sentence) == -math.inf
    assert pcfg.prefix_log_prob(sentence) == -math.inf
    masked = pcfg.exact.masked_log_probs([sentence])[0]
    assert (masked == -np.inf).all()
    with pytest.raises(InputError, match="no sentence starts with"):
        pcfg.next_token(sentence)


def test_a_prefix_that_no_sentence_has_names_the_word_at_fault() -> None:
    with pytest.raises(InputError, match="no sentence starts with 'a s': 's' is impossible there"):
        FINITE.next_token(["a", "s", "a"])


@pytest.mark.parametrize("method", ["causal_log_probs", "masked_log_probs", "string_log_probs"])
def test_a_sentence_without_tokens_is_refused(method: str) -> None:
    with pytest.raises(InputError, match="sentence 2 has no tokens"):
        getattr(BRACKETS.exact, method)([["a"], []])


@pytest.mark.parametrize("method", ["causal_log_probs", "masked_log_probs"])
def test_no_sentences_give_no_scores(method: str) -> None:
    assert getattr(BRACKETS.exact, method)([]) == []


def test_top_lists_the_most_probable_words_first() -> None:
    top = AMBIGUOUS.next_token([]).top(2)
    probability = dict(zip(AMBIGUOUS.vocabulary, AMBIGUOUS.next_token([]).probability, strict=True))
    assert [word for word, _ in top] == sorted(probability, key=lambda w: -probability[w])[:2]
    assert top[0][1] == probability[top[0][0]]


# -- grammars that leak -----------------------------------------------------------------------------


LEAKING = PCFG.from_text("S -> S S 0.6 | a 0.3 | b 0.1")


def test_a_leaking_grammar_gives_its_mass_to_the_empty_prefix() -> None:
    first = LEAKING.next_token([])
    assert math.exp(LEAKING.prefix_log_prob([])) == pytest.approx(2 / 3, rel=1e-12)
    assert first.probability.sum() + first.stop == pytest.approx(2 / 3, rel=1e-12)
    later = LEAKING.next_token(["a", "b"])
    assert later.probability.sum() + later.stop == pytest.approx(1.0, rel=1e-12)
    for prefix in (["a"], ["b", "a"]):
        wanted = prefix_probability(rules_of(LEAKING), prefix)
        assert math.exp(LEAKING.prefix_log_prob(prefix)) == pytest.approx(wanted, rel=1e-10)


@pytest.mark.long
@pytest.mark.parametrize("text", ["S -> S S 1.0", "S -> A 1.0\nA -> S 1.0", "S -> S S 0.5 | S 0.5"])
def test_a_grammar_without_any_sentence_gives_probability_zero(text: str) -> None:
    grammar = PCFG.from_text(text)
    assert grammar.prefix_log_prob([]) == -math.inf
    assert grammar.log_prob(["a"]) == -math.inf


@pytest.mark.parametrize("idle", ["B -> B S 1.0", "B -> B 1.0", "B -> C 1.0\nC -> B 0.3 | B B 0.7"])
def test_symbols_without_a_derivation_do_no_harm(idle: str) -> None:
    grammar = PCFG.from_text(f"S -> S S 0.3 | a 0.6 | S B 0.1\n{idle}")
    whole = rules_of(grammar)
    # the same language: rules with a symbol that derives nothing never complete
    rules = replace(whole, symbols=("S",), binary=tuple(r for r in whole.binary if r[:3] == ("S", "S", "S")), unary=())
    assert math.exp(grammar.log_prob(["a"] * 3)) == pytest.approx(joint(rules, ["a"] * 3), rel=1e-12)
    assert math.exp(grammar.prefix_log_prob(["a"])) == pytest.approx(prefix_probability(rules, ["a"]), rel=1e-10)
    assert grammar.exact.length_pmf(3) == pytest.approx(length_mass(rules, 3), rel=1e-12)
    found = grammar.next_token(["a"])
    assert found.probability.sum() + found.stop == pytest.approx(1.0, rel=1e-12)


def test_the_finite_grammar_ends_after_its_longest_string() -> None:
    last = FINITE.next_token(["b", "b", "b"])
    assert last.stop == pytest.approx(1.0, rel=1e-12)
    assert last.probability.sum() == 0.0
