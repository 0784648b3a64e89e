"""Beliefs after each word, against all derivations, closed recursions and other exact quantities."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from random_grammars import cases
from reference_inference import all_strings, derivations, rules_of
from safetensors import safe_open

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.beliefs import END
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

Case = tuple[PCFG, list[list[str]]]
HIGH = 4


def open_after(tree: Tree, t: int) -> list[str]:
    """Symbols of the nodes that hold words on both sides of the boundary after t words."""
    found, place = [], 0

    def walk(node: Tree) -> None:
        nonlocal place
        begin = place
        if node.is_preterminal:
            place += 1
        for child in node.children:
            if isinstance(child, Tree):
                walk(child)
        if begin < t < place:
            found.append(node.label)

    walk(tree)
    return found


@pytest.mark.long
@given(cases(max_size=3, max_symbols=3, unary_cycles=False))
def test_open_constituents_are_those_of_all_derivations_of_a_range(case: Case) -> None:
    """Every string of the range that goes on, with every derivation."""
    pcfg, (sentence,) = case
    rules, lengths = rules_of(pcfg), LengthRange(1, HIGH)
    assume(math.isfinite(pcfg.exact.string_log_probs([sentence], lengths)[0]))
    strings = [s for table in all_strings(rules, HIGH)[rules.start][1:] for s in table]
    found = [(s, tree, p) for s in strings for tree, p in derivations(rules, s)]
    wanted = np.zeros((len(sentence), len(pcfg.symbols)))
    for t in range(1, len(sentence) + 1):
        begin = [(tree, p) for s, tree, p in found if s[:t] == tuple(sentence[:t])]
        total = math.fsum(p for _, p in begin)
        for tree, p in begin:
            for symbol in open_after(tree, t):
                wanted[t - 1, pcfg.symbol_ids[symbol]] += p / total
    own = pcfg.beliefs([sentence], "open", lengths)
    table = np.zeros((len(sentence), len(pcfg.symbols)))
    for column, name in enumerate(own.columns):
        table[:, pcfg.symbol_ids[name]] = own.values[:, column]
    np.testing.assert_allclose(table, wanted, rtol=0.0, atol=1e-11)
    depth = pcfg.beliefs([sentence], "depth", lengths)
    np.testing.assert_allclose(depth.values.sum(axis=1), wanted.sum(axis=1), rtol=0.0, atol=1e-11)


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "S -> S S 0.2 | A S 0.1 | 'a' 0.5 | B 0.2\nA -> 'a' 0.5 | 'b' 0.5\nB -> A B 0.3 | 'b' 0.7",
        "S -> 'a' X 0.4 | 'a' 0.6\nX -> S 'b' 1.0",
        "q -> e q 0.4 | 'c' 0.6\ne -> 'a' 0.5 | 'b' 0.5",
    ],
)
def test_without_a_range_they_are_those_of_all_lengths(text: str) -> None:
    pcfg = PCFG.from_text(text)
    sentences = [["a", "b"], ["a", "a", "b"], ["a"], ["a", "a", "b", "b"], ["a", "b", "c"]]
    possible = [s for s in sentences if math.isfinite(pcfg.log_prob(s))]
    whole, wide = (pcfg.beliefs(possible, "open", lengths) for lengths in (None, LengthRange(1, 120)))
    assert whole.columns == wide.columns
    np.testing.assert_allclose(whole.values, wide.values, rtol=0.0, atol=1e-10)
    np.testing.assert_array_equal(whole.sentence, wide.sentence)
    ends = pcfg.beliefs(possible, "next-word")
    root = whole.columns.index(pcfg.labels[pcfg.start])
    assert (whole.values[:, root] >= 1.0 - ends.values[:, ends.columns.index(END)] - 1e-12).all()


@pytest.mark.long
def test_the_open_brackets_of_dyck_are_its_depth() -> None:
    """One way to read: after each word the number of open brackets, certainly."""
    pcfg = language("dyck", k=2, depth=3)
    sampler = Sampler(pcfg, LengthRange(2, 12))
    sentences = sampler.sentences(sampler.draw(30, random_state(7)))
    own = pcfg.beliefs(sentences, "open", LengthRange(2, 12))
    pairs = [i for i, name in enumerate(own.columns) if name.startswith("pair-")]
    steps = np.array([1 if word.startswith("(") else -1 for s in sentences for word in s])
    depth = np.concatenate([np.cumsum(part) for part in np.split(steps, np.cumsum([len(s) for s in sentences])[:-1])])
    np.testing.assert_allclose(own.values[:, pairs].sum(axis=1), depth, rtol=0.0, atol=1e-10)


def test_states_are_forward_probabilities() -> None:
    """The recursion over the matrices of Mess3; a range of lengths changes nothing, as ends say nothing of states."""
    pcfg = language("mess3", x=0.1, alpha=0.7)
    sentences = [["A", "B", "B", "C"], ["C", "C", "A", "B", "A", "A"]]
    own = pcfg.beliefs(sentences, "state", LengthRange(4, 6))
    matrices = mess3_matrices(0.1, 0.7)
    wanted = []
    for sentence in sentences:
        belief = np.full(3, 1.0 / 3.0)
        for word in sentence:
            belief = belief @ matrices["ABC".index(word)]
            belief /= belief.sum()
            wanted.append(belief)
    assert len(own.columns) == 3
    np.testing.assert_allclose(own.values, np.stack(wanted), rtol=0.0, atol=1e-12)


def mess3_matrices(x: float, alpha: float) -> list[np.ndarray]:
    """Probability of each word and next state, by state (Marzen and Crutchfield 2017)."""
    y, beta = 1.0 - 2.0 * x, (1.0 - alpha) / 2.0
    step = np.where(np.eye(3, dtype=bool), y, x)
    return [step * np.where(np.arange(3) == word, alpha, beta) for word in range(3)]


@pytest.mark.long
@given(cases(max_size=4, max_symbols=4))
def test_other_beliefs_are_what_scores_say(case: Case) -> None:
    pcfg, (sentence,) = case
    assume(math.isfinite(pcfg.log_prob(sentence)))
    words, tags = pcfg.beliefs([sentence], "next-word"), pcfg.beliefs([sentence], "preterminal")
    outside, both = pcfg.beliefs([sentence], "outside"), pcfg.beliefs([sentence], "inside-outside")
    for t in range(1, len(sentence) + 1):
        after = pcfg.next_token(sentence[:t])
        wanted = dict(zip((*pcfg.vocabulary, END), (*after.probability, after.stop), strict=True))
        np.testing.assert_allclose(words.values[t - 1], [wanted[name] for name in words.columns], rtol=0.0, atol=1e-12)
        assert tags.values[t - 1].sum() + after.stop == pytest.approx(wanted[END] + after.probability.sum(), abs=1e-12)
        np.testing.assert_allclose([outside.values[t - 1].sum(), both.values[t - 1].sum()], 1.0, rtol=0.0, atol=1e-12)
        emitted = pcfg.exact.emission[[pcfg.symbol_ids[name] for name in outside.columns]]
        sums = np.asarray(emitted.sum(axis=1)).ravel()
        masked = (outside.values[t - 1] / np.where(sums > 0.0, sums, 1.0)) @ emitted
        np.testing.assert_allclose(masked, pcfg.masked(sentence, t - 1), rtol=0.0, atol=1e-12)
    assert words.token.tolist() == pcfg.encode(sentence).tolist()


@pytest.mark.long
def test_impossible_sentences_have_no_rows_and_arrays_are_written_with_their_words(tmp_path: Path) -> None:
    pcfg = PCFG.from_text("S -> S S 0.3 | 'a' 0.5 | 'b' 0.2")
    own = pcfg.beliefs([["a", "b"], ["c"], ["b"]], "open", LengthRange(1, 3))
    assert own.excluded == (1,) and own.sentence.tolist() == [0, 0, 2] and own.position.tolist() == [0, 1, 0]
    assert "\n" not in repr(own) and repr(own).startswith("Beliefs(open: 3 words")
    own.save(tmp_path / "b.safetensors")
    with safe_open(tmp_path / "b.safetensors", "numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("beliefs"), own.values)
        assert file.get_tensor("token").tolist() == [0, 1, 1]
        assert json.loads(file.metadata()["columns"]) == list(own.columns)
    with pytest.raises(InputError, match="will not overwrite"):
        own.save(tmp_path / "b.safetensors")
    with pytest.raises(InputError, match="there is no belief"):
        pcfg.beliefs([["a"]], "x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has states"):
        pcfg.beliefs([["a"]], "state")
    with pytest.raises(InputError, match="all 1 sentences have probability 0"):
        pcfg.beliefs([["c"]], "depth")
