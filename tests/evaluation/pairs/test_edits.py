"""Edited pairs, against enumeration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import pytest
from agreement_grammar import agreement_grammar
from reference_inference import derivations, rules_of

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.pairs.edits import MARGIN, TOLERANCE, Neighbours, edited_pairs
from truesource.evaluation.pairs.evaluate import evaluate_pairs
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Pair
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.word_types import bigrams
from truesource.grammar.pcfg import PCFG, language

LENGTHS = LengthRange(2, 8)
GRAMMARS = {
    "agreement": agreement_grammar,
    "brackets": lambda: language("dyck:k=2,depth=3"),
    "counting": lambda: language("anbn"),
    "parity": lambda: PCFG.from_text("S -> a S 0.3 | b T 0.5 | a 0.2\nT -> a T 0.3 | b S 0.4 | b 0.3"),
    "possible": lambda: PCFG.from_text("S -> a A 0.6 | b S 0.2 | b 0.2\nA -> b S 0.8 | a A 0.1 | a 0.1"),
}


@pytest.fixture(scope="module", params=list(GRAMMARS))
def pcfg(request: pytest.FixtureRequest) -> PCFG:
    return GRAMMARS[request.param]()


@pytest.fixture(scope="module")
def pairs(pcfg: PCFG) -> list[Pair]:
    return edited_pairs(pcfg, LENGTHS, number=30, seed=1)


def probability(pcfg: PCFG, words: Sequence[str]) -> float:
    return math.fsum(p for _, p in derivations(rules_of(pcfg), words))


@pytest.mark.long
def test_good_sentences_are_possible_and_bad_ones_clearly_less_probable(pcfg: PCFG, pairs: list[Pair]) -> None:
    assert len(pairs) >= 9
    for pair in pairs:
        good, bad = probability(pcfg, pair.a), probability(pcfg, pair.b)
        assert pair.log_p_a == pytest.approx(math.log(good))
        if bad == 0.0:
            assert pair.impossible == "b" and pair.log_odds is None
        else:
            assert pair.log_odds == pytest.approx(math.log(good / bad)) and pair.log_odds >= MARGIN - 1e-9


@pytest.mark.long
def test_each_edit_changes_one_thing_and_keeps_to_the_lengths(pairs: list[Pair]) -> None:
    for pair in pairs:
        a, b = pair.a, pair.b
        assert len(a) in LENGTHS and len(b) in LENGTHS and pair.sampled_side == "a"
        if pair.phenomenon == "swap":
            first, second = pair.positions
            assert second == first + 1 and (a[first], a[second]) == (b[second], b[first])
            assert pair.unigram_log_odds == 0.0
        elif pair.phenomenon == "replace":
            [place] = pair.positions
            assert a[:place] == b[:place] and a[place + 1 :] == b[place + 1 :] and a[place] != b[place]
            assert pair.unigram_log_odds is not None
            assert pair.log_odds is None or pair.log_odds - pair.unigram_log_odds >= MARGIN - 1e-9
        else:
            raise AssertionError(pair.phenomenon)  # all these languages have pairs of one length


@pytest.mark.long
def test_strata_say_what_decides_a_pair(pcfg: PCFG, pairs: list[Pair]) -> None:
    for pair in pairs:
        good, bad = (pcfg.prefix_log_prob(words, LENGTHS) for words in (pair.a, pair.b))
        assert pair.strata["decided"] == ("beginning" if good - bad >= MARGIN else "end")
        odds = pair.facts["log_odds_of_beginnings"]
        assert odds is None if bad == -math.inf else odds == pytest.approx(good - bad, abs=1e-9)


@pytest.mark.long
def test_bigrams_are_those_of_all_possible_strings() -> None:
    pcfg, lengths = language("dyck:k=2,depth=3"), LengthRange(2, 6)
    marked = [
        ("<", *words, ">")
        for n in range(lengths.low, lengths.high + 1)
        for words in product(pcfg.vocabulary, repeat=n)
        if pcfg.log_prob(words) > -math.inf
    ]
    known = {pair for words in marked for pair in pairwise(words)}
    found = edited_pairs(pcfg, lengths, number=40, seed=3)
    strata = [pair.strata["bigrams"] for pair in found]
    assert strata == ["possible" if known.issuperset(pairwise(("<", *pair.b, ">"))) else "impossible" for pair in found]
    assert set(strata) == {"possible", "impossible"}


@pytest.mark.parametrize("name", ["agreement", "anbn", "arithmetic", "balanced", "dyck:k=2,depth=3", "palindrome"])
def test_neighbours_are_the_bigrams_that_are_expected_at_all(name: str) -> None:
    pcfg = language(name)
    words = pcfg.vocabulary[:40]
    pairs, neighbours = list(product(words, repeat=2)), Neighbours(pcfg)
    expected = bigrams(pcfg)
    assert [neighbours.can_follow(v, w) for v, w in pairs] == (expected.counts(pairs) > 1e-14).tolist()
    alone = [neighbours.possible([word]) for word in words]
    both = (expected.starts[: len(words)] > 1e-14) & (expected.ends[: len(words)] > 1e-14)
    assert alone == both.tolist()


@pytest.mark.long
def test_words_of_like_frequency_come_first() -> None:
    pcfg = PCFG.from_text("S -> A B 0.6 | C D 0.4\nA -> a 0.5 | e 0.5\nB -> b 1\nC -> c 0.5 | f 0.5\nD -> d 1")
    pairs = edited_pairs(pcfg, LengthRange(2, 2), number=50, seed=1)
    replaced = [pair.unigram_log_odds for pair in pairs if pair.phenomenon == "replace"]
    assert replaced and all(odds is not None and abs(odds) <= TOLERANCE for odds in replaced)
    frequent = PCFG.from_text("S -> A B 1\nA -> a 1\nB -> b 0.9 | c 0.1")
    pairs = edited_pairs(frequent, LengthRange(2, 2), number=9, seed=1)
    assert pairs and all(pair.b != ("a", "c") for pair in pairs)  # less probable by its frequency alone


@pytest.mark.long
def test_other_lengths_where_no_edit_keeps_the_length() -> None:
    even = PCFG.from_text("S -> a T 1\nT -> a S 0.5 | a 0.5")
    kinds = Counter(pair.phenomenon for pair in edited_pairs(even, LengthRange(2, 30), number=12, seed=1))
    assert set(kinds) == {"delete", "insert"}
    short = PCFG.from_text("S -> a S 0.2 | a 0.8")
    pairs = edited_pairs(short, LengthRange(1, 4), number=9, seed=1)
    assert {(len(pair.a), len(pair.b)) for pair in pairs} == {(1, 2), (2, 3), (3, 4)}
    assert [pair.log_odds for pair in pairs] == pytest.approx([math.log(5.0)] * 3)
    assert edited_pairs(PCFG.from_text("S -> a 1"), LengthRange(1, 1), number=5, seed=1) == []


@pytest.mark.long
def test_pairs_are_distinct_and_reproducible(pcfg: PCFG, pairs: list[Pair]) -> None:
    assert len({(pair.a, pair.b) for pair in pairs}) == len(pairs)
    assert pairs == edited_pairs(pcfg, LENGTHS, number=30, seed=1)
    assert pairs[:12] == edited_pairs(pcfg, LENGTHS, number=12, seed=1)
    assert pairs != edited_pairs(pcfg, LENGTHS, number=30, seed=2)


@pytest.mark.long
def test_the_truth_prefers_every_good_sentence(pcfg: PCFG, pairs: list[Pair]) -> None:
    found = evaluate_pairs(Oracle(pcfg), pairs, pcfg)
    assert np.array_equal(found.odds > 0.0, np.ones(len(pairs), dtype=bool))


@pytest.mark.long
def test_rare_words_are_left_out() -> None:
    pcfg = PCFG.from_text("S -> A S 0.6 | A B 0.4\nA -> a 0.55 | b 0.4 | rare 0.05\nB -> c 0.8 | d 0.15 | e 0.05")
    share = dict(zip(pcfg.vocabulary, np.exp(Lexicon(pcfg, LENGTHS).unigram).tolist(), strict=True))
    every = {word for pair in edited_pairs(pcfg, LENGTHS, number=80, seed=1) for word in (*pair.a, *pair.b)}
    some = {word for pair in edited_pairs(pcfg, LENGTHS, number=80, seed=1, rarest=0.05) for word in (*pair.a, *pair.b)}
    assert every == set(share)
    assert some == {word for word, value in share.items() if value >= 0.05} < every
    short = PCFG.from_text("S -> a S 0.15 | b S 0.02 | a 0.8 | b 0.03")
    pairs = edited_pairs(short, LengthRange(1, 4), number=9, seed=1, rarest=0.1)
    assert {pair.phenomenon for pair in pairs} == {"insert"} and {word for pair in pairs for word in pair.b} == {"a"}
