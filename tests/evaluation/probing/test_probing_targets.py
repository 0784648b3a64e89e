"""Targets of probes against enumeration of derivations, and of whole languages."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from random_grammars import cases
from reference_inference import all_strings, derivations, rules_of

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.probing.targets import NONE, constituents, span_posterior, span_targets, word_targets
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.posterior import posterior
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

TOY = PCFG.from_text("""\
S -> NP VP 1.0
NP -> D N 0.5 | N 0.3 | NP PP 0.2
VP -> V NP 0.5 | V 0.3 | VP PP 0.2
PP -> P NP 1.0
D -> the 1.0
N -> saw 0.3 | dog 0.4 | her 0.3
V -> saw 0.6 | dog 0.4
P -> with 0.7 | her 0.3
""")
LENGTHS = LengthRange(2, 6)


def weighted(pcfg: PCFG, sentence: list[str]) -> list[tuple[Tree, float]]:
    """All derivations with their posterior probabilities."""
    found = derivations(rules_of(pcfg), sentence)
    total = math.fsum(p for _, p in found)
    return [(tree, p / total) for tree, p in found]


def tags_of(tree: Tree) -> list[str]:
    return [node.label for node in tree.subtrees() if node.is_preterminal]


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(cases(max_size=4, most=3, unary_cycles=False))
def test_posteriors_are_those_of_all_derivations(case: tuple[PCFG, list[list[str]]]) -> None:
    pcfg, sentences = case
    possible = [s for s in sentences if derivations(rules_of(pcfg), s)]
    try:
        found = word_targets(Oracle(pcfg), sentences, kind="state")
    except InputError as error:
        assert not possible or "at least two labels" in str(error)
        return
    assert found.posterior.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert [sentences[i] for i in range(len(sentences)) if i not in found.excluded] == possible
    row = 0
    for sentence in possible:
        wanted = np.zeros((len(sentence), len(found.labels)))
        for tree, p in weighted(pcfg, sentence):
            for place, tag in enumerate(tags_of(tree)):
                wanted[place, found.labels.index(tag)] += p
        assert found.posterior[row : row + len(sentence)] == pytest.approx(wanted, abs=1e-10)
        assert np.array_equal(found.first[row : row + len(sentence)], np.arange(len(sentence)))
        row += len(sentence)
    assert row == len(found) == len(found.key)


@pytest.mark.long
def test_the_posterior_given_the_left_is_that_of_all_continuations() -> None:
    """Joint weight of tag and prefix over every derivation of every sentence of the length range."""
    sentence = ["saw", "dog", "her", "dog"]
    joint: list[defaultdict[str, float]] = [defaultdict(float) for _ in sentence]
    rules = rules_of(TOY)
    for strings in all_strings(rules, LENGTHS.high)["S"][LENGTHS.low :]:
        for string in strings:
            shared = next((i for i, (a, b) in enumerate(zip(string, sentence, strict=False)) if a != b), len(string))
            if shared:
                for tree, p in derivations(rules, string):
                    for place, tag in enumerate(tags_of(tree)[:shared][: len(sentence)]):
                        joint[place][tag] += p
    found = word_targets(Oracle(TOY, lengths=LENGTHS), [sentence], given="left")
    whole = word_targets(Oracle(TOY, lengths=LENGTHS), [sentence])
    for place, weights in enumerate(joint):
        total = math.fsum(weights.values())
        wanted = [weights[label] / total for label in found.labels]
        assert found.posterior[place] == pytest.approx(wanted, abs=1e-10)
    left, full = (dict(zip(t.labels, t.posterior[2], strict=True)) for t in (found, whole))
    assert full["P"] == 1.0  # a noun follows, so it is no noun itself, which the left alone does not tell
    assert 0.1 < left["N"] < 0.9


@pytest.mark.long
def test_the_right_label_is_the_most_probable_or_that_of_a_tree() -> None:
    sentences = [["her", "saw", "her", "dog"], ["saw", "saw"], ["dog", "dog", "her", "her"]] * 700
    best = word_targets(Oracle(TOY), sentences)
    assert np.array_equal(best.truth, best.posterior.argmax(axis=1))
    drawn = word_targets(Oracle(TOY), sentences, truth="sampled", seed=5)
    again = word_targets(Oracle(TOY), sentences, truth="sampled", seed=5)
    assert np.array_equal(drawn.truth, again.truth)
    words = len(sentences[0]) + len(sentences[1]) + len(sentences[2])
    for place in range(words):  # relative frequencies against the exact posterior, five standard errors
        seen = np.bincount(drawn.truth[place::words], minlength=len(drawn.labels)) / 700
        wanted = drawn.posterior[place]
        assert (np.abs(seen - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / 700) + 1e-12).all()


def test_words_that_the_model_does_not_know_are_unknown_to_the_target_too() -> None:
    oracle = Oracle(TOY, vocabulary=["the", "saw", "with", "her"])
    found = word_targets(oracle, [["the", "dog", "saw"]])
    assert found.key == ("the", "<unk>", "saw")


@pytest.mark.long
def test_coarse_tags_sum_over_the_symbols_of_a_label() -> None:
    plain = PCFG.from_text(
        "S -> N0 V 0.5 | N1 V 0.3 | X V 0.2\nN0 -> a 0.5 | b 0.5\nN1 -> a 1.0\nX -> a 1.0\nV -> c 1.0"
    )
    split = replace(plain, labels=tuple(symbol.rstrip("01") for symbol in plain.symbols))
    fine, coarse = (word_targets(Oracle(split), [["a", "c"]], kind=kind) for kind in ("state", "tag"))
    weights = {"N0": 0.25, "N1": 0.3, "X": 0.2, "V": 0.0}
    assert dict(zip(fine.labels, fine.posterior[0] * 0.75, strict=True)) == pytest.approx(weights)
    weights = {"N": 0.55, "X": 0.2, "V": 0.0}
    assert dict(zip(coarse.labels, coarse.posterior[0] * 0.75, strict=True)) == pytest.approx(weights)
    assert [coarse.labels[i] for i in coarse.truth] == ["N", "V"]
    assert [fine.labels[i] for i in fine.truth] == ["N1", "V"]


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(cases(max_size=4, unary_cycles=False))
def test_span_posteriors_are_those_of_all_derivations(case: tuple[PCFG, list[list[str]]]) -> None:
    pcfg, (sentence, *_) = case
    trees = derivations(rules_of(pcfg), sentence)
    if not trees:
        return
    found = posterior(pcfg, sentence)
    names = [NONE, *pcfg.symbols]
    total = math.fsum(p for _, p in trees)
    n = len(sentence)
    for i in range(n):
        for j in range(i + 2, n + 1):
            if (i, j) == (0, n):
                continue
            wanted = np.zeros(len(names))
            for tree, p in trees:
                wanted[names.index(constituents(tree, pcfg).get((i, j), NONE))] += p / total
            row = span_posterior(found, i, j, names)
            assert row == pytest.approx(wanted, abs=1e-10)
            assert row.sum() == pytest.approx(1.0, abs=1e-10)


def test_constituents_are_the_lowest_branching_nodes() -> None:
    pcfg = PCFG.from_rules(
        [("S", ("X", "D"), 1.0), ("X", ("@X",), 0.5), ("X", ("Y",), 0.5), ("@X", ("D", "D"), 1.0),
         ("Y", ("D", "D"), 1.0), ("D", ("d",), 1.0)],
        start="S", words=lambda _, children: children[0] == "d",
    )  # fmt: skip
    leaf = Tree("D", ("d",))
    plain = Tree("S", (Tree("X", (Tree("Y", (leaf, leaf)),)), leaf))
    marked = Tree("S", (Tree("X", (Tree("@X", (leaf, leaf)),)), leaf))
    assert constituents(plain, pcfg) == {(0, 2): "Y"}  # the whole sentence says nothing
    assert constituents(marked, pcfg) == {}  # what binarisation made is no phrase
    row = span_posterior(posterior(pcfg, ["d", "d", "d"]), 0, 2, [NONE, "S", "X", "Y", "D"])
    assert row == pytest.approx([0.5, 0, 0, 0.5, 0], abs=1e-12)


@pytest.mark.long
def test_spans_are_balanced_and_carry_the_words_at_their_ends() -> None:
    sentences = [["her", "saw", "the", "dog", "with", "her"], ["the", "dog", "saw", "the", "dog"]] * 20
    found = span_targets(Oracle(TOY), sentences, truth="sampled", seed=2)
    assert (found.last - found.first >= 1).all()
    for sentence, first, last, key in zip(found.sentence, found.first, found.last, found.key, strict=True):
        assert key == f"{sentences[sentence][first]} … {sentences[sentence][last]}"
        assert (first, last) != (0, len(sentences[sentence]) - 1)
    length = found.last - found.first
    apart = np.zeros(len(found), dtype=bool)  # items that are no constituents of the derivation that spans are from
    for number, sentence in enumerate(sentences):
        own = np.flatnonzero(found.sentence == number)
        tree = posterior(TOY, sentence).sample(np.random.default_rng([2, number]))
        drawn = constituents(tree, TOY)
        spans = list(zip(found.first[own].tolist(), (found.last[own] + 1).tolist(), strict=True))
        assert set(drawn) <= set(spans)
        apart[own] = [span not in drawn for span in spans]
    for size in np.unique(length):  # as many of each length that are none, as far as there are enough
        of_size = apart[length == size]
        assert of_size.sum() <= (~of_size).sum()
    assert apart.mean() > 0.4
    assert np.array_equal(found.first, span_targets(Oracle(TOY), sentences, seed=2).first)  # whatever counts as right
    assert np.array_equal(found.truth, span_targets(Oracle(TOY), sentences, truth="sampled", seed=2).truth)


@pytest.mark.long
def test_sampled_labels_of_spans_are_draws_from_their_posteriors() -> None:
    """Given that a span is an item: by bins of the posterior of none, and all labels by place, five standard errors."""
    sentences = [["her", "saw", "the", "dog", "with", "her"], ["her", "saw", "her", "dog", "her", "saw"]] * 400
    found = span_targets(Oracle(TOY), sentences, truth="sampled", seed=2)
    wanted = found.posterior[:, found.labels.index(NONE)]
    got = found.truth == found.labels.index(NONE)
    inner = (wanted > 0.05) & (wanted < 0.95)
    assert inner.sum() > 500
    for low, high in ((0.05, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.95)):
        some = (wanted >= low) & (wanted < high)
        spread = math.sqrt((wanted[some] * (1 - wanted[some])).sum())
        assert abs(got[some].sum() - wanted[some].sum()) <= 5 * spread + 1e-9
    places = np.stack([found.sentence % 2, found.first, found.last], axis=1)
    for place in np.unique(places, axis=0):
        some = np.flatnonzero((places == place).all(axis=1))
        shares = np.bincount(found.truth[some], minlength=len(found.labels)) / len(some)
        law = found.posterior[some[0]]
        assert (np.abs(shares - law) <= 5 * np.sqrt(law * (1 - law) / len(some)) + 1e-12).all()


@pytest.mark.long
def test_what_cannot_be_a_target_is_refused() -> None:
    with pytest.raises(InputError, match=r"the grammar can make none of the 1 sentences"):
        word_targets(Oracle(TOY), [["with", "with"]])
    one = PCFG.from_text("S -> A A 1.0\nA -> a 1.0")
    with pytest.raises(InputError, match=r"at least two labels, but here the label is always A"):
        word_targets(Oracle(one), [["a", "a"]])
    with pytest.raises(InputError, match=r"have no spans to probe: all are too short"):
        span_targets(Oracle(TOY), [["her", "saw"]])
