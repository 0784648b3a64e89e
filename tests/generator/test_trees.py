"""Trees as numbers, as brackets, reordered, measured: kernels against what is obvious on `Tree`."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_grammars import small_pcfgs

from truesource.generator import _kernels as kernels
from truesource.generator.columns import packed
from truesource.generator.plan import Columns
from truesource.generator.sampler import Reading, Sampler, read_brackets, read_tree
from truesource.generator.shard_writer import Spelling, spell
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.tree import Tree, escaped


def drawn(pcfg, n=40):
    sampler = Sampler(pcfg, LengthRange(1, 9))
    return sampler, sampler.draw(n, random_state(1))


def binarised(sampler, derivations):
    return list(sampler.trees(derivations, coarse=False, binarised=True))


@pytest.mark.long
@given(small_pcfgs())
def test_heights(pcfg):
    sampler, derivations = drawn(pcfg)
    found = kernels.heights(derivations.rules, derivations.ends, sampler.n_binary, sampler.first_lexical)
    assert found.tolist() == [tree.height() for tree in binarised(sampler, derivations)]


@pytest.mark.long
@given(small_pcfgs())
def test_hashes_differ_where_words_differ(pcfg):
    sampler, derivations = drawn(pcfg, 300)
    hashes = kernels.sentence_hashes(derivations.rules, derivations.ends, sampler.left, sampler.first_lexical).tolist()
    sentences = list(map(tuple, sampler.sentences(derivations)))
    assert len(set(zip(sentences, hashes, strict=True))) == len(set(sentences)) == len(set(hashes))


@pytest.mark.long
@given(small_pcfgs(), st.integers(0, 2**16))
def test_reordered_children(pcfg, chosen):
    sampler, derivations = drawn(pcfg)
    swapped = np.array([chosen >> (i % 16) & 1 for i in range(max(1, sampler.n_binary))], dtype=np.bool_)
    names = {
        (pcfg.symbols[a], pcfg.symbols[b], pcfg.symbols[c]): swapped[i]
        for i, (a, b, c) in enumerate(pcfg.binary.tolist())
    }

    def turned(node):
        children = [child if isinstance(child, str) else turned(child) for child in node.children]
        if len(children) == 2 and names[node.label, node.children[0].label, node.children[1].label]:
            children.reverse()
        return Tree(node.label, tuple(children))

    rules = kernels.reorder(derivations.rules, derivations.ends, sampler.n_binary, sampler.first_lexical, swapped)
    moved = type(derivations)(rules, derivations.ends, derivations.n_tokens, derivations.log_prob)
    assert binarised(sampler, moved) == [turned(tree) for tree in binarised(sampler, derivations)]


ODD = """\
ROOT -> @X-0 B 0.5
ROOT -> @X-0 0.2
ROOT -> B 0.3
@X-0 -> @X-1 B 0.6
@X-0 -> B 0.4
@X-1 -> B B 0.5
@X-1 -> 'under@' 0.5
B -> '(' 0.3
B -> 'x)y(' 0.3
B -> 'œ' 0.4
"""


def spliced(node, top=True):
    """Without ``@`` nodes over other nodes, the root excepted."""
    children = []
    for child in node.children:
        children += [child] if isinstance(child, str) else spliced(child, top=False)
    keep = top or not node.label.startswith("@") or isinstance(node.children[0], str)
    made = [Tree(node.label, tuple(children))] if keep else children
    return made[0] if top else made


@pytest.mark.parametrize("coarse", [True, False])
@pytest.mark.parametrize("keep", [True, False])
def test_numbers_and_brackets_are_the_tree(coarse, keep):
    pcfg = PCFG.from_text(ODD)
    sampler, derivations = drawn(pcfg, 200)
    reading = Reading.of(pcfg.symbols, pcfg.labels, coarse=coarse, binarised=keep)
    table = spell(sampler, derivations, Spelling.of(pcfg), Columns())
    codes = table.column("tree").to_pylist()
    trees = [read_tree(row, s, reading) for row, s in zip(codes, sampler.sentences(derivations), strict=True)]
    assert trees == list(sampler.trees(derivations, coarse=coarse, binarised=keep))
    if not coarse:
        whole = binarised(sampler, derivations)
        assert trees == (whole if keep else [spliced(tree) for tree in whole])
        assert any("@" in tree.label for t in trees for tree in t.subtrees())
    names = packed(tuple(map(escaped, reading.names)))
    for part in (table, table.slice(17, 50), table.slice(0, 0)):
        lines = read_brackets(part, names, reading.dropped).to_pylist()
        start = 17 if part.num_rows == 50 else 0
        assert lines == [str(tree) for tree in trees[start : start + part.num_rows]]
    assert any("\\x28" in line for line in read_brackets(table, names, reading.dropped).to_pylist())


def test_numbers_take_the_smallest_type():
    few = PCFG.from_text("S -> A A 1.0\nA -> 'a' 1.0")
    sampler, derivations = drawn(few, 3)
    assert sampler.node_codes(derivations).dtype == np.int16
    names = tuple(f"A{i}" for i in range(11_000))
    many = SimpleNamespace(
        pcfg=SimpleNamespace(symbols=names), parent=np.array([0, 10_999]), n_binary=1, first_lexical=1
    )
    codes = Sampler.node_codes(many, SimpleNamespace(rules=np.array([0, 1, 1])))
    assert codes.dtype == np.int32
    assert codes.tolist() == [2, 3 * 10_999, 3 * 10_999]
