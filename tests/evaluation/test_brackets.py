"""Bracket scores against cases counted by hand, evalb's own sample, and a slow count that works otherwise."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.evaluation.parsing import BracketCounts, Matches, brackets, compare_brackets, pooled
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.brackets import read_text


def tree(text: str) -> Tree:
    """One bracketing."""
    (found,) = [found for _, found in read_text(text)]
    return found


def counts(found: BracketCounts) -> BracketCounts:
    """Those of the corpus alone."""
    return BracketCounts(**{field.name: getattr(found, field.name) for field in fields(BracketCounts)})


GOLD = "(ROOT (S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat)) (PP (IN in) (NP (NN town)))) (. .)))"
#: the PP is in the noun phrase, and town is a proper noun
NOUN = "(ROOT (S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (NP (DT a) (NN cat)) (PP (IN in) (NP (NNP town))))) (. .)))"


def test_by_hand() -> None:
    # gold: S 0-7, NP 0-2, VP 2-7, NP 3-5, PP 5-7, NP 6-7; the parse has NP 3-7 besides
    found = compare_brackets([tree(GOLD)], [tree(NOUN)])
    assert counts(found) == BracketCounts(
        matched=6, gold=6, proposed=7, matched_unlabelled=6, exact=0, crossing=0, uncrossed=1, few_crossing=1,
        tagged=6, words=7, sentences=1, missing=0,
    )  # fmt: skip
    assert found.precision == pytest.approx(6 / 7)
    assert found.recall == 1.0
    assert found.f1 == pytest.approx(12 / 13)
    assert found.tagging_accuracy == pytest.approx(6 / 7)
    assert found.by_label == {
        "NP": Matches(matched=3, gold=3, proposed=4), "PP": Matches(matched=1, gold=1, proposed=1),
        "S": Matches(matched=1, gold=1, proposed=1), "VP": Matches(matched=1, gold=1, proposed=1),
    }  # fmt: skip
    assert next(iter(found.by_label)) == "NP"
    assert found.by_tag["NN"] == Matches(matched=2, gold=3, proposed=2)
    assert found.by_tag["NNP"] == Matches(matched=0, gold=0, proposed=1)
    assert list(found.by_tag)[-1] == "NNP"
    assert found.confusions == {("NN", "NNP"): 1}
    assert found.by_sentence[0].length == 8  # with punctuation
    assert str(found).startswith("labelled F1 92.31% (precision 85.71%, recall 100.00%), exact match 0.00%")


def test_the_spans_of_a_tree() -> None:
    found, tags = brackets(tree(GOLD), [False] * 7 + [True])
    assert dict(found) == {
        (0, 7, "S"): 1, (0, 2, "NP"): 1, (2, 7, "VP"): 1, (3, 5, "NP"): 1, (5, 7, "PP"): 1, (6, 7, "NP"): 1
    }  # fmt: skip
    assert tags == ["DT", "NN", "VBD", "DT", "NN", "IN", "NN"]


@pytest.mark.parametrize(
    ("one", "other", "matched"),
    [
        # punctuation may hang anywhere, and phrases of nothing else are no brackets
        ("(S (NP (NN a)) (, ,) (VP (VB b)) (. .))", "(S (NP (NN a) (, ,)) (VP (VB b)) (X (. .)))", 3),
        ("(S (`` ``) (NP (NN a)) (VP (VB b)) ('' ''))", "(S (NP (`` ``) (NN a)) (VP (VB b) ('' '')))", 3),
        # the root says nothing, whatever it is called, and may be missing
        ("(ROOT (S (NN a) (VB b)))", "(S (NN a) (VB b))", 1),
        ("(TOP (S (NN a) (VB b)))", "( (S (NN a) (VB b)))", 1),
        # equal labels; function tags
        ("(S (VB a) (PRT (RP b)))", "(S (VB a) (ADVP (RP b)))", 2),
        ("(S (NP-SBJ (NN a)) (VP=2 (VB b)))", "(S (NP (NN a)) (VP (VB b)))", 3),
        # a trace is not there
        ("(S (NP (-NONE- *)) (VP (VB b)))", "(S (VP (VB b)))", 2),
        # a bracket that stands twice counts twice
        ("(S (NP (NP (NN a))) (VB b))", "(S (NP (NP (NN a))) (VB b))", 3),
    ],
    ids=["comma", "quotes", "root", "top", "prt", "functions", "trace", "twice"],
)
def test_what_counts_as_the_same(one: str, other: str, matched: int) -> None:
    for pair in ((one, other), (other, one)):
        gold, parsed = map(tree, pair)
        found = compare_brackets([gold], [parsed])
        assert (found.matched, found.gold, found.proposed, found.exact) == (matched, matched, matched, 1)
        assert found.f1 == found.tagging_accuracy == found.exact_match == 1.0


def test_a_bracket_matches_once() -> None:
    found = compare_brackets([tree("(S (NP (NN a)) (VB b))")], [tree("(S (NP (NP (NN a))) (VB b))")])
    assert (found.matched, found.gold, found.proposed, found.exact) == (2, 2, 3, 0)


def test_labels_and_order_of_a_chain() -> None:
    """The order of a unary chain is not seen, its labels are."""
    one = tree("(S (VP (NP (NN a) (NN b))))")
    assert compare_brackets([one], [tree("(NP (VP (S (NN a) (NN b))))")]).exact == 1
    assert compare_brackets([one], [tree("(S (X (NP (NN a) (NN b))))")]).matched == 2


def test_counts_are_pooled_and_a_missing_parse_loses_its_brackets() -> None:
    gold = [tree(GOLD), tree("(S (NP (NN a)) (VP (VB b)))"), tree("(S (NN a) (VB b))"), tree("(S (NN a) (, x))")]
    #: one with all right, one with one right of three, one missing, one where the comma is in a phrase of its own
    parsed = [tree(GOLD), tree("(S (VP (NN a)) (NP (VB b)))"), None, tree("(S (NN a) (NP (NN x)))")]
    found = compare_brackets(gold, parsed)
    assert counts(found) == BracketCounts(
        matched=8, gold=11, proposed=10, matched_unlabelled=10, exact=2, crossing=0, uncrossed=3, few_crossing=3,
        tagged=10, words=12, sentences=4, missing=1,
    )  # fmt: skip
    assert found.exact_match == 0.5
    assert found.f1 == pytest.approx(16 / 21)


def test_what_is_punctuation_the_treebank_says() -> None:
    """A parse that tags a dash as a noun is wrong about the brackets around it only."""
    gold = tree("(S (NP (NN a)) (: -) (VP (VB b)))")
    assert compare_brackets([gold], [tree("(S (NP (NN a) (NN -)) (VP (VB b)))")]).f1 == 1.0
    assert compare_brackets([tree("(S (NP (NN a) (NN -)) (VP (VB b)))")], [gold]).f1 < 1.0


def test_other_words_are_refused() -> None:
    with pytest.raises(InputError, match="parse 1 has other words than tree 1"):
        compare_brackets([tree("(S (NN a) (VB b))")], [tree("(S (NN a) (VB c))")])


def test_different_numbers_of_sentences_are_refused() -> None:
    with pytest.raises(InputError, match="has 1 trees and there are 2 parses"):
        compare_brackets([tree(GOLD)], [None, None])


def test_nothing_to_count_is_zero_not_a_number_that_is_none() -> None:
    found = compare_brackets([tree("(ROOT (NN a))")], [tree("(ROOT (VB a))")])
    assert (found.precision, found.recall, found.f1, found.tagging_accuracy) == (0.0, 0.0, 0.0, 0.0)
    assert found.exact_match == 1.0


def test_crossing_brackets_by_hand() -> None:
    gold = tree("(S (NP (A a) (B b)) (VP (C c) (PP (D d) (E e))))")
    #: b-c crosses NP and VP, c-d crosses PP; S does not cross
    parsed = tree("(S (A a) (X (B b) (Y (C c) (D d))) (E e))")
    found = compare_brackets([gold, gold, gold], [parsed, gold, None])
    assert found.by_sentence[0].crossing == found.crossing == 2  # X (b to d) and Y (c to d)
    assert (found.uncrossed, found.few_crossing, found.parsed) == (1, 2, 2)
    assert (found.no_crossing, found.at_most_two_crossing) == (0.5, 1.0)
    #: a bracket that stands twice crosses twice
    twice = tree("(S (A a) (X (Z (Y (B b) (C c)))) (D d) (E e))")
    assert compare_brackets([gold], [twice]).crossing == 3
    assert compare_brackets([gold], [twice]).at_most_two_crossing == 0.0


def test_unlabelled_brackets_by_hand() -> None:
    gold = tree("(S (NP (A a) (B b)) (VP (VP (C c) (D d))))")
    found = compare_brackets([gold], [tree("(X (NP (A a) (B b)) (NP (C c) (D d)))")])
    assert (found.matched, found.gold, found.proposed) == (1, 4, 3)
    assert found.unlabelled == Matches(matched=3, gold=4, proposed=3)
    assert (found.unlabelled.precision, found.unlabelled.recall) == (1.0, 0.75)
    assert found.unlabelled.f1 == pytest.approx(6 / 7)


SAMPLE = "(S (A (P this)) (B (Q is) (A (R a) (T test))))"


@pytest.mark.parametrize(
    ("parsed", "matched", "proposed", "crossing", "tagged"),
    [
        (SAMPLE, 4, 4, 0, 4),
        ("(S (A (P this)) (B (Q is) (C (R a) (T test))))", 3, 4, 0, 4),
        ("(S (A (P this)) (B (Q is) (A (R a) (U test))))", 4, 4, 0, 3),
        ("(S (C (P this)) (B (Q is) (A (R a) (U test))))", 3, 4, 0, 3),
        ("(S (A (P this)) (B (Q is) (R a) (A (T test))))", 3, 4, 0, 4),
        ("(S (A (P this) (Q is)) (A (R a) (T test)))", 2, 3, 1, 4),
        ("(S (P this) (Q is) (R a) (T test))", 1, 1, 0, 4),
        ("(S (A (P this)) (B (Q is) (A (A (R a) (T test)))))", 4, 5, 0, 4),
        ("(S (A (P this)) (B (Q is) (A (A (A (A (A (R a) (T test))))))))", 4, 8, 0, 4),
        ("(TOP (S (A (P this)) (B (Q is) (A (R a) (T test)))))", 4, 4, 0, 4),
    ],
)
def test_the_sample_of_evalb(parsed: str, matched: int, proposed: int, crossing: int, tagged: int) -> None:
    """What evalb is documented to print for its own sample."""
    (row,) = compare_brackets([tree(SAMPLE)], [tree(parsed)]).by_sentence
    assert (row.matched, row.gold, row.proposed, row.crossing) == (matched, 4, proposed, crossing)
    assert (row.words, row.tagged, row.length) == (4, tagged, 4)


def test_tags_that_are_confused_come_with_the_most_frequent_first() -> None:
    gold = [tree("(S (NN a) (NN b) (VB c) (. d))"), tree("(S (NN a) (PRT b))")]
    found = compare_brackets(gold, [tree("(S (VB a) (VB b) (NN c) (NN d))"), tree("(S (VB a) (ADVP b))")])
    assert list(found.confusions.items()) == [(("NN", "VB"), 3), (("VB", "NN"), 1)]
    assert found.by_tag["ADVP"] == Matches(matched=1, gold=1, proposed=1)
    assert "." not in found.by_tag  # punctuation does not count, whatever the parse calls it


def test_some_sentences_together() -> None:
    gold = [tree(GOLD), tree("(S (NN a) (VB b))")]
    found = compare_brackets(gold, [tree(NOUN), None])
    assert pooled(found.by_sentence) == counts(found)
    assert pooled(found.by_sentence[:1]) == counts(compare_brackets(gold[:1], [tree(NOUN)]))
    nothing = pooled([])
    assert (nothing.exact_match, nothing.no_crossing, nothing.at_most_two_crossing) == (0,) * 3


LABELS = ["NP", "VP", "NP-SBJ=2", "ADVP", "PRT", "TOP"]
TAGS = ["NN", "VB", "PRT", "ADVP", ",", ".", "-NONE-"]


@st.composite
def same_words(draw: st.DrawFn) -> tuple[Tree, Tree | None]:
    """Two trees over the same words, traces wherever they like; now and then no parse."""
    n = draw(st.integers(1, 7))
    trees = [_above(draw, [Tree(_tag(draw), (f"w{i}",)) for i in range(n)]) for _ in range(2)]
    return trees[0], draw(st.sampled_from([trees[1], trees[1], trees[1], None]))


def _tag(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(TAGS[:-1]))


def _above(draw: st.DrawFn, nodes: list[Tree]) -> Tree:
    """Joins neighbours until one node is left; traces in between are no words."""
    for _ in range(draw(st.integers(0, 2))):
        nodes.insert(draw(st.integers(0, len(nodes))), Tree("-NONE-", ("*",)))
    joins = draw(st.integers(0, 8))
    for _ in range(joins):
        begin = draw(st.integers(0, len(nodes) - 1))
        end = draw(st.integers(begin + 1, len(nodes)))
        nodes[begin:end] = [Tree(draw(st.sampled_from(LABELS)), tuple(nodes[begin:end]))]
    return Tree("ROOT", tuple(nodes))


def slow(tree: Tree, punctuation: set[str]) -> tuple[list[tuple[str, frozenset[str]]], list[tuple[str, str]]]:
    """Labels with the sets of words below them, and the words with their tags, by plain recursion."""
    if isinstance(tree.children[0], str):
        kept = tree.label != "-NONE-" and tree.children[0] not in punctuation
        return [], [(tree.children[0], {"PRT": "ADVP"}.get(tree.label, tree.label))] if kept else []
    found, words = [], []
    for child in tree.children:
        assert isinstance(child, Tree)
        below, inside = slow(child, punctuation)
        found += below
        words += inside
    label = {"NP-SBJ=2": "NP", "PRT": "ADVP"}.get(tree.label, tree.label)
    if words and label not in ("TOP", "ROOT"):
        found.append((label, frozenset(word for word, _ in words)))
    return found, words


def taken(gold: list[object], proposed: list[object]) -> int:
    """How many of the gold brackets find one that no other has taken."""
    left, found = list(proposed), 0
    for each in gold:
        if each in left:
            left.remove(each)
            found += 1
    return found


@pytest.mark.long
@given(st.lists(same_words(), min_size=1, max_size=4))
def test_counts_are_those_of_a_slow_independent_count(pairs: list[tuple[Tree, Tree | None]]) -> None:
    found = compare_brackets(*map(list, zip(*pairs, strict=True)))  # type: ignore[arg-type]
    labels: Counter[str] = Counter()
    for (gold, parsed), row in zip(pairs, found.by_sentence, strict=True):
        hidden = {str(node.children[0]) for node in gold.subtrees() if node.is_preterminal and node.label in (",", ".")}
        right, words = slow(gold, hidden)
        ours, our_words = slow(parsed, hidden) if parsed is not None else ([], [])
        spans, our_spans = [span for _, span in right], [span for _, span in ours]
        matched = taken(list(right), list(ours))
        crossing = sum(any(one & other and one - other and other - one for other in spans) for one in our_spans)
        assert (row.gold, row.proposed, row.matched) == (len(right), len(ours), matched)
        assert (row.matched_unlabelled, row.crossing) == (taken(list(spans), list(our_spans)), crossing)
        assert (row.words, row.tagged) == (len(words), len(set(words) & set(our_words)))
        assert row.length == sum(leaf != "*" for leaf in gold.leaves())
        assert row.exact == (parsed is not None and matched == len(right) == len(ours))
        labels.update(label for label, _ in right)
    assert {label: each.gold for label, each in found.by_label.items() if each.gold} == labels
    for name in ("gold", "proposed", "matched"):
        assert getattr(found, name) == sum(getattr(each, name) for each in found.by_label.values())
    assert found.words == sum(each.gold for each in found.by_tag.values())
    assert found.tagged == sum(each.matched for each in found.by_tag.values())
    confused = sum(found.confusions.values())
    assert confused == sum(row.words - row.tagged for row in found.by_sentence if row.parsed)
