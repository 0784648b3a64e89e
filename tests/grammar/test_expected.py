"""Expected counts, unigrams and bigrams against enumeration, iteration and derivatives."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from numpy.typing import NDArray
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, expected, length_mass, rules_of

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference import word_types
from truesource.grammar.inference.expected import expected_counts, unigram
from truesource.grammar.inference.word_types import bigrams
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

LEAKING = PCFG.from_text("S -> S S 0.6 | A 0.1 | a 0.3\nA -> S 0.5 | b 0.5")
KINDS = ("binary", "unary", "lexical")


def strings_of(pcfg: PCFG, lengths: LengthRange) -> dict[tuple[str, ...], float]:
    """P(string | range) by enumeration; the example is dropped where there is none."""
    tables = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]][lengths.low :]
    z = math.fsum(p for table in tables for p in table.values())
    if z == 0.0:
        assume(False)
    return {s: p / z for table in tables for s, p in table.items()}


def range_mass(pcfg: PCFG, p: dict[str, NDArray[np.complex128]], lengths: LengthRange) -> complex:
    """Probability of the range under rule probabilities that may be complex: a plain programme over lengths."""
    n = len(pcfg.symbols)
    chains = np.eye(n, dtype=complex)
    np.subtract.at(chains, tuple(pcfg.unary.T), p["unary"])
    mass = np.zeros((lengths.high + 1, n), dtype=complex)
    for m in range(1, lengths.high + 1):
        if m == 1:
            np.add.at(mass[1], pcfg.lexical[:, 0], p["lexical"])
        for k in range(1, m):
            a, b, c = pcfg.binary.T
            np.add.at(mass[m], a, p["binary"] * mass[k, b] * mass[m - k, c])
        mass[m] = np.linalg.solve(chains, mass[m])
    return complex(mass[lengths.low :, pcfg.start].sum())


def probabilities(pcfg: PCFG) -> dict[str, NDArray[np.complex128]]:
    return {kind: np.exp(getattr(pcfg, f"{kind}_logp")).astype(complex) for kind in KINDS}


@pytest.mark.long
@given(small_pcfgs(), length_ranges(5))
def test_rule_counts_given_a_range_are_logarithmic_derivatives_of_its_mass(pcfg: PCFG, lengths: LengthRange) -> None:
    """E[uses | range] = p d ln Z / dp, by a complex step."""
    assume(sum(length_mass(rules_of(pcfg), lengths.high)[lengths.low :]) > 0.0)
    found = expected_counts(pcfg, lengths)
    for kind in KINDS:
        wanted = []
        for r in range(len(getattr(pcfg, kind))):
            p = probabilities(pcfg)
            p[kind][r] *= 1.0 + 1e-30j
            z = range_mass(pcfg, p, lengths)
            wanted.append(z.imag / 1e-30 / z.real)
            assert found.mass == pytest.approx(z.real, rel=1e-12)
        np.testing.assert_allclose(getattr(found, kind), wanted, rtol=1e-10, atol=1e-14)


@pytest.mark.long
@given(small_pcfgs(), length_ranges(4))
def test_word_counts_given_a_range_are_those_of_all_strings(pcfg: PCFG, lengths: LengthRange) -> None:
    wanted: Counter[str] = Counter()
    for string, p in strings_of(pcfg, lengths).items():
        for word in string:
            wanted[word] += p  # type: ignore[assignment]
    found = expected_counts(pcfg, lengths)
    np.testing.assert_allclose(found.words, [wanted[w] for w in pcfg.vocabulary], rtol=1e-10, atol=0.0)
    one = unigram(pcfg, lengths)
    assert one.words.sum() + one.end == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(one.words / one.end, found.words, rtol=1e-12)
    assert 1.0 / one.end == pytest.approx(found.length + 1.0, rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("lengths", [None, LengthRange(1, 5)], ids=str)
@given(pcfg=small_pcfgs())
def test_symbols_are_counted_as_their_rules_are(pcfg: PCFG, lengths: LengthRange | None) -> None:
    assume(lengths is None or sum(length_mass(rules_of(pcfg), lengths.high)[lengths.low :]) > 0.0)
    found = expected_counts(pcfg, lengths)
    by_rule = np.zeros(len(pcfg.symbols))
    for kind in KINDS:
        np.add.at(by_rule, getattr(pcfg, kind)[:, 0], getattr(found, kind))
    np.testing.assert_allclose(found.symbols, by_rule, rtol=1e-10, atol=1e-14)


@pytest.mark.long
@given(small_pcfgs())
def test_unconditioned_rule_counts_are_those_of_iteration(pcfg: PCFG) -> None:
    rules = rules_of(pcfg)
    found = expected_counts(pcfg)
    assert found.mass == 1.0
    for kind in KINDS:
        for rule, logp, value in zip(
            getattr(pcfg, kind), getattr(pcfg, f"{kind}_logp"), getattr(found, kind), strict=True
        ):
            gain = dict.fromkeys(rules.symbols, 0.0) | {rules.symbols[rule[0]]: math.exp(logp)}
            assert value == pytest.approx(expected(rules, gain), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(found.words, pcfg.exact.expected_words, rtol=1e-12)


def test_a_wide_range_gives_the_unconditioned_counts_and_a_known_case() -> None:
    pcfg = PCFG.from_text("S -> S S 0.2 | a 0.5 | b 0.3")
    free = expected_counts(pcfg)
    assert free.length == pytest.approx(0.8 / 0.6, rel=1e-12)
    np.testing.assert_allclose(expected_counts(pcfg, LengthRange(1, 150)).words, free.words, rtol=1e-10)
    entropy = -sum(p * math.log(p) for p in unigram(pcfg).words) - unigram(pcfg).end * math.log(unigram(pcfg).end)
    assert unigram(pcfg).entropy == pytest.approx(entropy, rel=1e-14)


def test_a_grammar_that_leaks_is_counted_given_a_range_and_refused_without_one() -> None:
    lengths = LengthRange(2, 4)
    wanted = {w: sum(p * s.count(w) for s, p in strings_of(LEAKING, lengths).items()) for w in LEAKING.vocabulary}
    found = expected_counts(LEAKING, lengths).words
    np.testing.assert_allclose(found, [wanted[w] for w in LEAKING.vocabulary], rtol=1e-10)
    for call in (expected_counts, unigram, bigrams):
        with pytest.raises(InputError, match="spectral radius"):
            call(LEAKING)


@pytest.mark.parametrize("call", [expected_counts, unigram, bigrams])
def test_a_range_without_sentences_is_refused(call: object) -> None:
    with pytest.raises(InputError, match=r"no sentence of this grammar has a length in 5\.\.6"):
        call(PCFG.from_text("S -> a 1.0"), LengthRange(5, 6))  # type: ignore[operator]
    with pytest.raises(InputError, match="too small"):
        call(PCFG.from_text("S -> S S 0.1 | a 0.9"), LengthRange(700, 700))  # type: ignore[operator]


# -- bigrams ----------------------------------------------------------------------------------------


@pytest.mark.long
@given(small_pcfgs(), length_ranges(4))
def test_bigrams_given_a_range_are_those_of_all_strings(pcfg: PCFG, lengths: LengthRange) -> None:
    strings = strings_of(pcfg, lengths)
    found = bigrams(pcfg, lengths)
    words = pcfg.vocabulary
    at = {w: i for i, w in enumerate(words)}
    wanted, starts, ends = np.zeros((len(words),) * 2), np.zeros(len(words)), np.zeros(len(words))
    for string, p in strings.items():
        starts[at[string[0]]] += p
        ends[at[string[-1]]] += p
        for v, w in itertools.pairwise(string):
            wanted[at[v], at[w]] += p
    np.testing.assert_allclose(found.table(), wanted, rtol=1e-10, atol=0.0)
    np.testing.assert_allclose(found.starts, starts, rtol=1e-10, atol=0.0)
    np.testing.assert_allclose(found.ends, ends, rtol=1e-10, atol=0.0)
    pairs = [(v, w) for v in words for w in words] + [("nothing", words[0])]
    np.testing.assert_allclose(found.counts(pairs), [*wanted.ravel(), 0.0], rtol=1e-10, atol=0.0)


@pytest.mark.long
@given(small_pcfgs())
def test_unconditioned_bigrams_are_those_of_iteration(pcfg: PCFG) -> None:
    """Every pair has one binary node that splits it: its left child ends with one word, its right one begins so."""
    rules = rules_of(pcfg)

    def edge(word: str, side: int) -> dict[str, float]:
        value = dict.fromkeys(rules.symbols, 0.0)
        for _ in range(4000):
            new = dict.fromkeys(rules.symbols, 0.0)
            for a, w, p in rules.lexical:
                new[a] += p * (w == word)
            for a, b, p in rules.unary:
                new[a] += p * value[b]
            for a, *children, p in rules.binary:
                new[a] += p * value[children[side]]
            value = new
        return value

    v, w = pcfg.vocabulary[0], pcfg.vocabulary[-1]
    last, first = edge(v, 1), edge(w, 0)
    gain = dict.fromkeys(rules.symbols, 0.0)
    for a, b, c, p in rules.binary:
        gain[a] += p * last[b] * first[c]
    found = bigrams(pcfg)
    assert found.counts([(v, w)])[0] == pytest.approx(expected(rules, gain), rel=1e-9, abs=1e-14)
    assert found.starts[-1] == pytest.approx(first[rules.start], rel=1e-9, abs=1e-14)
    assert found.ends[0] == pytest.approx(last[rules.start], rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("lengths", [None, LengthRange(2, 9)], ids=str)
def test_rows_add_up_to_word_counts_and_give_the_bigram_model(lengths: LengthRange | None) -> None:
    pcfg = PCFG.from_text("S -> A B 0.7 | S S 0.3\nA -> a 0.6 | A 0.2 | b 0.2\nB -> S 0.1 | b 0.5 | c 0.4")
    found, counts = bigrams(pcfg, lengths), expected_counts(pcfg, lengths)
    for i, word in enumerate(pcfg.vocabulary):
        assert found.row(word).sum() + found.ends[i] == pytest.approx(counts.words[i], rel=1e-12)
        after, end = found.next_word(word)
        assert after.sum() + end == pytest.approx(1.0, rel=1e-12)
        np.testing.assert_allclose(found.row(word), found.table()[i], rtol=1e-12)
    assert found.starts.sum() == pytest.approx(1.0, rel=1e-12)


def test_what_bigrams_cannot_say_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pcfg = PCFG.from_text("S -> a 1.0\nLOST -> b 1.0")
    found = bigrams(pcfg)
    with pytest.raises(InputError, match="does not have the word 'z'"):
        found.row("z")
    with pytest.raises(InputError, match="the word 'b' is in no sentence"):
        found.next_word("b")
    monkeypatch.setattr(word_types, "LARGEST_TABLE", 1)
    with pytest.raises(InputError, match="all pairs of 2 words is too large"):
        found.table()
