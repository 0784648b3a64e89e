"""What is said of pairs, against lists of all derivations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from agreement_grammar import agreement_grammar
from hypothesis import given, settings
from hypothesis import strategies as st
from random_grammars import small_pcfgs
from reference_inference import all_strings, derivations, rules_of

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.pairs import FRAME_MARGIN, MOVED, PHENOMENA, PairSettings
from truesource.evaluation.pairs.evaluate import evaluate_pairs
from truesource.evaluation.pairs.generate import GeneratedPairs, make_pairs
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.odds import unigram_log_odds, with_truth
from truesource.evaluation.pairs.pair import ALL, Pair, differing
from truesource.evaluation.pairs.phenomena.attachment import Site, noun_attachment, sites
from truesource.evaluation.pairs.phenomena.subcategorisation import TAGS
from truesource.evaluation.pairs.sampled_sentence import SampledSentence, outside_of
from truesource.generator.objectives import Objective
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

LENGTHS = LengthRange(3, 9)
SETTINGS = PairSettings(number=25, tries=40, tolerance=0.8)


@pytest.fixture(scope="module")
def toy() -> PCFG:
    return agreement_grammar()


@pytest.fixture(scope="module")
def made(toy: PCFG) -> GeneratedPairs:
    return make_pairs(toy, LENGTHS, SETTINGS, seed=5)


def probability(pcfg: PCFG, words: Sequence[str]) -> float:
    return math.fsum(p for _, p in derivations(rules_of(pcfg), words))


def has_noun_phrase(tree: Tree, pcfg: PCFG, begin: int, end: int) -> bool:
    """Whether an NP covers exactly these words."""

    def spans(node: Tree, at: int) -> list[tuple[str, int, int]]:
        label, found, first = pcfg.labels[pcfg.symbol_ids[node.label]], [], at
        for child in node.children:
            if isinstance(child, Tree):
                found += spans(child, at)
                at += len(child.leaves())
            else:
                at += 1
        return [*found, (label, first, at)]

    return ("NP", begin, end) in spans(tree, 0)


@pytest.mark.long
def test_every_phenomenon_is_found(made: GeneratedPairs) -> None:
    assert list(dict.fromkeys(pair.phenomenon for pair in made.pairs)) == list(PHENOMENA)
    assert Counter(pair.phenomenon for pair in made.pairs) == dict.fromkeys(PHENOMENA, 25)
    assert made.notes == []


@pytest.mark.long
def test_log_probabilities_are_those_of_all_derivations(toy: PCFG, made: GeneratedPairs) -> None:
    for pair in made.pairs[::3]:
        for words, value in ((pair.a, pair.log_p_a), (pair.b, pair.log_p_b)):
            p = probability(toy, words)
            if p == 0.0:
                assert value is None
            else:
                assert value == pytest.approx(math.log(p), abs=1e-10)
        assert pair.log_p_b is None or (pair.log_odds is not None and pair.log_odds >= 0.0)
        assert pair.log_p_a is not None


@pytest.mark.long
def test_one_thing_differs(toy: PCFG, made: GeneratedPairs) -> None:
    lexicon = Lexicon(toy, LENGTHS)
    for pair in made.pairs:
        assert len(pair.a) == len(pair.b)
        assert len(pair.a) in LENGTHS
        assert pair.positions == differing(pair.a, pair.b)
        old, new = pair.a[pair.positions[0]], pair.b[pair.positions[0]]
        if pair.phenomenon == "word-order":
            i, j = pair.positions
            assert j == i + 1
            assert (pair.a[i], pair.a[j]) == (pair.b[j], pair.b[i])
            assert pair.unigram_log_odds == 0.0
        elif pair.phenomenon in ("subject-verb", "determiner-noun"):
            kind = "verb" if pair.phenomenon == "subject-verb" else str(pair.strata["exchanged"])
            form = lexicon.forms.of(kind, old)  # type: ignore[arg-type]
            assert form is not None
            assert form.other == new
        else:
            assert lexicon.main_tag[old] == lexicon.main_tag[new]
            difference = lexicon.unigram[toy.word_ids[old]] - lexicon.unigram[toy.word_ids[new]]
            assert abs(difference) <= SETTINGS.tolerance
            assert pair.unigram_log_odds == pytest.approx(difference, abs=1e-12)


@pytest.mark.long
def test_no_pair_stands_twice(made: GeneratedPairs) -> None:
    keys = [(pair.phenomenon, frozenset((pair.a, pair.b))) for pair in made.pairs]
    assert len(set(keys)) == len(keys)


@pytest.mark.long
def test_verbs_that_do_not_fit_have_the_margin(made: GeneratedPairs) -> None:
    for pair in made.pairs:
        if pair.phenomenon == "subcategorisation" and pair.log_odds is not None:
            assert pair.unigram_log_odds is not None
            sign = 1.0 if pair.sampled_side == "a" else -1.0
            assert sign * (pair.log_odds - pair.unigram_log_odds) >= FRAME_MARGIN
            assert pair.strata["tag"] in TAGS


def test_frequencies_are_those_of_all_sentences(toy: PCFG) -> None:
    lengths = LengthRange(3, 5)
    strings = all_strings(rules_of(toy), 5)["S"]
    counts: Counter[str] = Counter()
    for length in range(lengths.low, lengths.high + 1):
        for words, p in strings[length].items():
            for word in words:
                counts[word] += p  # type: ignore[assignment]
    lexicon = Lexicon(toy, lengths)
    total = sum(counts.values())
    for word, number in toy.word_ids.items():
        if counts[word]:
            assert lexicon.unigram[number] == pytest.approx(math.log(counts[word] / total), abs=1e-10)
        else:
            assert lexicon.unigram[number] == -math.inf
    expected = math.log(counts["dog"] * counts["a"] / (counts["sees"] * counts["cat"]))
    assert unigram_log_odds(lexicon, ["dog", "a", "the"], ["cat", "sees", "the"]) == pytest.approx(expected, abs=1e-10)
    assert lexicon.main_tag["sleeps"] == "VBZ"


@pytest.mark.long
@given(small_pcfgs(), st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_log_odds_of_all_words_at_once(pcfg: PCFG, random: object) -> None:
    strings = [s for table in all_strings(rules_of(pcfg), 4)[pcfg.symbols[pcfg.start]] for s in table]
    words = tuple(random.choice(strings))  # type: ignore[attr-defined]
    drawn = SampledSentence(Lexicon(pcfg, None), words)
    for at in range(len(words)):
        for number, word in enumerate(pcfg.vocabulary):
            other = pcfg.log_prob(drawn.with_word(at, word))
            found = drawn.log_odds(at)[number]
            assert found == (math.inf if other == -math.inf else pytest.approx(pcfg.log_prob(words) - other, abs=1e-9))


def test_outside_weights_do_not_depend_on_the_batch(toy: PCFG) -> None:
    lexicon = Lexicon(toy, LENGTHS)
    sentences = [tuple(s.split()) for s in ("the dog sleeps", "this man sees the cats", "these men sleep")]
    for words, weights in zip(sentences, outside_of(lexicon, sentences), strict=True):
        for at in range(len(words)):
            together = SampledSentence(lexicon, words, weights).log_odds(at)
            np.testing.assert_allclose(together, SampledSentence(lexicon, words).log_odds(at), atol=1e-10)


@pytest.mark.long
def test_attachments_are_those_of_all_derivations(toy: PCFG, made: GeneratedPairs) -> None:
    lexicon, checked = Lexicon(toy, LENGTHS), 0
    for pair in made.pairs:
        if pair.phenomenon != "attachment" or len(pair.a) > 8:
            continue
        common = set(sites(SampledSentence(lexicon, pair.a), 0.9)) & set(sites(SampledSentence(lexicon, pair.b), 0.9))
        nouns: list[tuple[float, float]] = []
        for site in common:
            sides = []
            for words in (pair.a, pair.b):
                trees = derivations(rules_of(toy), words)
                noun = math.fsum(p for tree, p in trees if has_noun_phrase(tree, toy, site.verb + 1, site.end))
                total = math.fsum(p for _, p in trees)
                found = noun_attachment(SampledSentence(lexicon, words).posterior, site)
                assert found == pytest.approx(noun / total, abs=1e-10)
                sides.append((noun, total - noun))
            nouns.append((sides[0][0] / sum(sides[0]), sides[1][0] / sum(sides[1])))
            if nouns[-1] == pytest.approx((pair.facts["noun_good"], pair.facts["noun_bad"]), abs=1e-10):
                for name, i in (("log_odds_noun", 0), ("log_odds_verb", 1)):
                    assert pair.facts[name] == pytest.approx(math.log(sides[0][i] / sides[1][i]), abs=1e-8)
                checked += 1
        good, bad = pair.facts["noun_good"], pair.facts["noun_bad"]
        assert good is not None
        assert bad is not None
        drawn, changed = (good, bad) if pair.sampled_side == "a" else (bad, good)
        assert max(drawn, 1.0 - drawn) >= SETTINGS.attached
        assert (changed if drawn < 0.5 else 1.0 - changed) > MOVED
    assert checked > 5


def test_sites_by_hand(toy: PCFG) -> None:
    drawn = SampledSentence(Lexicon(toy, LENGTHS), ("the", "dog", "sees", "a", "cat", "in", "the", "man"))
    assert sites(drawn, 0.9) == [Site(2, 5, 8)]
    assert sites(SampledSentence(drawn.lexicon, ("the", "dog", "in", "the", "man", "sleeps")), 0.9) == []


@pytest.mark.long
@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_the_truth_is_right_always(toy: PCFG, made: GeneratedPairs, objective: Objective) -> None:
    found = evaluate_pairs(Oracle(toy, objective, lengths=LENGTHS), made.pairs, toy, lengths=LENGTHS)
    assert found.left_out == {}
    values = {(r["phenomenon"], r["name"]): r for r in found.records() if "by" not in r}
    for phenomenon in (ALL, *PHENOMENA):
        if phenomenon == "word-order":  # the grammar can make none of the others
            assert values[phenomenon, "accuracy"]["value"] == 1.0
            assert (phenomenon, "slope") not in values
            continue
        for name in ("accuracy", "slope", "correlation"):
            record = values[phenomenon, name]
            assert record["value"] == pytest.approx(1.0, abs=1e-10)
            if name == "accuracy":  # pairs are few, so 1 is not sure
                assert 0.8 < record["low"] < record["high"] == 1.0
            elif record["low"] is not None:  # as many sentences as an interval needs
                assert record["low"] == pytest.approx(1.0, abs=1e-10)
        for name in ("log_odds_error", "choice_error"):
            assert values[phenomenon, name]["value"] == pytest.approx(0.0, abs=1e-10)
        for name in ("choice", "context"):
            assert values[phenomenon, name]["value"] == pytest.approx(values[phenomenon, f"{name}_truth"]["value"])
    finite = np.isfinite(found.truth)
    np.testing.assert_allclose(found.odds[finite], found.truth[finite], atol=1e-10)


@pytest.mark.long
def test_masked_odds_are_sums_over_substitutions(toy: PCFG, made: GeneratedPairs) -> None:
    pair = next(p for p in made.pairs if p.possible)
    found = evaluate_pairs(Oracle(toy, "masked"), [pair], toy)

    def pseudo(words: Sequence[str]) -> float:
        total = 0.0
        for i, word in enumerate(words):
            joint = {w: probability(toy, (*words[:i], w, *words[i + 1 :])) for w in toy.vocabulary}
            total += math.log(joint[word] / math.fsum(joint.values()))
        return total

    assert found.truth[0] == pytest.approx(pseudo(pair.a) - pseudo(pair.b), abs=1e-10)


@pytest.mark.long
def test_odds_in_any_order_are_given_the_lengths(toy: PCFG, made: GeneratedPairs) -> None:
    pair = next(p for p in made.pairs if p.possible)
    found = evaluate_pairs(Oracle(toy, "any-order"), [pair], toy)
    pmf = toy.exact.length_pmf(max(len(pair.a), len(pair.b)))
    given = [math.log(probability(toy, words) / pmf[len(words)]) for words in (pair.a, pair.b)]
    assert found.truth[0] == pytest.approx(given[0] - given[1], abs=1e-10)
    assert "odds:given-length" in found.records()[0]["signature"]


@pytest.mark.long
def test_one_seed_gives_the_same_pairs(toy: PCFG, made: GeneratedPairs) -> None:
    assert make_pairs(toy, LENGTHS, SETTINGS, seed=5).pairs == made.pairs
    assert make_pairs(toy, LENGTHS, PairSettings(number=25, tries=40), seed=6).pairs != made.pairs


@pytest.mark.long
@pytest.mark.parametrize("name", PHENOMENA)
def test_a_phenomenon_does_not_depend_on_the_others(toy: PCFG, made: GeneratedPairs, name: str) -> None:
    alone = make_pairs(toy, LENGTHS, SETTINGS.model_copy(update={"phenomena": (name,)}), seed=5)
    assert alone.pairs == [pair for pair in made.pairs if pair.phenomenon == name]


def test_impossible_sides_are_flagged() -> None:
    strict = agreement_grammar(strict=True)
    wanted = ("subject-verb", "determiner-noun", "word-order")
    pairs = make_pairs(strict, LENGTHS, PairSettings(number=10, phenomena=wanted)).pairs
    assert {pair.impossible for pair in pairs} == {"b"}
    assert all(pair.log_odds is None and pair.log_p_b is None and pair.sampled_side == "a" for pair in pairs)
    found = evaluate_pairs(Oracle(strict), pairs, strict)
    names = {r["name"]: r["value"] for r in found.records() if r["phenomenon"] == ALL and "by" not in r}
    assert (names["accuracy"], names["impossible"], names["choice"]) == (1.0, 30, 1.0)
    assert "slope" not in names
    assert "correlation" not in names
    with pytest.raises(InputError, match="no pair was found in 20 sentences"):
        make_pairs(strict, LENGTHS, PairSettings(number=2, tries=10, phenomena=wanted[:1], possible=True))


@pytest.mark.long
def test_only_possible_pairs_on_request(toy: PCFG) -> None:
    some = make_pairs(toy, LENGTHS, PairSettings(number=8, tries=60, tolerance=0.8, possible=True))
    assert some.pairs
    assert all(pair.possible for pair in some.pairs)


@pytest.mark.long
def test_probabilities_are_filled_in(toy: PCFG, made: GeneratedPairs) -> None:
    bare = [Pair(p.a, p.b, p.phenomenon, None, None, None, p.positions, p.source, p.sampled_side) for p in made.pairs]
    for pair, given_back in zip(made.pairs, with_truth(bare, Lexicon(toy, LENGTHS)), strict=True):
        assert given_back.log_odds == (None if pair.log_odds is None else pytest.approx(pair.log_odds, abs=1e-10))
        assert given_back.unigram_log_odds == pair.unigram_log_odds


def test_what_a_grammar_lacks_is_said() -> None:
    bare = agreement_grammar(relabel={"VBZ": "V", "VBP": "V", "DT": "D"})
    made = make_pairs(bare, LENGTHS, PairSettings(number=3))
    assert {pair.phenomenon for pair in made.pairs} == {"word-order"}
    assert len(made.notes) == 4
    assert made.notes[0].startswith("no pairs of subject-verb: the grammar has no two forms of a verb")
    assert "no determiner that shows number" in made.notes[1]
    assert "no two words of one tag of verbs (VB, VBD" in made.notes[2]
    assert made.notes[3] == "no pairs of attachment: the grammar has no label VB or VBD or VBZ or VBP or VBN or VBG"
    with pytest.raises(InputError, match="none of the phenomena asked for; no pairs of subject-verb"):
        make_pairs(bare, LENGTHS, PairSettings(phenomena=("subject-verb", "attachment")))


def test_phenomena_that_are_rare_are_noted(toy: PCFG) -> None:
    made = make_pairs(toy, LengthRange(3, 3), PairSettings(number=5, tries=2, phenomena=("subject-verb", "attachment")))
    assert made.notes[-1] == "0 of 5 pairs of attachment were found in 10 sentences"
