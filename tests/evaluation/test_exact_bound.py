"""Exact sentence scores and the bounds they add up to, against enumeration."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_grammars import length_ranges, sentences, small_pcfgs
from reference_inference import all_strings, length_mass, rules_of

from truesource.evaluation.core.exact_bound import bound_records
from truesource.evaluation.core.sentence_records import sentence_records
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import FEWEST

PRODUCT = PCFG.from_text("S -> A B 1.0\nA -> a 0.25 | b 0.75\nB -> c 0.5 | d 0.5")


def test_records_of_independent_words() -> None:
    (record,) = sentence_records(PRODUCT, [["a", "c"]], lengths=None)
    assert record["tokens"] == ["a", "c"]
    assert record["possible"] is True
    assert record["logprob"] == pytest.approx(math.log(0.125))
    assert record["surprisal"] == pytest.approx([-math.log(0.25), -math.log(0.5)])
    assert record["stop_surprisal"] == pytest.approx(0.0, abs=1e-12)
    assert record["masked_logprob"] == pytest.approx([math.log(0.25), math.log(0.5)])


def test_bounds_pool_tokens_over_sentences() -> None:
    records = sentence_records(PRODUCT, [["a", "c"], ["b", "d"], ["b", "c"]], lengths=None)
    causal, masked = bound_records(PRODUCT, records * 4, lengths=None)
    total = -4 * (math.log(0.125) + 2 * math.log(0.375))
    assert (causal.name, masked.name) == ("causal_bound", "masked_bound")
    assert causal.value == pytest.approx(math.exp(total / 36))  # with three ends of sentence
    assert masked.value == pytest.approx(math.exp(total / 24))
    assert causal.low is not None and causal.high is not None
    assert causal.low <= causal.value <= causal.high
    assert "|eos:in|" in causal.signature and "tokens:36" in causal.signature
    assert "|eos:out|" in masked.signature and "tokens:24" in masked.signature


def test_the_bound_in_any_order_is_the_perplexity_given_the_number_of_words() -> None:
    pcfg = PCFG.from_text("S -> A S 0.4 | A 0.6\nA -> a 0.5 | b 0.3 | c 0.2")
    sentences = [["a", "c"], ["b"], ["b", "c", "a"], ["c", "c"]] * 3
    records = sentence_records(pcfg, sentences, lengths=None, causal=False, masked=False, any_order=True)
    (bound,) = bound_records(pcfg, records, lengths=None)
    total = sum(math.log({"a": 0.5, "b": 0.3, "c": 0.2}[word]) for sentence in sentences for word in sentence)
    assert (bound.name, bound.value) == ("any_order_bound", pytest.approx(math.exp(-total / 24)))
    assert "given:length" in bound.signature


def test_only_what_was_asked_for() -> None:
    causal = sentence_records(PRODUCT, [["a", "c"]], lengths=None, masked=False)
    masked = sentence_records(PRODUCT, [["a", "c"]], lengths=None, causal=False)
    assert "masked_logprob" not in causal[0]
    assert "surprisal" not in masked[0]
    assert [score.name for score in bound_records(PRODUCT, causal, lengths=None)] == ["causal_bound"]
    assert [score.name for score in bound_records(PRODUCT, masked, lengths=None)] == ["masked_bound"]


def test_impossible_sentences_are_counted_and_left_out() -> None:
    good, bad = ["a", "c"], [["zebra", "c"], ["c", "a"], ["a", "c", "c"]]
    records = sentence_records(PRODUCT, [bad[0], good, *bad[1:]], lengths=None)
    assert [record["possible"] for record in records] == [False, True, False, False]
    assert [record["logprob"] is None for record in records] == [True, False, True, True]
    json.dumps(records, allow_nan=False)
    alone = bound_records(PRODUCT, records[1:2], lengths=None)
    among = bound_records(PRODUCT, records, lengths=None)
    assert [score.value for score in among] == [score.value for score in alone]
    assert all("sentences:1|impossible:3" in score.signature for score in among)


def test_nothing_possible_is_refused() -> None:
    records = sentence_records(PRODUCT, [["zebra"], ["c"]], lengths=None)
    with pytest.raises(InputError, match="none of the 2 sentences"):
        bound_records(PRODUCT, records, lengths=None)


def test_a_sentence_outside_the_range_is_impossible() -> None:
    grammar = PCFG.from_text("S -> S S 0.3 | a 0.7")
    records = sentence_records(grammar, [["a"], ["a", "a"]], lengths=LengthRange(2, 4))
    assert [record["possible"] for record in records] == [False, True]


@pytest.mark.long
@given(small_pcfgs(), st.lists(sentences(4), min_size=1, max_size=4), st.none() | length_ranges(4))
def test_against_enumeration(grammar: PCFG, texts: list[list[str]], lengths: LengthRange | None) -> None:
    rules = rules_of(grammar)
    strings = {s: p for table in all_strings(rules, 4)["S"] for s, p in table.items()}
    inside = 1.0 if lengths is None else sum(length_mass(rules, lengths.high)[lengths.low :])
    total, count = 0.0, 0
    possible = []
    for text in texts:
        fits = lengths is None or len(text) in lengths
        p = strings.get(tuple(text), 0.0) / inside if fits and inside > 0.0 else 0.0
        possible.append(p > 0.0)
        if p > 0.0:
            total, count = total - math.log(p), count + len(text) + 1
    if inside <= 0.0:
        return
    records = sentence_records(grammar, texts, lengths=lengths)
    assert [record["possible"] for record in records] == possible
    for record in records:
        if record["possible"]:
            spent = math.fsum(record["surprisal"]) + record["stop_surprisal"]
            assert spent == pytest.approx(-record["logprob"], abs=1e-9)
            assert min([*record["surprisal"], record["stop_surprisal"]]) >= -1e-12
            assert max(record["masked_logprob"]) <= 1e-12
    if count:
        causal = bound_records(grammar, records, lengths=lengths)[0]
        assert causal.value == pytest.approx(math.exp(total / count), rel=1e-9)
        if sum(possible) < FEWEST:
            assert causal.low is causal.high is None
            assert "|ci:none/fewer-than-10-sentences|" in causal.signature
        else:
            assert causal.low is not None and causal.high is not None
            assert 1.0 <= causal.low <= causal.value * (1 + 1e-12) <= causal.high * (1 + 1e-9)


def test_distributions_of_every_position_are_those_of_the_prefixes() -> None:
    (record, other) = sentence_records(PRODUCT, [["a", "c"], ["c", "a"]], lengths=None, distributions=True)
    first, second, end = record["next"]
    assert first == {"words": pytest.approx({"a": 0.25, "b": 0.75, "c": 0.0, "d": 0.0}), "stop": 0.0}
    assert second == {"words": pytest.approx({"a": 0.0, "b": 0.0, "c": 0.5, "d": 0.5}), "stop": 0.0}
    assert end == {"words": pytest.approx(dict.fromkeys("abcd", 0.0)), "stop": pytest.approx(1.0)}
    assert other["next"][0] == first
    assert other["next"][1:] == [None, None]
    json.dumps([record, other], allow_nan=False)


def test_too_many_distributions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truesource.evaluation.core.sentence_records.MOST_PROBABILITIES", 11)
    with pytest.raises(InputError, match="are 12 probabilities, more than 11"):
        sentence_records(PRODUCT, [["a", "c"]], lengths=None, distributions=True)
