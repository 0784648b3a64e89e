"""Charts of torch, on the CPU: against enumeration and the compiled charts, at any length, in both number types."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command_line import Command
from hypothesis import given, settings
from random_grammars import cases
from reference_inference import all_strings, rules_of

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.any_order import AnyOrder, Pattern
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import FloatArray, random_state
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.accelerated import Accelerated

Case = tuple[PCFG, list[list[str]]]


def furthest(found: Sequence[FloatArray], wanted: Sequence[FloatArray]) -> float:
    """Largest difference of finite numbers; infinite where others are not."""
    one, other = np.concatenate([*map(np.ravel, found)]), np.concatenate([*map(np.ravel, wanted)])
    finite = np.isfinite(other)
    if not np.array_equal(np.isfinite(one), finite):
        return math.inf
    return float(np.abs(one[finite] - other[finite]).max(initial=0.0))


@pytest.mark.long
@settings(max_examples=40)
@given(cases(max_size=4, max_symbols=4))
def test_patterns_and_masked_words_are_those_of_enumeration(case: Case) -> None:
    pcfg, (sentence,) = case
    strings = all_strings(rules_of(pcfg), len(sentence))[rules_of(pcfg).start][len(sentence)]
    shown = itertools.product((True, False), repeat=len(sentence))
    patterns: list[Pattern] = [[w if s else None for w, s in zip(sentence, each, strict=True)] for each in shown]
    masses = [
        math.fsum(p for s, p in strings.items() if all(w in (None, x) for w, x in zip(pattern, s, strict=True)))
        for pattern in patterns
    ]
    charts = Accelerated(pcfg)
    with np.errstate(divide="ignore"):
        assert furthest([charts.log_probs(patterns)], [np.log(masses)]) < 1e-10
    assert furthest(charts.marginals(patterns), AnyOrder(pcfg).marginals(patterns)) < 1e-10
    assert furthest(charts.masked_log_probs([sentence]), pcfg.exact.masked_log_probs([sentence])) < 1e-10


@pytest.mark.long
@settings(max_examples=40)
@given(cases(max_size=5, max_symbols=4))
def test_next_words_are_those_of_the_compiled_charts(case: Case) -> None:
    pcfg, (sentence,) = case
    texts = [sentence, sentence[::-1], [*sentence, sentence[0]]]
    assert furthest(Accelerated(pcfg).causal_log_probs(texts), pcfg.exact.causal_log_probs(texts)) < 1e-10


@pytest.fixture(scope="module")
def english() -> tuple[PCFG, list[list[str]]]:
    pcfg = language("english", size="small")
    sampler = Sampler(pcfg, LengthRange(1, 25))
    sentences = [list(s) for s in sampler.sentences(sampler.draw(30, random_state(1)))]
    sentences[3][0] = "unheard-of"
    return pcfg, [*sentences, sentences[5][::-1], sentences[0]]


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "within"), [("float64", 1e-11), ("float32", 1e-5)])
def test_english_sentences_of_all_lengths_together(
    english: tuple[PCFG, list[list[str]]], dtype: str, within: float
) -> None:
    pcfg, sentences = english
    rng, charts = np.random.default_rng(1), Accelerated(pcfg, dtype=dtype)
    patterns: list[Pattern] = [[w if rng.random() < 0.5 else None for w in s] for s in sentences]
    truth = AnyOrder(pcfg)
    assert furthest([charts.log_probs(patterns)], [truth.log_probs(patterns)]) < 20 * within
    assert furthest(charts.marginals(patterns), truth.marginals(patterns)) < within
    assert furthest(charts.masked_log_probs(sentences), pcfg.exact.masked_log_probs(sentences)) < within
    strings = pcfg.exact.string_log_probs(sentences)
    assert furthest([charts.string_log_probs(sentences)], [strings]) < 20 * within


@pytest.mark.long
def test_long_sentences_stay_in_range() -> None:
    """Probabilities below 1e-700 in float64, below 1e-45 in float32: cells are divided by their largest entries."""
    rules = "S -> S S 0.3 | A B 0.2 | 'a' 0.3 | 'b' 0.2\nA -> 'a' 0.999 | 'c' 0.001\nB -> 'b' 0.999 | 'c' 0.001"
    pcfg = PCFG.from_text(rules)
    text = [["a", "b", "c", "c"] * 45]
    (wanted,) = pcfg.exact.causal_log_probs(text)
    assert wanted.sum() < -710.0  # exp of it is 0 in float64
    assert furthest(Accelerated(pcfg).causal_log_probs(text), [wanted]) < 1e-10
    short = [text[0][:60]]
    single = Accelerated(pcfg, dtype="float32").string_log_probs(short)
    assert single == pytest.approx(pcfg.exact.string_log_probs(short), abs=1e-3)


def test_what_vanishes_in_float32_is_computed_again() -> None:
    """The only derivation goes through a weight of 1e-60 of that of another symbol over the same words."""
    text = "S -> A C 1.0\nA -> 'a' 1.0\nC -> D E 0.5 | B B 0.5\nD -> 'b' 1e-30 | 'd' 1.0\nE -> 'b' 1e-30 | 'd' 1.0\n"
    pcfg = PCFG.from_text(text + "B -> 'b' 1.0", normalise=True)
    patterns: list[Pattern] = [["a", "b", "b"], ["a", None, "b"]]
    charts, truth = Accelerated(pcfg, dtype="float32"), AnyOrder(pcfg)
    assert charts.log_probs(patterns) == pytest.approx(truth.log_probs(patterns), abs=1e-5)
    rare = PCFG.from_text(text + "B -> 'd' 1.0", normalise=True)
    assert Accelerated(rare, dtype="float32").log_probs([["a", "b", "b"]]) == pytest.approx(
        AnyOrder(rare).log_probs([["a", "b", "b"]]), abs=1e-5
    )


def test_what_cannot_be_done_is_said() -> None:
    pcfg = PCFG.from_text("S -> S S 0.3 | 'a' 0.7")
    with pytest.raises(InputError, match="charts are float64 or float32, not float16"):
        Accelerated(pcfg, dtype="float16")
    with pytest.raises(InputError, match="the device cuda:77 cannot be used with float64"):
        Accelerated(pcfg, device="cuda:77")
    with pytest.raises(InputError, match="next words need float64"):
        Accelerated(pcfg, dtype="float32").causal_log_probs([["a"]])
    with pytest.raises(InputError, match="sentence 2 has no tokens"):
        Accelerated(pcfg).string_log_probs([["a"], []])


@pytest.mark.long
def test_bound_computes_on_the_device_that_is_asked_for(tmp_path: Path, command: Command) -> None:
    grammar, text, out = tmp_path / "g.txt", tmp_path / "text.txt", tmp_path / "parts"
    grammar.write_text("S -> S S 0.3 | A B 0.2 | 'a' 0.5\nA -> 'b' 1.0\nB -> 'c' 0.5 | 'b' 0.5\n", encoding="utf-8")
    text.write_text("a b c\na a b b a\nb c\nc\n", encoding="utf-8")
    call = ("bound", grammar, text, "--lengths", "none", "--any-order", "--json", "-")
    code, here, _ = command(*call)
    assert code == 0
    code, there, _ = command(*call, "--device", "cpu")
    assert code == 0
    one, other = json.loads(here), json.loads(there)
    for mine, theirs in zip(one["sentences"], other["sentences"], strict=True):
        assert mine["possible"] == theirs["possible"]
        for key in ("surprisal", "masked_logprob", "any_order_logprob"):
            assert theirs[key] == pytest.approx(mine[key], abs=1e-12)
    assert command(*call[:-2], "--device", "cpu", "-o", out)[0] == 0
    code, _, err = command(*call[:-2], "-o", out)
    assert code == 2 and "other settings" in err  # parts of a device are not those of the CPU
    code, _, err = command(*call[:-2], "--device", "cuda:77")
    assert code == 2 and "the device cuda:77 cannot be used with float64" in err and "Traceback" not in err
    code, _, err = command(*call[:-2], "--device", "cpu", "--definitions", "paper")
    assert code == 2 and "as published are computed on the CPU" in err
