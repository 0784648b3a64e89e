"""Linear grammars: what their automaton gives, against charts, against enumeration and against closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from chart_grammar import by_charts
from distribution_rows import Row, masked_rows, next_rows
from hypothesis import given
from hypothesis import strategies as st
from random_grammars import cases, length_ranges, linear_pcfgs, small_pcfgs
from reference_inference import all_strings, rules_of

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.estimate.inside_outside import expected_rule_counts
from truesource.grammar.inference.charts import Leaves, LinearCharts
from truesource.grammar.inference.distributions import class_posteriors
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

Case = tuple[PCFG, list[list[str]]]
LINEAR = cases(max_size=5, most=3, grammars=linear_pcfgs())
RANGES = st.none() | length_ranges(7)
RIGHT = "S -> T S 0.6 | U S 0.1 | a 0.3\nT -> a 0.5 | b 0.5\nU -> b 1"
LEFT = "S -> S T 0.6 | S U 0.1 | a 0.3\nT -> a 0.5 | b 0.5\nU -> b 1"


def close(found: FloatArray, wanted: FloatArray) -> None:
    """Equal within 1e-10: probabilities relatively, logarithms absolutely too."""
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.long
@given(linear_pcfgs())
def test_linear_grammars_are_recognised_and_their_tables_are_those_of_any_grammar(pcfg: PCFG) -> None:
    exact, chart = pcfg.exact, by_charts(pcfg).exact
    assert exact.linear is not None
    assert isinstance(exact.charts(), LinearCharts)
    np.testing.assert_allclose(exact.mass, chart.mass, rtol=1e-10)
    np.testing.assert_allclose(exact.unary_closure, chart.unary_closure, rtol=1e-10)
    np.testing.assert_allclose(exact.length_masses(9), chart.length_masses(9), rtol=1e-10)


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("S -> a 1", "right"),
        (RIGHT, "right"),
        (LEFT, "left"),
        ("S -> T U 0.5 | a 0.5\nT -> a 1\nU -> b 1", "right"),  # both
        ("S -> T A 1\nT -> U 1\nU -> T 0.5 | a 0.5\nA -> S 0.4 | b 0.6", "right"),
        ("S -> S S 0.3 | a 0.7", None),
        ("S -> T X 0.5 | a 0.5\nX -> S T 1\nT -> a 1", None),  # one side, then the other
        ("S -> T S 0.4 | a 0.6\nT -> U 1\nU -> V W 0.1 | a 0.9\nV -> a 1\nW -> b 1", None),  # a chain to two tokens
    ],
)
def test_a_grammar_is_linear_where_all_rules_go_down_one_side(text: str, side: str | None) -> None:
    linear = PCFG.from_text(text).exact.linear
    assert (linear and linear.side) == side


@pytest.mark.long
@given(small_pcfgs())
def test_charts_are_used_where_a_grammar_is_not_linear(pcfg: PCFG) -> None:
    """A child of one token has, by enumeration, no string of two or three."""
    strings = all_strings(rules_of(pcfg), 3)
    long = {name for name in pcfg.symbols if any(strings[name][2:])}
    rules = [[pcfg.symbols[x] for x in rule] for rule in pcfg.binary.tolist()]
    linear = not any(b in long for _, b, _ in rules) or not any(c in long for _, _, c in rules)
    assert isinstance(pcfg.exact.charts(), LinearCharts) == linear


@pytest.mark.long
@given(LINEAR, RANGES)
def test_causal_scores_are_those_of_the_charts(case: Case, lengths: LengthRange | None) -> None:
    pcfg, sentences = case
    exact, chart = pcfg.exact, by_charts(pcfg).exact
    if lengths is not None and not exact.length_masses(lengths.high)[lengths.low :, pcfg.start].any():
        for one in (exact, chart):
            with pytest.raises(InputError, match="no sentence of this grammar has a length"):
                one.causal_log_probs(sentences, lengths)
        return
    asked = [*sentences, ["a", "unknown", "a"], ["c"] * 8]
    for batch in chart.charts().batches(asked, lengths):
        found, wanted = (one.charts().causal(batch.words, lengths) for one in (exact, chart))
        for ours, theirs in zip(found, wanted, strict=True):
            close(ours, theirs)
        np.testing.assert_array_equal(found.whole, wanted.whole)
        last = exact.charts().causal(batch.words, lengths, first=len(batch.words))
        np.testing.assert_array_equal(last.starts, found.starts[-1:])
    close(exact.string_log_probs(asked, lengths), chart.string_log_probs(asked, lengths))
    single = exact.string_log_probs(asked, lengths, dtype=np.float32)  # computed in float64 all the same
    np.testing.assert_array_equal(single, exact.string_log_probs(asked, lengths))
    for sentence in asked:
        close(np.array(exact.prefix_log_prob(sentence, lengths)), np.array(chart.prefix_log_prob(sentence, lengths)))


def per_position(leaves: Leaves) -> FloatArray:
    largest = leaves.weights.max(axis=1, keepdims=True)
    return leaves.weights / np.where(largest > 0.0, largest, 1.0)


@pytest.mark.long
@given(LINEAR)
def test_masked_scores_are_those_of_the_charts(case: Case) -> None:
    """Weights around one impossible word, too: only the other words count there."""
    pcfg, sentences = case
    exact, chart = pcfg.exact, by_charts(pcfg).exact
    asked = [*sentences, ["a", "unknown", "a"], ["b", "c", "b", "a"]]
    for batch in chart.charts().batches(asked, outside=True):
        found, wanted = (one.charts().leaves(batch.words) for one in (exact, chart))
        np.testing.assert_array_equal(found.whole, wanted.whole)
        close(per_position(found), per_position(wanted))
    for variant in ("default", "paper"):
        for ours, theirs in zip(
            exact.masked_log_probs(asked, variant=variant), chart.masked_log_probs(asked, variant=variant), strict=True
        ):
            close(ours, theirs)
    for ours, theirs in zip(class_posteriors(exact, asked), class_posteriors(chart, asked), strict=True):
        close(ours, theirs)


def same(ours: list[list[Row]], theirs: list[list[Row]]) -> None:
    for one, other in zip(itertools.chain(*ours), itertools.chain(*theirs), strict=True):
        close(one.probability, other.probability)
        close(one.log_observed, other.log_observed)


@pytest.mark.long
@given(LINEAR, RANGES)
def test_full_distributions_are_those_of_the_charts(case: Case, lengths: LengthRange | None) -> None:
    pcfg, sentences = case
    exact, chart = pcfg.exact, by_charts(pcfg).exact
    if lengths is None or exact.length_masses(lengths.high)[lengths.low :, pcfg.start].any():
        same(next_rows(exact, sentences, lengths), next_rows(chart, sentences, lengths))
    same(masked_rows(exact, sentences), masked_rows(chart, sentences))


@pytest.mark.long
@given(LINEAR)
def test_expected_uses_of_rules_are_those_of_the_charts(case: Case) -> None:
    pcfg, sentences = case
    asked = [*sentences, *sentences[:1], ["a", "unknown"]]
    found, wanted = (expected_rule_counts(one, asked) for one in (pcfg, by_charts(pcfg)))
    for name in ("binary", "unary", "lexical", "log_probs"):
        close(getattr(found, name), getattr(wanted, name))
    assert found.impossible == wanted.impossible


@pytest.mark.long
@pytest.mark.parametrize("text", [RIGHT, LEFT])
def test_expected_uses_of_rules_in_ten_thousand_tokens(text: str) -> None:
    """Every b but the odd one at the end is of T or U, with odds 0.6 * 0.5 to 0.1."""
    pcfg, n = PCFG.from_text(text), 10_000
    sentence = ["b"] * (n - 1)
    found = expected_rule_counts(pcfg, [[*sentence, "a"] if text == RIGHT else ["a", *sentence]])
    by_t = [rule for rule, (_, *below) in enumerate(pcfg.binary.tolist()) if pcfg.symbol_ids["T"] in below]
    np.testing.assert_allclose(found.binary[by_t], [(n - 1) * 0.75], rtol=1e-12)
    assert found.lexical.sum() == pytest.approx(n, rel=1e-12)


@pytest.mark.long
@given(linear_pcfgs())
def test_string_probabilities_are_those_of_enumeration(pcfg: PCFG) -> None:
    tables = all_strings(rules_of(pcfg), 4)[pcfg.symbols[pcfg.start]]
    strings = {string: p for table in tables for string, p in table.items()}
    found = pcfg.exact.string_log_probs([list(s) for s in strings])
    np.testing.assert_allclose(np.exp(found), list(strings.values()), rtol=1e-10)


def walk(pcfg: PCFG, sentence: list[str]) -> float:
    """Ln P(sentence) of a right-linear grammar without unary rules: a plain forward recursion, scaled word by word."""
    p = np.exp
    emission, binary, log_scale = pcfg.exact.emission.toarray(), pcfg.binary, 0.0
    at = np.zeros(len(pcfg.symbols))
    at[pcfg.start] = 1.0
    for i, word in enumerate(pcfg.encode(sentence)):
        if i == len(sentence) - 1:
            return math.log(at @ emission[:, word]) + log_scale
        weight = at[binary[:, 0]] * p(pcfg.binary_logp) * emission[binary[:, 1], word]
        at = np.bincount(binary[:, 2], weight, minlength=len(at))
        log_scale += math.log(at.sum())
        at /= at.sum()
    raise AssertionError("a sentence has words")


@pytest.mark.long
@pytest.mark.parametrize(("text", "backwards"), [(RIGHT, 1), (LEFT, -1)])
def test_ten_thousand_tokens(text: str, backwards: int) -> None:
    """A left-linear grammar gives a string what its mirror gives the string reversed."""
    pcfg, rng = PCFG.from_text(text), np.random.default_rng(1)
    sentence = [*rng.choice(["a", "b"], 9_999).tolist(), "a"][::backwards]
    wanted = walk(PCFG.from_text(RIGHT), sentence[::backwards])
    exact, lengths = pcfg.exact, LengthRange(9_000, 10_000)
    assert exact.string_log_probs([sentence])[0] == pytest.approx(wanted, rel=1e-12)
    short = PCFG.from_text(text.replace("0.6", "0.8995").replace("0.3", "0.0005"))
    wanted = walk(PCFG.from_text(RIGHT.replace("0.6", "0.8995").replace("0.3", "0.0005")), sentence[::backwards])
    z = 0.9995**8_999 - 0.9995**10_000
    (scores,) = short.exact.causal_log_probs([sentence], lengths)
    assert scores.sum() == pytest.approx(wanted - math.log(z), rel=1e-10)
    (masked,) = exact.masked_log_probs([sentence])
    middle = 5_000
    changed = [*sentence[:middle], "b" if sentence[middle] == "a" else "a", *sentence[middle + 1 :]]
    own, other = exact.string_log_probs([sentence, changed])
    assert masked[middle] == pytest.approx(-math.log1p(math.exp(other - own)), rel=1e-8)
    following = exact.next_token(sentence)
    assert following.probability.sum() + following.stop == pytest.approx(1.0, rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("mirror", [False, True])
def test_a_lost_reading_comes_back(mirror: bool) -> None:
    """After 3,000 words the odds of two readings are 9^3000; the last word leaves the improbable one only."""
    text = "S -> T A 0.5 | T B 0.5\nA -> X A 0.9 | c 0.1\nB -> X B 0.1 | d 0.9\nT -> t 1\nX -> x 1"
    if mirror:
        text = text.replace("T A", "A T").replace("T B", "B T").replace("X A", "A X").replace("X B", "B X")
    exact, n = PCFG.from_text(text).exact, 3_000
    sentence = ["t", *["x"] * n, "d"][:: -1 if mirror else 1]
    assert exact.string_log_probs([sentence])[0] == pytest.approx(math.log(0.45) + n * math.log(0.1), rel=1e-12)
    (scores,) = exact.causal_log_probs([sentence])
    if not mirror:
        assert scores[-2] == pytest.approx(n * math.log(0.1 / 0.9) + math.log(0.9), rel=1e-12)
    masked = exact.masked_log_probs([sentence])[0][0 if mirror else -1]
    assert masked == pytest.approx(n * math.log(0.1 / 0.9) + math.log(0.9 / 0.1), rel=1e-12)
    tags = class_posteriors(exact, [sentence])[0][0 if mirror else -1]
    assert tags[exact.pcfg.symbol_ids["B"]] == 1.0


@pytest.mark.long
@pytest.mark.parametrize("flip", [False, True])
def test_mass_that_leaks_and_symbols_without_sentences(flip: bool) -> None:
    """D never ends, so S loses what comes to it; U makes no word."""
    text = "S -> T S 0.4 | T D 0.2 | U S 0.1 | a 0.3\nD -> T D 1\nT -> a 0.5 | b 0.5\nU -> U 1"
    if flip:
        text = text.replace("T S", "S T").replace("T D", "D T").replace("U S", "S U")
    pcfg = PCFG.from_text(text)
    exact, chart = pcfg.exact, by_charts(pcfg).exact
    assert isinstance(exact.charts(), LinearCharts)
    np.testing.assert_allclose(exact.mass, chart.mass, rtol=1e-12)
    assert exact.mass[pcfg.start] == pytest.approx(0.5)
    asked = [s[:: -1 if flip else 1] for s in (["a"], ["b", "a"], ["a", "b", "b", "a"])]
    for lengths in (None, LengthRange(2, 5)):
        close(exact.string_log_probs(asked, lengths), chart.string_log_probs(asked, lengths))
        for sentence in asked:
            found, wanted = exact.next_token(sentence, lengths), chart.next_token(sentence, lengths)
            close(found.probability, wanted.probability)
            close(found.states[exact.mass > 0.0], wanted.states[exact.mass > 0.0])
            assert found.stop == pytest.approx(wanted.stop, rel=1e-10)


def test_a_loop_that_is_never_left_is_refused() -> None:
    with pytest.raises(InputError, match="has probability 1 in float64"):
        PCFG.from_text("S -> S A 1 | a 1e-20\nA -> a 1").log_prob(["a", "a"])


@pytest.mark.long
def test_probabilities_that_float64_does_not_hold_are_left_to_the_charts() -> None:
    text = "S -> T S {p} | a {q}\nT -> a 1"
    assert PCFG.from_text(text.format(p="1e-100", q="1")).exact.linear is not None
    rules = PCFG.from_text(text.format(p="1e-305", q="1"))
    assert rules.exact.linear is None
    assert rules.log_prob(["a", "a"]) == pytest.approx(math.log(1e-305))
    chain = "S -> A 1e-200 | a 1\nA -> B 1e-200 | a 1\nB -> b 1"
    assert PCFG.from_text(chain).exact.linear is None
    assert PCFG.from_text(chain).log_prob(["b"]) == pytest.approx(2 * math.log(1e-200))
