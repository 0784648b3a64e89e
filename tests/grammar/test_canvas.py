"""Places of a canvas given any others, the number of words unknown, against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_grammars import linear_pcfgs, small_pcfgs
from reference_inference import all_strings, rules_of
from scipy.stats import chisquare

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.any_order import Pattern
from truesource.grammar.inference.canvas import Canvas
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

pytestmark = pytest.mark.long

END = "</s>"
BRANCHING = PCFG.from_text("S -> S S 0.3 | A B 0.2 | 'a' 0.3 | 'b' 0.2\nA -> 'a' 0.6 | 'c' 0.4\nB -> 'b' 0.5 | 'c' 0.5")
MOST = 60  #: patterns of a grammar


def canvases(pcfg: PCFG, lengths: LengthRange) -> dict[tuple[str, ...], float]:
    """All canvases with their probabilities, by enumeration."""
    rules = rules_of(pcfg)
    strings = all_strings(rules, lengths.high)[rules.start]
    found = {
        (*s, *[END] * (lengths.high - m)): p
        for m in range(lengths.low, lengths.high + 1)
        for s, p in strings[m].items()
    }
    total = math.fsum(found.values())
    return {canvas: p / total for canvas, p in found.items()} if total else {}


def fits(pattern: Pattern, canvas: tuple[str, ...]) -> bool:
    return all(known in (None, there) for known, there in zip(pattern, canvas, strict=True))


@settings(max_examples=40)
@given(st.one_of(small_pcfgs(max_symbols=4, max_words=3), linear_pcfgs()), st.integers(1, 4), st.integers(1, 4))
def test_all_patterns_are_those_of_enumeration(pcfg: PCFG, low: int, more: int) -> None:
    lengths = LengthRange(min(low, more), max(low, more))
    law = canvases(pcfg, lengths)
    assume(law)
    every = list(itertools.product((None, END, *pcfg.vocabulary), repeat=lengths.high))
    patterns: list[Pattern] = [*every[:: -(-len(every) // MOST)], [None] * lengths.high, *list(law)[:5]]
    canvas, place = Canvas(pcfg, lengths, END), {**pcfg.word_ids, END: len(pcfg.vocabulary)}
    for pattern, total, table in zip(patterns, canvas.log_probs(patterns), canvas.marginals(patterns), strict=True):
        some = {each: p for each, p in law.items() if fits(pattern, each)}
        mass, wanted = math.fsum(some.values()), np.zeros_like(table)
        assert total == pytest.approx(math.log(mass) if mass else -math.inf, abs=1e-10)
        for each, p in some.items():
            wanted[np.arange(len(each)), [place[word] for word in each]] += p / mass
        np.testing.assert_allclose(table, wanted, rtol=0.0, atol=1e-10)


def test_every_order_gives_the_probability_of_the_canvas() -> None:
    lengths = LengthRange(1, 5)
    canvas, sentence = Canvas(BRANCHING, lengths, END), ["a", "b", "a", END, END]
    place = {**BRANCHING.word_ids, END: 3}
    whole = BRANCHING.log_prob(sentence[:3]) - math.log(BRANCHING.exact.range_mass(lengths))
    for order in itertools.permutations(range(5)):
        patterns: list[Pattern] = [
            [word if i in order[:step] else None for i, word in enumerate(sentence)] for step in range(5)
        ]
        tables = canvas.marginals(patterns)
        total = sum(math.log(tables[step, at, place[sentence[at]]]) for step, at in enumerate(order))
        assert total == pytest.approx(whole, abs=1e-10)


def test_samples_follow_the_exact_distribution() -> None:
    lengths, pattern = LengthRange(1, 3), ["a", None, None]
    law = {each: p for each, p in canvases(BRANCHING, lengths).items() if fits(pattern, each)}
    drawn = Canvas(BRANCHING, lengths, END).sample(pattern, 4000, np.random.default_rng(5))
    counts = np.array([drawn.count(each) for each in law])
    expected = np.array(list(law.values())) / math.fsum(law.values()) * len(drawn)
    assert counts.sum() == len(drawn) and expected.min() > 5.0 and {len(set(each)) for each in law} >= {2, 3}
    assert chisquare(counts, expected).pvalue > 0.001


def test_what_does_not_fit_is_refused_in_one_sentence() -> None:
    canvas = Canvas(BRANCHING, LengthRange(2, 4), END)
    with pytest.raises(InputError, match="a pattern has 3 positions; expecting 4"):
        canvas.marginals([[None] * 3])
    with pytest.raises(InputError, match=r"no sentence of 2\.\.4 words that matches 'a </s> ___ ___'"):
        canvas.sample(["a", END, None, None], 1, np.random.default_rng(0))
    with pytest.raises(InputError, match="has the word 'a'"):
        Canvas(BRANCHING, LengthRange(2, 4), "a")
    assert not canvas.marginals([["x", None, None, END]]).any() and canvas.marginals([]).shape == (0, 4, 4)
    assert canvas.log_probs([["a", END, None, None], ["a", None, END, "a"]]).tolist() == [-math.inf] * 2
