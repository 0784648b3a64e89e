"""Bracket scores against cases counted by hand."""

from __future__ import annotations

import pytest

from truesource.evaluation.measures.brackets import Brackets, brackets, compare_brackets, punctuation
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.reader import read_text


def tree(text: str) -> Tree:
    """One bracketing."""
    (found,) = [found for _, found in read_text(text)]
    return found


GOLD = "(ROOT (S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat)) (PP (IN in) (NP (NN town)))) (. .)))"
#: the PP is in the noun phrase, and town is a proper noun
NOUN = "(ROOT (S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (NP (DT a) (NN cat)) (PP (IN in) (NP (NNP town))))) (. .)))"


def test_by_hand() -> None:
    # gold: S 0-7, NP 0-2, VP 2-7, NP 3-5, PP 5-7, NP 6-7; the parse has NP 3-7 besides
    found = compare_brackets([tree(GOLD)], [tree(NOUN)])
    assert found == Brackets(matched=6, gold=6, proposed=7, exact=0, tagged=6, words=7, sentences=1, missing=0)
    assert found.precision == pytest.approx(6 / 7)
    assert found.recall == 1.0
    assert found.f1 == pytest.approx(12 / 13)
    assert found.tagging == pytest.approx(6 / 7)
    assert str(found).startswith("labelled F1 92.31% (precision 85.71%, recall 100.00%), exact match 0.00%")


def test_the_spans_of_a_tree() -> None:
    left_out = punctuation(tree(GOLD))
    assert left_out == [False] * 7 + [True]
    found, tags = brackets(tree(GOLD), left_out)
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
        assert found.f1 == found.tagging == found.exact_match == 1.0


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
    assert found == Brackets(matched=8, gold=11, proposed=10, exact=2, tagged=10, words=12, sentences=4, missing=1)
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
    assert (found.precision, found.recall, found.f1, found.tagging) == (0.0, 0.0, 0.0, 0.0)
    assert found.exact_match == 1.0
