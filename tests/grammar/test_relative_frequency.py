"""Relative frequencies against counts made by hand, and what such an estimate must satisfy."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.grammar.estimate.relative_frequency import relative_frequency
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree


def leaf(label: str, word: str) -> Tree:
    return Tree(label, (word,))


def node(label: str, *children: Tree) -> Tree:
    return Tree(label, children)


def sentence(*words: str) -> Tree:
    """ROOT over a right-branching S whose last word is an N."""
    tree = node("S", leaf("N", words[-1]))
    for word in reversed(words[:-1]):
        tree = node("S", leaf("A", word), tree)
    return node("ROOT", tree)


inner = st.recursive(
    st.builds(leaf, st.sampled_from("ABC"), st.sampled_from("xyz")),
    lambda children: st.builds(
        lambda label, parts: Tree(label, tuple(parts)),
        st.sampled_from("ABC"),
        st.lists(children, min_size=1, max_size=2),
    ),
    max_leaves=6,
)
treebanks = st.lists(st.builds(lambda tree: node("ROOT", tree), inner), min_size=1, max_size=6)


def test_probabilities_are_the_counts_made_by_hand() -> None:
    pcfg = relative_frequency([sentence("big", "dog"), sentence("big", "old", "cat"), sentence("dog")])
    assert pcfg.symbols == ("ROOT", "A", "N", "S")
    rules = {}
    for table, logp in ((pcfg.binary, pcfg.binary_logp), (pcfg.unary, pcfg.unary_logp)):
        for rule, p in zip(table, np.exp(logp), strict=True):
            rules[tuple(pcfg.symbols[i] for i in rule)] = p
    for (parent, word), p in zip(pcfg.lexical, np.exp(pcfg.lexical_logp), strict=True):
        rules[pcfg.symbols[parent], repr(pcfg.vocabulary[word])] = p
    assert rules == pytest.approx(
        {
            ("ROOT", "S"): 1,
            ("S", "A", "S"): 3 / 6,
            ("S", "N"): 3 / 6,
            ("A", "'big'"): 2 / 3,
            ("A", "'old'"): 1 / 3,
            ("N", "'dog'"): 2 / 3,
            ("N", "'cat'"): 1 / 3,
        },
        rel=1e-14,
    )
    assert pcfg.meta["trees"] == 3 and pcfg.meta["tokens"] == 6 and pcfg.meta["binarised_trees"] == 0


def test_wide_nodes_are_binarised_and_reported() -> None:
    wide = node("ROOT", node("S", leaf("A", "x"), leaf("B", "y"), leaf("C", "z")))
    pcfg = relative_frequency([wide, node("ROOT", node("S", leaf("A", "x"), leaf("B", "y")))])
    assert pcfg.meta["binarised_trees"] == 1
    assert "@S" in pcfg.labels
    assert len(pcfg.binary) == 3


def test_a_word_spelt_like_a_label_stays_a_word() -> None:
    pcfg = relative_frequency([node("ROOT", node("A", leaf("B", "B"))), node("ROOT", leaf("A", "B"))])
    assert pcfg.vocabulary == ("B",)
    assert [pcfg.symbols[i] for i in pcfg.lexical[:, 0]] == ["A", "B"]
    np.testing.assert_allclose(np.exp(pcfg.unary_logp), [1.0, 0.5])  # ROOT -> A, A -> B


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(treebanks)
def test_rows_sum_to_one_and_expected_counts_match_the_treebank(trees: list[Tree]) -> None:
    """Under the estimate a label is as frequent per derivation as in the treebank (Chi and Geman 1998)."""
    pcfg = relative_frequency(trees)
    np.testing.assert_allclose(pcfg.row_sums, 1.0, rtol=0, atol=1e-12)
    n = len(pcfg.symbols)
    children = np.zeros((n, n))
    for (a, b, c), p in zip(pcfg.binary, np.exp(pcfg.binary_logp), strict=True):
        children[a, b] += p
        children[a, c] += p
    for (a, b), p in zip(pcfg.unary, np.exp(pcfg.unary_logp), strict=True):
        children[a, b] += p
    visits = np.linalg.solve(np.eye(n) - children.T, np.eye(n)[pcfg.start])
    observed = Counter(sub.label for tree in trees for sub in tree.subtrees())
    expected = [observed[label] / len(trees) for label in pcfg.symbols]
    np.testing.assert_allclose(visits, expected, rtol=1e-9)


@given(treebanks)
@settings(max_examples=30, deadline=None)
def test_likelihood_in_meta_is_that_of_exact_fractions(trees: list[Tree]) -> None:
    rules = [(sub.label, tuple(c if isinstance(c, str) else (c.label,) for c in sub.children))
             for tree in trees for sub in tree.subtrees()]  # fmt: skip
    count, total = Counter(rules), Counter(label for label, _ in rules)
    log_likelihood = sum(float(np.log(float(Fraction(count[rule], total[rule[0]])))) for rule in rules)
    tokens = sum(len(tree.leaves()) for tree in trees)
    assert relative_frequency(trees).meta["log_likelihood_per_token"] == pytest.approx(log_likelihood / tokens)


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ([], "no trees"),
        ([leaf("A", "x"), leaf("B", "x")], "2 root labels \\(A, B\\)"),
        ([node("ROOT", Tree("A", ()))], "'A' has no children"),
        ([Tree("ROOT", ("x", leaf("A", "y")))], "a word is next to other children of 'ROOT'"),
    ],
)
def test_unusable_trees_are_refused(trees: list[Tree], message: str) -> None:
    with pytest.raises(InputError, match=message):
        relative_frequency(trees)


def test_another_start_symbol_is_refused() -> None:
    assert relative_frequency([sentence("dog")], start="ROOT").symbols[0] == "ROOT"
    with pytest.raises(InputError, match="root label 'ROOT', not the start symbol 'TOP'"):
        relative_frequency([sentence("dog")], start="TOP")
