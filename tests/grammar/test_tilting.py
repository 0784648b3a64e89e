"""Tilted grammars, against sums over strings and against each other."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, derivations, rules_of
from scipy.stats import binomtest

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.tilting.partitions import coarsest_partition
from truesource.grammar.tilting.patterns import compile_pattern
from truesource.grammar.tilting.product import product
from truesource.grammar.tilting.rewards import Count, Event, File, Pattern, Reward, RewardAutomaton, Sum, Words
from truesource.grammar.tilting.tilt import Tilting, power, tilt

String = tuple[str, ...]
CONES = PCFG.from_text("S -> S S 0.2 | A 0.3 | b 0.5\nA -> a A 0.4 | c 0.6")


def strings_of(pcfg: PCFG, high: int) -> dict[String, float]:
    """p(string) of all strings up to some length."""
    return {s: p for table in all_strings(rules_of(pcfg), high)[pcfg.symbols[pcfg.start]] for s, p in table.items()}


@dataclass(frozen=True)
class Drawn(Reward):
    """An automaton drawn at random."""

    states: int
    seed: int

    @property
    def spec(self) -> str:
        return f"drawn {self.seed}"

    def automaton(self, pcfg: GrammarRules) -> RewardAutomaton:
        rng = np.random.default_rng(self.seed)
        shape = self.states, len(pcfg.vocabulary)
        step = rng.integers(0, self.states, shape).astype(np.int32)
        return RewardAutomaton(
            int(rng.integers(self.states)),
            step,
            -rng.integers(0, 3, shape) / 2.0,
            rng.integers(-2, 3, self.states) / 1.0,
        )


drawn = st.builds(Drawn, st.integers(1, 4), st.integers(0, 10_000))


@pytest.mark.long
@given(small_pcfgs(), drawn, st.sampled_from([0.5, 1.0, 3.0]), length_ranges(5))
def test_a_tilted_grammar_is_the_tilted_law_of_strings(pcfg: PCFG, reward: Drawn, beta: float, lengths: LengthRange):
    strings = {s: p for s, p in strings_of(pcfg, lengths.high).items() if len(s) in lengths}
    assume(strings)
    before = math.fsum(strings.values())
    earned = dict(zip(strings, reward(pcfg, list(strings)).tolist(), strict=True))
    weight = {s: p * math.exp(earned[s] / beta) for s, p in strings.items()}
    z = math.fsum(weight.values())
    tilted = Tilting(pcfg, reward).at(beta)
    logs = tilted.pcfg.exact.string_log_probs(list(strings), lengths)
    np.testing.assert_allclose(np.exp(logs), [w / z for w in weight.values()], atol=1e-12, rtol=1e-10)
    mean = math.fsum(w / z * earned[s] for s, w in weight.items())
    assert tilted.log_partition(lengths) == pytest.approx(math.log(z / before), abs=1e-10)
    assert tilted.expected_reward(lengths) == pytest.approx(mean, abs=1e-10)
    kl = math.fsum(w / z * math.log(w / z / (strings[s] / before)) for s, w in weight.items())
    assert tilted.kl(lengths) == pytest.approx(kl, abs=1e-10)
    prefixes = sorted({s[:i] for s in strings for i in range(len(s) + 1)})[:6]
    wanted = [
        math.log(
            math.fsum(w for s, w in weight.items() if s[: len(x)] == x)
            / math.fsum(p for s, p in strings.items() if s[: len(x)] == x)
        )
        for x in prefixes
    ]
    np.testing.assert_allclose(tilted.log_twists(prefixes, lengths), wanted, atol=1e-9)


@pytest.mark.long
@given(small_pcfgs(unary_cycles=False), drawn)
def test_the_derivative_of_ln_z_is_the_expected_reward(pcfg: PCFG, reward: Drawn):
    tilting, h = Tilting(pcfg, reward), 1e-4
    try:
        low, middle, high = (tilting.at(1.0 / scale) for scale in (0.3 - h, 0.3, 0.3 + h))
    except InputError as error:
        assert error.code == "infinite-sum"
        return
    assume(middle.pcfg.exact.spectral_radius < 0.95)
    assert (high.log_z - low.log_z) / (2 * h) == pytest.approx(middle.expected_reward(), abs=1e-4)
    assert middle.kl() == pytest.approx(0.3 * middle.expected_reward() - middle.log_partition(), abs=1e-12)


@pytest.mark.long
@given(small_pcfgs(), length_ranges(4))
def test_a_length_is_an_event_like_any_other(pcfg: PCFG, lengths: LengthRange):
    event = Pattern(f". {{{lengths.low},{lengths.high}}}")
    if not any(len(s) in lengths for s in strings_of(pcfg, lengths.high)):
        with pytest.raises(InputError, match="no sentence"):
            tilt(pcfg, event)
        return
    given_length = tilt(pcfg, event)
    assert given_length.log_z == pytest.approx(math.log(pcfg.exact.range_mass(lengths)), abs=1e-10)
    texts = list(strings_of(pcfg, lengths.high))
    inside = [s for s in texts if len(s) in lengths]
    np.testing.assert_allclose(
        given_length.pcfg.exact.string_log_probs(inside), pcfg.exact.string_log_probs(inside, lengths), atol=1e-10
    )
    assert given_length.pcfg.exact.total_mass == pytest.approx(1.0, abs=1e-10)


@pytest.mark.long
@given(small_pcfgs(), st.integers(0, 2), st.integers(0, 2))
def test_an_event_and_its_opposite_share_all_sentences(pcfg: PCFG, low: int, more: int):
    tilting = Tilting(pcfg, Count((pcfg.vocabulary[0],), low, low + more))
    masses = []
    for holds in (True, False):
        try:
            masses.append(math.exp(tilting.given(holds=holds).log_z))
        except InputError as error:
            assert "no sentence" in str(error)
    assert math.fsum(masses) == pytest.approx(pcfg.exact.total_mass, abs=1e-9)


@pytest.mark.long
def test_an_event_gets_the_probability_that_is_asked_for():
    tilting = Tilting(CONES, Count(("c",), 1, None))
    for wanted in (0.01, 0.3, 0.9):
        tilted = tilting.with_probability(wanted)
        assert tilted.expected_reward() == pytest.approx(wanted, abs=1e-12)
        assert math.exp(tilt(tilted.pcfg, tilting.reward).log_z) == pytest.approx(wanted, abs=1e-12)
        odds = math.exp(tilting.given().log_z)
        kl = wanted * math.log(wanted / odds) + (1 - wanted) * math.log((1 - wanted) / (1 - odds))
        assert tilted.kl() == pytest.approx(kl, abs=1e-12)


@pytest.mark.long
@given(small_pcfgs(), length_ranges(), st.floats(0.01, 0.99))
def test_an_event_gets_its_probability_in_sentences_of_a_range_of_lengths(pcfg, lengths, wanted):
    event = Count((pcfg.vocabulary[0],), 1, None)
    texts = [(s, p) for s, p in strings_of(pcfg, lengths.high).items() if len(s) in lengths]
    shares = [math.fsum(p for s, p in texts if (pcfg.vocabulary[0] in s) == holds) for holds in (True, False)]
    assume(min(shares) > 1e-6)
    before = shares[0] / sum(shares)
    assert Tilting(pcfg, event).event_probability(lengths) == pytest.approx(before, abs=1e-10)
    assume(abs(wanted - before) > 1e-6)
    tilted = Tilting(pcfg, event).with_probability(wanted, lengths)
    assert Tilting(tilted.pcfg, event).event_probability(lengths) == pytest.approx(wanted, abs=1e-10)
    assert tilted.expected_reward(lengths) == pytest.approx(wanted, abs=1e-10)
    odds = wanted / before, (1.0 - wanted) / (1.0 - before)  # all else stays in proportion
    total = pcfg.exact.range_mass(lengths)
    some = [text for text, _ in texts][:20]
    expected = [math.log(p * odds[pcfg.vocabulary[0] not in s] / total) for s, p in texts][:20]
    found = tilted.pcfg.exact.string_log_probs(some, lengths)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_tilting_by_nothing_is_the_grammar_itself():
    tilted = Tilting(CONES, Words({"a": 0.0})).at(1.0)
    assert tilted.log_z == pytest.approx(0.0, abs=1e-13)
    assert tilted.kl() == pytest.approx(0.0, abs=1e-13)
    texts = [["b"], ["a", "c", "b"], ["c", "c", "b"]]
    np.testing.assert_allclose(
        tilted.pcfg.exact.string_log_probs(texts), CONES.exact.string_log_probs(texts), atol=1e-13
    )


@pytest.mark.long
def test_tilts_add_up():
    """Tilting twice is tilting by the sum; what follows only from the sums of both automata."""
    one, other = Words({"a": -0.5, "b": 0.1}), Count(("c",), 2, 3)
    once = Tilting(CONES, Sum((one, other))).at(2.0)
    first = Tilting(CONES, one).at(2.0)
    twice = Tilting(first.pcfg, other).at(2.0)
    assert first.log_z + twice.log_z == pytest.approx(once.log_z, abs=1e-12)
    texts = [["b"], ["a", "c", "c", "b"], ["c", "c", "b", "c", "c"]]
    np.testing.assert_allclose(
        once.pcfg.exact.string_log_probs(texts), twice.pcfg.exact.string_log_probs(texts), atol=1e-12
    )
    np.testing.assert_allclose(Sum((one, other))(CONES, texts), [0.1, -0.5 + 1 + 0.1, 0.1], atol=1e-15)


@pytest.mark.long
@given(small_pcfgs(unary_cycles=False), st.sampled_from([1.0, 1.5, 3.0]))
def test_a_power_is_that_of_derivations(pcfg: PCFG, exponent: float):
    tilted = power(pcfg, exponent)
    for s in list(strings_of(pcfg, 3))[:5]:
        trees = [p for _, p in derivations(rules_of(pcfg), s)]
        wanted = math.log(math.fsum(p**exponent for p in trees)) - tilted.log_z
        assert tilted.pcfg.log_prob(s) == pytest.approx(wanted, abs=1e-10)


def test_a_power_of_an_unambiguous_grammar_is_that_of_its_strings():
    chain = PCFG.from_text("S -> a S 0.5 | b S 0.2 | c 0.3")
    tilted = power(chain, 2.0)
    assert tilted.log_z == pytest.approx(math.log(0.09 / (1 - 0.25 - 0.04)), abs=1e-13)
    assert tilted.pcfg.log_prob(["a", "b", "c"]) == pytest.approx(
        2 * math.log(0.5 * 0.2 * 0.3) - tilted.log_z, abs=1e-13
    )
    with pytest.raises(InputError) as refused:
        power(PCFG.from_text("S -> S S 0.45 | a 0.55"), 0.5)
    assert refused.value.code == "infinite-sum"


@given(
    st.recursive(
        st.sampled_from(["a", "b", ".", "[^a]", "[^a b]"]),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(" ".join),
            st.tuples(inner, inner).map(lambda pair: f"({pair[0]} | {pair[1]})"),
            st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}"])).map(
                lambda pair: f"({pair[0]}){pair[1]}"
            ),
        ),
        max_leaves=5,
    )
)
def test_expressions_match_what_those_of_python_match(expression: str):
    words, step, accepting = compile_pattern(expression)
    python = re.compile(expression.replace(" ", ""))
    for n in range(5):
        for text in itertools.product("abc", repeat=n):
            state = 0
            for word in text:
                state = step[state, words.index(word) if word in words else -1]
            assert bool(accepting[state]) == (python.fullmatch("".join(text)) is not None)


def test_quoted_words_are_words():
    words, step, accepting = compile_pattern(r"'.' [^'*' the] 'don\'t'")
    assert words == [".", "*", "the", "don't"]
    at = 0
    for column in (0, 4, 3):
        at = step[at, column]
    assert accepting[at]


@pytest.mark.parametrize("text", ["(", "a)", "[]", "a ^ b", "* a", "a{3,1}", "'", "[^]", "a - ]"])
def test_what_is_no_expression_is_refused(text: str):
    with pytest.raises(InputError, match="regular expression"):
        compile_pattern(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(.* dog", r"'\(\.\* dog'; a \( is not closed; write"),
        ("((a b", r"2 \( are not closed"),
        ("a) b", r"a \) closes no \("),
        ("a [^b c", r"no regular expression over words: 'a \[\^b c', at '\[\^b c'; close \[ with \]"),
        ("a{2", r"no regular expression over words: 'a\{2', at '\{2'; close \{ with \}"),
        ("'a", "no regular expression over words: .'a., at .'a.; close ' with '"),
        ("* a", r"\* follows no part that it can repeat"),
        ("a - ]", "single quotes"),
    ],
)
def test_a_refusal_names_the_sign(text: str, message: str):
    with pytest.raises(InputError, match=message):
        compile_pattern(text)


LONG = ["(" * 3000, "a [" + "b " * 3000, "a{9999} " * 500, ". " * 4000, ".* a .{30} (b|c)*" + " " * 999]


@pytest.mark.parametrize("text", LONG)
def test_long_expressions_are_quoted_in_part(text: str):
    with pytest.raises(InputError) as refused:
        compile_pattern(text)
    assert len(str(refused.value)) < 450
    assert f"({len(text):,} characters)" in str(refused.value)


def test_no_sentence_satisfies_a_long_expression():
    with pytest.raises(InputError, match=r"no sentence .* satisfies '.*' \.\.\. '.*' \(4,000 characters\)"):
        Tilting(CONES, Pattern("(" * 1996 + "[^a b c]" + ")" * 1996)).given()


def test_counts_without_an_end_are_named_so():
    with pytest.raises(InputError, match=r"got 1,000,000,000 or more$"):
        Count.parse("c>=1000000000")
    with pytest.raises(InputError, match=r"got 3 to 2$"):
        Count.parse("c=3..2")


@pytest.mark.parametrize(
    "expression",
    [
        ".* the .{30}",
        "the{1,100000}",
        "the{99999999999999999999999999}",
        "((the{1000}){1000}){1000}",
        "(the? a?){5000}",
        "the{%s}" % ("9" * 5000),
    ],
)
def test_an_expression_of_too_many_states_is_refused(expression: str):
    with pytest.raises(InputError) as refused:
        compile_pattern(expression)
    assert refused.value.code == "too-many-rules"


@pytest.mark.parametrize(
    ("expression", "states"),
    [
        (".* the .{7}", 2**8),
        ("the{1,300}", 302),
        ("(the? a?){200}", 402),
        ("(" * 1000 + "the" + ")" * 1000, 3),
        ("(the " * 1000 + "a" + ")" * 1000, 1003),
        (f"({' | '.join(f'w{i}' for i in range(3000))})+", 3),
    ],
)
def test_an_expression_of_many_states_has_its_smallest_automaton(expression: str, states: int):
    assert len(compile_pattern(expression)[2]) == states


def test_pairs_of_many_states_are_put_into_classes_as_by_comparing_all_of_them():
    rng = np.random.default_rng(1)
    for _ in range(30):
        n, columns = int(rng.integers(1, 30)), int(rng.integers(1, 4))
        step, label = rng.integers(n, size=(n, columns)), rng.integers(2, size=n)
        if rng.random() < 0.5:  # a chain, which takes many rounds
            step[:, 0] = np.minimum(np.arange(n) + 1, n - 1)
            label = (np.arange(n) == n - 1).astype(np.int64)
        expected, before = label, -1
        while before < (before := len(np.unique(expected))):
            key = np.concatenate([expected[:, None], expected[step]], axis=1)
            expected = np.unique(key, axis=0, return_inverse=True)[1].ravel()
        pairs = set(zip(expected.tolist(), coarsest_partition(step, label).tolist(), strict=True))
        assert len(pairs) == before == len({one for _, one in pairs})


def test_a_counter_has_a_copy_for_each_number_and_not_for_each_pair():
    grammar = PCFG.from_text("S -> S S 0.2 | A 0.3 | b 0.5\nA -> a 1.0")
    for n in (2, 5, 9):
        made = product(grammar, Count(("b",), n, n).automaton(grammar), np.arange(n + 2) == n)
        assert made is not None
        assert len(made.names) == 1 + (n + 1) + 1  # the start, S with 0 to n of them, and A


def test_a_product_above_the_budget_is_refused_with_its_size():
    with pytest.raises(InputError) as refused:
        Tilting(CONES, Count(("b",), 40, 40), budget=500).given()
    assert refused.value.code == "too-many-rules"
    size = int(re.search(r"has ([\d,]+) rules", str(refused.value))[1].replace(",", ""))
    whole = product(CONES, Count(("b",), 40, 40).automaton(CONES), np.arange(42) == 40)
    assert whole is not None
    assert size == len(whole.binary) + len(whole.unary) + len(whole.lexical)
    with pytest.raises(InputError) as refused:
        Tilting(CONES, Count(("b",), 5_000, 5_000)).given()
    assert refused.value.code == "too-many-rules"
    with pytest.raises(InputError) as refused:
        Tilting(CONES, Sum((Count(("b",), 100, 100), Count(("c",), 100, 100)))).at(1.0)
    assert refused.value.code == "too-many-rules"


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Tilting(CONES, Words({"zebra": 1.0})).at(1.0), "no word 'zebra'"),
        (lambda: Tilting(CONES, Words({"a": 1.0})).given(), "only an event"),
        (lambda: Tilting(CONES, Words({"a": 1.0})).at(0.0), "other than 0"),
        (lambda: Words({"a": math.nan}), "finite"),
        (lambda: Count(("a",), 3, 2), "the smaller first"),
        (lambda: Tilting(CONES, Count(("c",), 1, 1)).with_probability(1.0), "between 0 and 1"),
        (lambda: Tilting(CONES, Count(("c",), 0, None)).with_probability(0.3), "no sentence of the grammar fails"),
        (
            lambda: Tilting(CONES, Count(("a",), 0, 1)).with_probability(0.3, LengthRange(1, 2)),
            "no sentence with a length in 1..2 fails",
        ),
        (
            lambda: Tilting(CONES, Count(("b",), 4, None)).with_probability(0.3, LengthRange(1, 3)),
            "no sentence with a length in 1..3 satisfies",
        ),
        (lambda: tilt(PCFG.from_text("S -> S S 1"), Words({}), 1.0), "no derivation of this grammar ends"),
        (lambda: tilt(CONES, Pattern("b")).log_twists([["a", "b"]]), "begins with 'a b'"),
        (lambda: power(CONES, 0.0), "above 0"),
    ],
)
def test_what_makes_no_sense_is_refused(make, what):
    with pytest.raises(InputError, match=what):
        make()


def test_a_prefix_that_cannot_come_to_the_event_has_no_twist():
    assert tilt(CONES, Pattern("b c b")).log_twists([["c"], ["b"]]).tolist()[0] == -math.inf


def test_rewards_are_read_from_files(tmp_path: Path):
    words = tmp_path / "words.tsv"
    words.write_text("# what words earn\na\t-1\nc\t0.5\n")
    np.testing.assert_allclose(File.read(words)(CONES, [["a", "c", "b"], ["b"]]), [-0.5, 0.0])
    automaton = tmp_path / "automaton.tsv"
    automaton.write_text("even b odd 0\nodd b even 1\nodd * odd -0.25\neven <end> 2\n")
    np.testing.assert_allclose(
        File.read(automaton)(CONES, [["b"], ["b", "c"], ["b", "c", "b"], ["c"]]), [0, -0.25, 2.75, 2]
    )
    assert isinstance(Count(("a",), 0, None), Event)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a\t1\na\t2\n", 2, "the word 'a' is listed twice; remove one"),
        ("a\tmany\n", 1, "a reward must be a number"),
        ("p a q 1\np a q 1\n", 2, "two lines"),
        ("p a q r 1\n", 1, "expecting a word"),
        ("p zebra q 1\n", 1, "no word 'zebra'"),
        ("a 1\np a q 1\n", None, "not both"),
        ("", None, "expecting rewards"),
    ],
)
def test_a_file_that_is_no_reward_is_refused(tmp_path: Path, text: str, line: int | None, what: str):
    path = tmp_path / "reward.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match=what) as refused:
        File.read(path).automaton(CONES)
    assert refused.value.line == line


@pytest.mark.long
def test_samples_are_those_of_the_corpus_that_satisfy_the_event():
    english, event = language("english", size="small"), Count(("the",), 3, 3)
    tilted = tilt(english, event)
    plain, required = (Sampler(pcfg) for pcfg in (english, tilted.pcfg))
    state = random_state(1, 0, 0)
    there = event(english, plain.sentences(plain.draw(20_000, state)))
    assert binomtest(int(there.sum()), len(there), math.exp(tilted.log_z)).pvalue > 0.001
    drawn = required.sentences(required.draw(500, state))
    assert event(english, drawn).all()
    longer = sum(len(s) for s in drawn) / 500
    assert longer == pytest.approx(expected_counts(tilted.pcfg).length, rel=0.1)
