"""Two parses of the same sentences: how often they differ, and the test of their difference."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.measures.brackets import compare_brackets
from truesource.evaluation.parsing.difference import compare_parses, f1_difference
from truesource.evaluation.parsing.lengths import BANDS
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.reader import read_text


def tree(text: str) -> Tree:
    """One bracketing."""
    (found,) = [found for _, found in read_text(text)]
    return found


def branching(n: int, wrong: int = 0) -> Tree:
    """A right-branching sentence of n words, the first ``wrong`` labels of which are others."""
    text = f"(NN w{n - 1})"
    for i in reversed(range(n - 1)):
        text = f"({'X' if i < wrong else 'NP'} (NN w{i}) {text})"
    return tree(f"(ROOT {text})")


GOLD = [branching(4 + i) for i in range(14)]
GOOD = [branching(4 + i, i % 2) for i in range(14)]
BAD = [branching(4 + i, i % 4) for i in range(14)]


def test_trees_that_differ_are_counted_by_length() -> None:
    found = compare_parses(GOOD, BAD, GOLD)
    assert found.differs.tolist() == [i % 2 != i % 4 for i in range(14)]
    everything = found.differing()
    assert everything is not None and everything.value == pytest.approx(6 / 14)
    # 4 to 10 words: numbers 0 to 6, of which 2, 3 and 6 differ
    short = found.differing(BANDS[0])
    assert short is not None and short.value == pytest.approx(3 / 7)
    assert found.differing(BANDS[-1]) is None
    records = {record.get("group"): record for record in found.records() if record["name"] == "differing_trees"}
    assert set(records) == {None, "1..40", "1..10", "11..20"}
    assert (records["1..10"]["sentences"], records["1..10"]["value"]) == (7, pytest.approx(3 / 7))


def test_a_tag_and_the_order_of_a_chain_make_trees_differ() -> None:
    """Brackets do not see them."""
    one, other = tree("(S (VP (NN a) (NN b)))"), tree("(VP (S (NN a) (NN b)))")
    tags = tree("(S (VP (NN a) (NN b)))"), tree("(S (VP (NN a) (VB b)))")
    assert compare_brackets([one], [other]).exact == 1
    assert compare_parses([one, tags[0], one], [other, tags[1], one]).differs.tolist() == [True, True, False]


def test_a_missing_parse_differs_from_a_tree_and_not_from_another_missing_one() -> None:
    found = compare_parses([None, None, branching(3)], [None, branching(5), branching(3)])
    assert found.differs.tolist() == [False, True, False]
    assert found.lengths.tolist() == [0, 5, 3]
    assert found.f1 is None  # no treebank
    assert not any(record["name"] == "labelled_f1_difference" for record in found.records())


def test_f1_difference_by_hand() -> None:
    found = compare_parses(GOOD, BAD, GOLD, names=("pruned", "exact"), seed=3)
    assert found.f1 is not None
    brackets = sum(3 + i for i in range(14))
    assert found.f1.parser == pytest.approx(1 - 7 / brackets)
    assert found.f1.baseline == pytest.approx(1 - sum(i % 4 for i in range(14)) / brackets)
    value = found.f1.interval
    assert value.value == pytest.approx(found.f1.parser - found.f1.baseline)
    assert value.low is not None and value.high is not None
    assert value.low < value.value < value.high
    record = found.records()[-1]
    assert (record["parser"], record["baseline"], record["p"]) == ("pruned", "exact", found.f1.test.p)
    assert parts_of(record["signature"])["null"] == "swapped-parses/999"
    assert json.loads(json.dumps(found.records(), allow_nan=False)) == found.records()


def test_the_difference_turned_round() -> None:
    forth, back = compare_parses(GOOD, BAD, GOLD, seed=3).f1, compare_parses(BAD, GOOD, GOLD, seed=3).f1
    assert forth is not None and back is not None
    assert forth.interval.low is not None and forth.interval.high is not None
    assert back.interval == pytest.approx((-forth.interval.value, -forth.interval.high, -forth.interval.low))


def test_parses_that_are_equally_good_do_not_differ() -> None:
    found = compare_parses(GOOD, GOOD, GOLD).f1
    assert found is not None
    assert found.interval == (0.0, 0.0, 0.0)
    assert found.test.p == 1.0


def test_p_values_are_those_of_all_swaps() -> None:
    """Six sentences that differ: all 64 swaps, computed from trees that are swapped and compared anew."""
    one, other = GOOD[:8], [branching(4 + i, 3 if i % 3 else 0) for i in range(8)]
    gold = GOLD[:8]
    found = f1_difference(compare_brackets(gold, one), compare_brackets(gold, other), seed=1, draws=20_000)
    assert found is not None
    differences = []
    for swaps in product([False, True], repeat=8):
        sides = [
            [b if swap else a for a, b, swap in zip(one, other, swaps, strict=True)],
            [a if swap else b for a, b, swap in zip(one, other, swaps, strict=True)],
        ]
        differences.append(np.subtract(*(compare_brackets(gold, side).f1 for side in sides)))
    exact = np.mean(np.abs(differences) >= abs(found.interval.value) - 1e-12)
    assert 0.01 < exact < 0.5
    assert found.test.p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4)
    assert found.interval.low is None  # too few sentences


def test_a_treebank_without_brackets_has_no_difference() -> None:
    words = [tree("(ROOT (NN a))")]
    assert compare_parses(words, [tree("(ROOT (X (NN a)))")], words).f1 is None


def test_parses_of_other_sentences_are_refused() -> None:
    with pytest.raises(InputError, match="there are 1 and 2 parses"):
        compare_parses(GOLD[:1], GOLD[:2])
    with pytest.raises(InputError, match="two parses of sentence 1 have different words"):
        compare_parses(GOLD[:1], GOLD[1:2])
    with pytest.raises(InputError, match="the treebank has 3 trees and there are 2 parses"):
        compare_parses(GOLD[:2], GOLD[:2], GOLD[:3])
