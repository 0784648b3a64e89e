"""Binarisation: the shapes and names it promises, its exact inverse, and what it does to probabilities."""

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank import Binarisation, splice
from truesource.grammar.treebank.binarise import head_index
from truesource.grammar.treebank.brackets import read_text

ODD = [
    "PRP$",
    "-LRB-",
    "ADVP|PRT",
    "A^B",
    "A",
    "B",
    "A^",
    "[A]",
    "A[B",
    "\\",
    "A\\^B",
    "NP-SBJ=2",
    "É你",
    "NP",
    "VP",
    "X@",
]
LABELS = st.sampled_from(ODD) | st.text("^[]\\-@|A", min_size=1, max_size=4).filter(lambda x: x[0] != "@")
TREES = st.recursive(
    st.builds(lambda tag: Tree(tag, ("w",)), LABELS),
    lambda inner: st.builds(lambda x, kids: Tree(x, tuple(kids)), LABELS, st.lists(inner, min_size=1, max_size=6)),
    max_leaves=20,
)
SCHEMES = st.builds(
    Binarisation,
    direction=st.sampled_from(["left", "right", "head"]),
    horizontal=st.sampled_from([0, 1, 2, None]),
    vertical=st.integers(1, 4),
)


def tree(text):
    [(_, one)] = read_text(text)
    return one


FLAT = tree("(X (A a) (B b) (C c) (D d))")


@pytest.mark.parametrize(
    ("direction", "horizontal", "expected"),
    [
        ("right", 0, "(X (@X (@X (A a) (B b)) (C c)) (D d))"),
        ("left", 0, "(X (A a) (@X (B b) (@X (C c) (D d))))"),
        ("right", 1, "(X (@X[D] (@X[C] (A a) (B b)) (C c)) (D d))"),
        ("left", 1, "(X (A a) (@X[A] (B b) (@X[B] (C c) (D d))))"),
        ("right", 2, "(X (@X[D] (@X[C][D] (A a) (B b)) (C c)) (D d))"),
        ("left", None, "(X (A a) (@X[A] (B b) (@X[A][B] (C c) (D d))))"),
    ],
)
def test_shapes_and_names(direction, horizontal, expected):
    assert str(Binarisation(direction, horizontal).binarise(FLAT)) == expected


@pytest.mark.parametrize(
    ("horizontal", "expected"),
    [
        (0, "(NP (@NP (DT a) (@NP (JJ b) (NN c))) (PP (IN d)))"),
        (1, "(NP (@NP[=NN][>PP] (DT a) (@NP[=NN][<DT] (JJ b) (NN c))) (PP (IN d)))"),
        (None, "(NP (@NP[=NN][>PP] (DT a) (@NP[=NN][>PP][<DT] (JJ b) (NN c))) (PP (IN d)))"),
    ],
)
def test_head_outward(horizontal, expected):
    one = tree("(NP (DT a) (JJ b) (NN c) (PP (IN d)))")
    assert str(Binarisation("head", horizontal).binarise(one)) == expected


def test_vertical_orders():
    one = tree("(S (NP (NP (A a) (B b) (C c)) (PP (D d))))")
    names = lambda v: str(Binarisation(vertical=v).binarise(one))  # noqa: E731
    assert names(2) == "(S (NP^S (NP^NP (@NP^NP (A a) (B b)) (C c)) (PP^NP (D d))))"
    assert names(3) == "(S (NP^S (NP^NP^S (@NP^NP^S (A a) (B b)) (C c)) (PP^NP^S (D d))))"


def test_names_are_escaped_only_where_they_must_be():
    one = tree("(A^B (C[ c) (C[ d) (C[ e))")
    assert str(Binarisation().binarise(one)) == "(A^B (@A^B (C[ c) (C[ d)) (C[ e))"
    context = Binarisation(horizontal=1).binarise(one)
    assert str(context) == r"(A\^B (@A\^B[C\[] (C\[ c) (C\[ d)) (C\[ e))"


@pytest.mark.long
@given(TREES, SCHEMES)
def test_exactly_invertible(one, scheme):
    binary = scheme.binarise(one)
    assert all(len(node.children) <= 2 for node in binary.subtrees())
    assert binary.leaves() == one.leaves()
    assert scheme.unbinarise(binary) == one


@given(TREES, SCHEMES)
def test_coarse_labels_are_treebank_labels(one, scheme):
    labels = {node.label for node in one.subtrees()}
    coarse = {scheme.coarse(node.label) for node in scheme.binarise(one).subtrees()}
    assert coarse <= labels | {f"@{label}" for label in labels}
    assert labels <= coarse


@pytest.mark.long
@given(TREES, SCHEMES)
def test_a_binary_tree_keeps_its_shape(one, scheme):
    if all(len(node.children) < 3 for node in one.subtrees()):
        assert splice(scheme.binarise(one), scheme) == one
        assert [len(n.children) for n in scheme.binarise(one).subtrees()] == [len(n.children) for n in one.subtrees()]


def log_probability(trees):
    """Log-likelihood of trees under their own relative-frequency grammar, as text of its rules."""
    rules = Counter((n.label, *(getattr(c, "label", c) for c in n.children)) for t in trees for n in t.subtrees())
    totals = Counter()
    for rule, n in rules.items():
        totals[rule[0]] += n
    return sum(n * math.log(n / totals[rule[0]]) for rule, n in rules.items())


@pytest.mark.long
@given(st.lists(TREES, min_size=1, max_size=8), st.sampled_from(["left", "right", "head"]))
def test_unlimited_horizontal_order_leaves_probabilities_alone(trees, direction):
    exact = Binarisation(direction, None)
    assert log_probability(map(exact.binarise, trees)) == pytest.approx(log_probability(trees), abs=1e-9)


@pytest.mark.long
@given(st.lists(TREES, min_size=1, max_size=8), st.sampled_from(["left", "right", "head"]))
def test_a_higher_order_never_lowers_the_likelihood(trees, direction):
    values = [log_probability(map(Binarisation(direction, h).binarise, trees)) for h in (0, 1, 2, 5, None)]
    assert all(low <= high + 1e-9 for low, high in pairwise(values))


@pytest.mark.parametrize("label", ["@X", "@"])
def test_labels_of_binarised_trees_are_refused(label):
    with pytest.raises(InputError, match="starts with @"):
        Binarisation().binarise(Tree("S", (Tree(label, ("a",)),)))
    with pytest.raises(InputError, match="a whole tree cannot have the label"):
        Binarisation().unbinarise(Tree(label, ("a",)))


def test_a_word_beside_a_constituent_is_refused():
    with pytest.raises(InputError, match="a word is next to other children of 'X'; give each word a preterminal"):
        Binarisation().binarise(Tree("X", ("a", Tree("B", ("b",)))))


@pytest.mark.parametrize("options", [{"direction": "up"}, {"horizontal": -1}, {"vertical": 0}])
def test_options_that_make_no_sense(options):
    with pytest.raises(InputError):
        Binarisation(**options)


@pytest.mark.parametrize("scheme", [Binarisation(), Binarisation("left", 2, 2), Binarisation("head", 1, 3)])
def test_long_and_deep_trees(scheme):
    for text in ("(S" + " (A a)" * 3000 + ")", "(S " * 3000 + "(A a)" + " (B b) (C c))" * 3000):
        binary = scheme.binarise(tree(text))
        assert binary.height() > 3000
        assert str(scheme.unbinarise(binary)) == text


def test_splicing_takes_coarse_labels_as_they_are():
    assert str(splice(tree("(A^B (@A^B (@A^B (C c) (D d)) (E e)) (F f))"))) == "(A^B (C c) (D d) (E e) (F f))"


@pytest.mark.parametrize(
    ("label", "children", "head"),
    [
        ("S", "NP VP .", "VP"),
        ("S-TPC-1", "PP , NP-SBJ VP-X .", "VP-X"),
        ("NP", "DT JJ NN PP", "NN"),
        ("NP", "NP PP SBAR", "NP"),
        ("NP", "NP POS", "POS"),
        ("NP", "QP NNS", "NNS"),
        ("VP", "MD VP", "MD"),
        ("VP", "ADVP VBD NP PP", "VBD"),
        ("PP", "ADVP IN NP", "IN"),
        ("SBAR", "IN S", "IN"),
        ("ADJP", "RB JJ PP", "JJ"),
        ("QP", "$ CD CD", "$"),
        ("ADVP|PRT", "RB RP", "RB"),
        ("ROOT", "`` S ''", "S"),
        ("NEW", "A NEW B", "NEW"),
        ("NEW", "A B .", "B"),
        ("OTHER", ", A B", "A"),
        ("OTHER", ". ,", "."),
    ],
)
def test_heads(label, children, head):
    names = children.split()
    assert names[head_index(label, names)] == head


@given(st.lists(LABELS, min_size=3, max_size=8), LABELS)
def test_every_intermediate_node_contains_the_head(children, label):
    one = Tree(label, tuple(Tree(child, (str(i),)) for i, child in enumerate(children)))
    made = [n for n in Binarisation("head").binarise(one).subtrees() if n.label.startswith("@")]
    assert len(made) == len(children) - 2
    assert all(str(head_index(label, children)) in node.leaves() for node in made)
