"""Normalisation: every option on small trees with the outcome written out, and its laws on random ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank import Normalisation, signature
from truesource.grammar.treebank.brackets import read_text
from truesource.grammar.treebank.normalise import frequent_words, replace_unknown

LABELS = st.sampled_from(["S", "NP", "NP-SBJ", "NP-1", "X=2", "-LRB-", "A^B", "ROOT", "TOP", "ADVP|PRT"])
TAGS = st.sampled_from(["NN", "NP", "-NONE-", "-LRB-", "PRP$", "NN-1"])
WORDS = st.sampled_from(["dog", "Dog", "-LRB-", "*T*-1", "a\u00a0b", "42", "É"])
TREES = st.recursive(
    st.builds(lambda tag, word: Tree(tag, (word,)), TAGS, WORDS),
    lambda inner: st.builds(lambda x, kids: Tree(x, tuple(kids)), LABELS, st.lists(inner, min_size=1, max_size=3)),
    max_leaves=10,
)
OPTIONS = st.builds(
    Normalisation,
    strip_empty=st.booleans(),
    strip_functions=st.booleans(),
    root=st.sampled_from(["ROOT", None, "TOP"]),
    unaries=st.sampled_from(["keep", "same", "collapse"]),
    lowercase=st.booleans(),
)


def tree(text):
    [(_, one)] = read_text(text)
    return one


def check(text, expected, **options):
    result = Normalisation(**options).apply(tree(text))
    assert (None if result is None else str(result)) == expected


def test_the_defaults_on_a_penn_tree():
    check(
        "( (S (NP-SBJ-1 (NNP Ed) ) (VP (VBD said) (SBAR (-NONE- 0) (S (-NONE- *T*-2) ))"
        " (NP=2 (-NONE- *) (NP (PRP$ his) (NN age)))) (-LRB- -LRB-)))",
        "(ROOT (S (NP (NNP Ed)) (VP (VBD said) (NP (PRP$ his) (NN age))) (-LRB- -LRB-)))",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(ROOT (S (A a)))", "(ROOT (S (A a)))"),
        ("( (S (A a)))", "(ROOT (S (A a)))"),
        ("( (S (A a)) (. .))", "(ROOT (S (A a)) (. .))"),
        ("(TOP (S (A a)))", "(ROOT (S (A a)))"),
        ("(S (A a))", "(ROOT (S (A a)))"),
        ("(S (TOP (A a)))", "(ROOT (S (TOP (A a))))"),
        ("(A a)", "(ROOT (A a))"),
        ("( (ROOT (S (A a))))", "(ROOT (S (A a)))"),
        ("(S-HLN (A a))", "(ROOT (S (A a)))"),
    ],
)
def test_the_root_is_always_the_same(text, expected):
    check(text, expected)


def test_other_roots():
    check("( (S (A a)))", "(TOP (S (A a)))", root="TOP", root_aliases=("", "ROOT"))
    check("(ROOT (S (A a)))", "(TOP (ROOT (S (A a))))", root="TOP")
    check("(S (A a))", "(S (A a))", root=None)
    check("( (S (A a)))", "(S (A a))", root=None)
    bare = Normalisation(root=None)
    assert bare.refusal(bare.apply(tree("( (S (A a)) (B b))"))) == "no label above several constituents"


@pytest.mark.parametrize(
    ("unaries", "expected"),
    [
        ("keep", "(ROOT (S (S (VP (NP (NP (NN (NN go))))))) (X (Y (B b) (C c))))"),
        ("same", "(ROOT (S (VP (NP (NN go)))) (X (Y (B b) (C c))))"),
        ("collapse", "(ROOT (S (NN go)) (X (B b) (C c)))"),
    ],
)
def test_unary_chains(unaries, expected):
    check("(ROOT (S (S (VP (NP (NP (NN (NN go))))))) (X (Y (B b) (C c))))", expected, unaries=unaries)


def test_collapsing_keeps_the_root_and_the_top_of_the_chain_below():
    check("(ROOT (S (VP (VB go))))", "(ROOT (S (VB go)))", unaries="collapse")
    check("(S (VP (VB go)))", "(ROOT (S (VB go)))", unaries="collapse")
    check("(S (VP (VB go)))", "(S (VB go))", unaries="collapse", root=None)


def test_a_chain_that_a_trace_has_hidden_is_seen():
    check("(S (NP (-NONE- *) (NP (NN a) (NN b))))", "(ROOT (S (NP (NN a) (NN b))))")


def test_traces_and_functions_can_stay():
    check(
        "(S-1 (NP-SBJ (-NONE- *)))",
        "(ROOT (S-1 (NP-SBJ (-NONE- *))))",
        strip_empty=False,
        strip_functions=False,
    )
    check("(S-1 (NP-SBJ (-NONE- *)))", None)


def test_lower_casing_leaves_brackets_alone():
    check("(X (A The) (B -LRB-) (C É))", "(ROOT (X (A the) (B -LRB-) (C é)))", lowercase=True)


def test_white_space_in_words_is_closed():
    assert Normalisation().apply(Tree("X", ("10\u00a0000\u2009m",))) == Tree("ROOT", (Tree("X", ("10_000_m",)),))


def test_a_word_beside_a_constituent_is_refused_and_a_childless_node_is_empty():
    with pytest.raises(InputError, match="the word 'a' is next to other children of 'X'"):
        Normalisation().apply(Tree("X", ("a", Tree("B", ("b",)))))
    assert Normalisation().apply(Tree("X", (Tree("B", ()),))) is None


def test_refusals():
    norm = Normalisation(lengths=LengthRange(2, 3))
    assert norm.refusal(None) == "no words left"
    reasons = [norm.refusal(tree(f"(ROOT {'(A a)' * n})")) for n in (1, 2, 3, 4)]
    assert reasons == ["length outside 2..3", None, None, "length outside 2..3"]


@pytest.mark.parametrize(
    "options",
    [
        {"unaries": "all"},
        {"unknown": "drop"},
        {"root": ""},
        {"rare_below": 2},
        {"unknown": "unk"},
        {"unknown": "signature", "rare_below": 1},
    ],
)
def test_options_that_make_no_sense(options):
    with pytest.raises(InputError):
        Normalisation(**options)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("dog", "<unk>"),
        ("1984", "<unk-num>"),
        ("mid-1980s", "<unk-num>"),
        ("--", "<unk-sym>"),
        ("NATO", "<unk-caps>"),
        ("I", "<unk-cap>"),
        ("Rockets", "<unk-cap-s>"),
        ("walking", "<unk-ing>"),
        ("nations", "<unk-s>"),
        ("nation", "<unk-ion>"),
        ("Donations", "<unk-cap-s>"),
        ("relation", "<unk-ion>"),
        ("well-being", "<unk-dash-ing>"),
        ("-like", "<unk>"),
        ("bed", "<unk>"),
        ("Élodie", "<unk-cap>"),
    ],
)
def test_signatures(word, expected):
    assert signature(word) == expected


def test_rare_words():
    trees = [tree("(X (A a) (A Rockets))"), tree("(X (A a) (B b))"), tree("(X (B b))")]
    assert frequent_words(trees, 2) == {"a", "b"}
    classes = [str(t) for t in replace_unknown(trees, {"a"}, "signature")]
    assert classes == ["(X (A a) (A <unk-cap-s>))", "(X (A a) (B <unk>))", "(X (B <unk>))"]
    assert str(replace_unknown(trees, {"a"}, "unk")[0]) == "(X (A a) (A <unk>))"


@given(TREES, OPTIONS)
def test_normalising_twice_is_normalising_once(one, norm):
    once = norm.apply(one)
    assert once is None or norm.apply(once) == once


@given(TREES, OPTIONS)
def test_what_is_promised_holds(one, norm):
    result = norm.apply(one)
    words = [
        node.children[0].replace("\u00a0", "_")
        for node in one.subtrees()
        if node.is_preterminal
        and not (norm.strip_empty and (node.label == "-NONE-" or node.children[0].startswith("*T*")))
    ]
    if norm.lowercase:
        words = [word if word == "-LRB-" else word.lower() for word in words]
    assert (result.leaves() if result else []) == words
    if result is None:
        return
    assert norm.root in (None, result.label)
    for node in result.subtrees():
        only = node.children[0] if len(node.children) == 1 else None
        if norm.strip_functions:
            assert node.label.startswith("-") or ("-" not in node.label and "=" not in node.label)
        if norm.unaries != "keep" and isinstance(only, Tree):
            assert only.label != node.label
        if norm.unaries == "collapse" and isinstance(only, Tree) and not (node is result and norm.root):
            assert only.is_preterminal


def test_depth_is_not_limited():
    deep = "(A " * 2500 + "(B b)" + " (C c))" * 2500
    check(deep, f"(ROOT {deep})", unaries="collapse")
    check("(A (B " * 2500 + "(C c)" + "))" * 2500, "(ROOT (A (C c)))", unaries="collapse")


@pytest.mark.parametrize(
    ("label", "category"),
    [
        ("PRP-S", "PRP-S"),
        ("WP-S-1", "WP-S"),
        ("NP-SBJ-S", "NP"),
        ("NP-SBJ=2", "NP"),
        ("NP-2", "NP"),
        ("-LRB-", "-LRB-"),
    ],
)
def test_one_letter_after_a_category_is_no_function_tag(label: str, category: str) -> None:
    check(f"(S ({label} x) (VP (V y) (V z)))", f"(S ({category} x) (VP (V y) (V z)))", root=None)
