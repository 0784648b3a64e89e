"""Words and labels of any spelling: from a grammar through a corpus and its brackets to a grammar again."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from random_grammars import small_pcfgs

from truesource.generator.corpus import Corpus
from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.estimate.relative_frequency import relative_frequency
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.tree import Tree, escaped, is_word_label, unescaped, word_label
from truesource.grammar.treebank import Normalisation, Treebank
from truesource.grammar.treebank.brackets import read_text

LENGTHS = LengthRange(1, 8)
ODD = (
    "x-a", "x=b", "-", "=", "--", "-NONE-", "-LRB-", "(", ")", "((", "a b", " ", "\t", "\n", "\r", "''", "'", "'a'",
    "`", '"', "\\", "\\x", "\\x28", "\\x5cx28", "x28", "*T*-1", "0", "*", "<>", "[", "]", "^", "é", "日本", "|",
)  # fmt: skip
NAMES = st.sampled_from(ODD) | st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("()\\x-=' "), min_size=1, max_size=5
)
AS_THEY_ARE = Normalisation(strip_empty=False, strip_functions=False, root=None, unaries="keep")


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("()\\x285c "), max_size=8))
@example("")
@example("\\x")
@example("\\x28")
@example("\\\\x5cx28")
def test_a_name_comes_back(name: str) -> None:
    written = escaped(name)
    assert written
    assert not set(written) & set("() \t\r\n\f\v")
    assert unescaped(written) == name


def test_ordinary_names_stay() -> None:
    for name in ("-LRB-", "PRP$", "1\\/2", "\\*", "NP-SBJ=2", "it's", "\\", "New\u00a0York", "http://a.b/%20"):
        assert escaped(name) == unescaped(name) == name


def test_labels_of_words_are_told_from_tags() -> None:
    assert all(map(is_word_label, map(word_label, ("a", "x-a", "'", "''", "("))))
    assert not any(map(is_word_label, ("''", "'", "NP", "``", "'s", "-LRB-")))


@st.composite
def odd_grammars(draw: st.DrawFn) -> PCFG:
    """Small grammars whose words and labels are spelled in every awkward way."""
    pcfg = draw(small_pcfgs())
    word = NAMES.filter(lambda name: not set(name) & set(" \t\r\n\f\v"))
    words = draw(st.lists(word, min_size=len(pcfg.vocabulary), max_size=len(pcfg.vocabulary), unique=True))
    known = NAMES.filter(lambda name: not name.startswith("@"))  # the mark of binarisation
    labels = draw(st.lists(known, min_size=len(pcfg.symbols), max_size=len(pcfg.symbols), unique=True))
    return replace(pcfg, vocabulary=tuple(words), labels=tuple(labels))


def trees_of(pcfg: PCFG, n: int = 20) -> list[Tree]:
    sampler = Sampler(pcfg, LENGTHS)
    return list(sampler.trees(sampler.draw(n, random_state(1)), coarse=True, binarised=False))


@pytest.mark.long
@given(odd_grammars())
def test_trees_come_back_from_brackets_and_give_the_same_grammar(pcfg: PCFG) -> None:
    trees = trees_of(pcfg)
    text = "".join(f"{tree}\n" for tree in trees)
    assert [tree for _, tree in read_text(text)] == trees
    wanted = Treebank.from_trees(trees, AS_THEY_ARE)
    found = Treebank.from_trees((tree for _, tree in read_text(text)), AS_THEY_ARE)
    assert found.trees == wanted.trees
    assert relative_frequency(found.binarise()) == relative_frequency(wanted.binarise())


def corpus_of(text: str, folder) -> Corpus:  # type: ignore[no-untyped-def]
    return Corpus.sample(
        PCFG.from_text(text), {"train": 400}, path=folder / "corpus", seed=7, lengths=LengthRange(2, 10)
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("x-a", "x-b"),
        ("(", ")"),
        ("a=1", "a=2"),
        ("-a", "-b"),
        ("\\x28", "("),
        ("'", '"'),
        ("-LRB-", "("),
    ],
)
def test_a_language_of_quoted_words_is_induced_again(left: str, right: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Brackets around brackets: as many right words as left ones, all left ones first; no other string."""
    a, b = ("'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'" for word in (left, right))
    corpus = corpus_of(f"S -> {a} S {b} 0.5 | {a} {b} 0.5", tmp_path)
    lines = list(corpus.brackets("train"))
    assert lines == [str(tree) for tree in corpus.trees("train")]
    (tmp_path / "trees.mrg").write_text("\n".join(lines), encoding="utf-8", newline="\n")
    bank = Treebank.read(tmp_path / "trees.mrg")
    assert bank.sentences() == corpus.sentences("train")
    again = relative_frequency(bank.binarise())
    assert set(again.vocabulary) == {left, right}
    innermost = 400 / sum(len(sentence) // 2 for sentence in corpus.sentences("train"))
    for n in (2, 3, 4):
        for words in product((left, right), repeat=n):
            depth = n // 2
            inside = words == (left,) * depth + (right,) * (n - depth)
            wanted = innermost * (1 - innermost) ** (depth - 1) if inside and n == 2 * depth else 0.0
            assert math.exp(again.log_prob(words)) == pytest.approx(wanted, rel=1e-10)
