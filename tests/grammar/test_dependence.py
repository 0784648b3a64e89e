"""Mutual information of words some words apart, against enumeration."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import assume, given
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, rules_of

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.dependence import halves_information, mutual_information, pairs_apart
from truesource.grammar.inference.word_types import pair_weights
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError


def information(pairs: dict[tuple[str, str], float]) -> float:
    """Mutual information of the two parts of a pair, from unnormalised weights."""
    total = math.fsum(pairs.values())
    sides: tuple[dict[str, float], dict[str, float]] = (defaultdict(float), defaultdict(float))
    for pair, p in pairs.items():
        for side, word in zip(sides, pair, strict=True):
            side[word] += p / total
    return math.fsum(p / total * math.log(p / total / (sides[0][v] * sides[1][w])) for (v, w), p in pairs.items())


@pytest.mark.long
@given(small_pcfgs(), length_ranges(5))
def test_information_by_distance_is_that_of_all_pairs(pcfg: PCFG, lengths: LengthRange) -> None:
    tables = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]][lengths.low :]
    strings = {s: p for table in tables for s, p in table.items()}
    assume(strings)
    found = mutual_information(pcfg, 4, lengths)
    for d in range(1, 5):
        pairs: dict[tuple[str, str], float] = defaultdict(float)
        for s, p in strings.items():
            for i in range(len(s) - d):
                pairs[s[i], s[i + d]] += p
        assert found[d - 1] == pytest.approx(information(pairs) if pairs else 0.0, abs=1e-10)


@pytest.mark.long
@given(small_pcfgs())
def test_information_of_halves_is_that_of_all_sentences_of_a_length(pcfg: PCFG) -> None:
    for n, table in enumerate(all_strings(rules_of(pcfg), 5)[pcfg.symbols[pcfg.start]]):
        if n < 2 or not table:
            continue
        halves: dict[tuple[str, str], float] = defaultdict(float)
        for s, p in table.items():
            halves[" ".join(s[: n // 2]), " ".join(s[n // 2 :])] += p
        found, weight = halves_information(pcfg, list(table)), np.array(list(table.values()))
        assert float(found @ weight / weight.sum()) == pytest.approx(information(halves), abs=1e-10)
    odd = halves_information(pcfg, [[pcfg.vocabulary[0]], ["zebra", "zebra"]])
    assert np.isnan(odd).all()


@pytest.mark.long
@pytest.mark.parametrize("lengths", [None, LengthRange(3, 9)], ids=str)
def test_all_distances_together_are_all_pairs(lengths: LengthRange | None) -> None:
    pcfg = PCFG.from_text("S -> A S 0.3 | A B 0.4 | S B 0.3\nA -> a 0.6 | b 0.4\nB -> b 0.5 | c 0.5")
    apart = pairs_apart(pcfg, 60 if lengths is None else 8, lengths)
    np.testing.assert_allclose(apart[0], pair_weights(pcfg, lengths, neighbours=True).weight, rtol=1e-10)
    every = pair_weights(pcfg, lengths, neighbours=False).weight
    np.testing.assert_allclose(apart.sum(axis=0), every, rtol=1e-10 if lengths else 1e-4)


def test_words_that_are_drawn_alone_say_nothing_and_copies_say_all() -> None:
    alone = PCFG.from_text("S -> A S 0.5 | A A 0.5\nA -> a 0.3 | b 0.7")
    assert mutual_information(alone, 3).max() < 1e-14
    twice = PCFG.from_text(
        "S -> T A 0.5 | U B 0.5\nT -> A M 1.0\nU -> B M 1.0\nA -> a 1.0\nB -> b 1.0\nM -> x 0.2 | y 0.8"
    )
    np.testing.assert_allclose(mutual_information(twice, 3), [math.log(2), math.log(2), 0.0], atol=1e-12)


def test_bad_requests_are_refused() -> None:
    with pytest.raises(InputError, match="the distance of words must be 1 or more, got 0"):
        mutual_information(PCFG.load("dyck"), 0)


@pytest.mark.parametrize("p", [1e-120, 1e-160, 1e-200, 1e-290])
def test_pairs_whose_chance_is_beyond_float64_count_by_their_logarithms(p: float) -> None:
    """Of pairs (a, b) with p and (c, d) with 1 - p: -p ln p - (1 - p) ln(1 - p), which is p - p ln p."""
    pcfg = PCFG.from_text(f"S -> A B {p!r} | C D 1.0\nA -> a 1.0\nB -> b 1.0\nC -> c 1.0\nD -> d 1.0")
    for lengths in (None, LengthRange(2, 2)):
        assert mutual_information(pcfg, 1, lengths)[0] == pytest.approx(p - p * math.log(p), rel=1e-10)
