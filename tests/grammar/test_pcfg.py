"""The grammar object: what it accepts, how it is built, and that it never changes."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_grammars import NAMES, WORDS, small_pcfgs
from reference_inference import rules_of

from truesource.evaluation.core.oracle import Oracle
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

TOY = PCFG.from_text("S -> S S 0.3 | A 0.2 | a 0.5\nA -> b 0.4 | c 0.6")


def is_word(_: str, children: tuple[str, ...]) -> bool:
    return children[0] in WORDS


# -- building ---------------------------------------------------------------------------------------

RULES = st.dictionaries(
    st.one_of(
        st.tuples(st.sampled_from(NAMES), st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES))),
        st.tuples(st.sampled_from(NAMES), st.tuples(st.sampled_from(NAMES + WORDS))),
    ),
    st.floats(1e-3, 1e3),
    min_size=1,
)


@pytest.mark.long
@given(RULES)
def test_from_rules_holds_the_rules_it_was_given(weights: dict[tuple[str, tuple[str, ...]], float]) -> None:
    full = {(left, ("a",)): 1.0 for left in NAMES} | weights
    totals = {left: math.fsum(w for (x, _), w in full.items() if x == left) for left in NAMES}
    pcfg = PCFG.from_rules(((a, c, w) for (a, c), w in full.items()), start="S", words=is_word, normalise=True)
    rules = rules_of(pcfg)
    found = {(a, (b, c)): p for a, b, c, p in rules.binary}
    found |= {(a, (b,)): p for a, b, p in (*rules.unary, *rules.lexical)}
    assert rules.start == "S"
    assert found == pytest.approx({(a, c): w / totals[a] for (a, c), w in full.items()}, rel=1e-12)
    np.testing.assert_allclose(pcfg.row_sums, 1.0, rtol=1e-12)


@pytest.mark.long
def test_equal_rules_add_up() -> None:
    rules = [("S", ("a",), 0.25), ("S", ("b",), 0.5), ("S", ("a",), 0.25)]
    pcfg = PCFG.from_rules(rules, start="S", words=is_word)
    assert math.exp(pcfg.log_prob(["a"])) == pytest.approx(0.5)
    assert pcfg.n_rules == 2


def test_order_numbers_symbols() -> None:
    rules = [("A", ("a",), 1.0), ("S", ("A", "B"), 1.0), ("B", ("b",), 1.0)]
    assert PCFG.from_rules(rules, start="S", words=is_word).symbols == ("S", "A", "B")
    assert PCFG.from_rules(rules, start="S", words=is_word, order=["B", "S"]).symbols == ("S", "B", "A")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([("S", ("a",), 0.0)], "weight 0.0, expecting a positive number"),
        ([("S", ("a",), -1.0)], "expecting a positive number"),
        ([("S", ("a",), math.nan)], "expecting a positive number"),
        ([("S", ("a",), math.inf)], "expecting a positive number"),
        ([("S", (), 1.0)], "has 0 children, expecting 1 or 2"),
        ([("S", ("A", "A", "A"), 1.0)], "has 3 children"),
        ([("S", ("a",), 0.9)], r"the rules of 'S' sum to 0\.9, not 1 \(1 such symbol\)"),
        ([("S", ("A", "A"), 1.0), ("A", ("a",), 0.5)], "the rules of 'A' sum to 0.5"),
        ([("S", ("A", "B"), 1.0), ("A", ("a",), 1.0)], "'B' is used but has no rules"),
        ([("A", ("a",), 1.0)], "'S' is used but has no rules"),
        ([], "'S' is used but has no rules"),
    ],
)
def test_bad_rules_are_refused(rules: list[tuple[str, tuple[str, ...], float]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PCFG.from_rules(rules, start="S", words=is_word)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"symbols": ()}, "at least one symbol"),
        ({"symbols": ("S", "S")}, "distinct symbols"),
        ({"vocabulary": ("a", "b", "b")}, "a word is twice"),
        ({"labels": ("S",)}, "expecting 2 labels"),
        ({"start": 2}, r"not in 0\.\.1"),
        ({"start": -1}, r"not in 0\.\.1"),
        ({"binary": np.array([[0, 0, 2]])}, "a binary rule has a symbol or word that is not in the grammar"),
        ({"binary": np.array([[0, 0, -1]])}, "a binary rule has a symbol or word that is not in the grammar"),
        ({"unary": np.array([[0, 5]])}, "a unary rule has a symbol or word that is not in the grammar"),
        (
            {"lexical": np.array([[0, 0], [1, 1], [1, 3]])},
            "a lexical rule has a symbol or word that is not in the grammar",
        ),
        (
            {"unary": np.array([[0, 1], [0, 1]]), "unary_logp": np.log([0.1, 0.1])},
            "a unary rule is duplicated; remove one",
        ),
        ({"unary_logp": np.log([0.1, 0.1])}, r"expecting shape \(1,\) for unary_logp"),
        ({"unary_logp": np.array([0.1])}, r"outside \(0, 1\]"),
        ({"unary_logp": np.array([-np.inf])}, r"outside \(0, 1\]"),
        ({"unary_logp": np.array([np.nan])}, r"outside \(0, 1\]"),
        ({"unary_logp": np.log([0.2001])}, r"the rules of 'S' sum to 1\.0001"),
    ],
)
def test_bad_arrays_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(TOY, **changes)


def test_sums_are_checked_to_one_in_a_million() -> None:
    replace(TOY, unary_logp=np.log([0.2 + 9e-7]))
    with pytest.raises(InputError, match="sum to"):
        replace(TOY, unary_logp=np.log([0.2 + 2e-6]))


# -- being one --------------------------------------------------------------------------------------


@pytest.mark.long
@given(small_pcfgs())
def test_rules_are_sorted_for_the_kernels(pcfg: PCFG) -> None:
    assert (rows := [(b, c, a) for a, b, c in pcfg.binary.tolist()]) == sorted(rows)
    assert (pairs := [(b, a) for a, b in pcfg.unary.tolist()]) == sorted(pairs)
    assert (pairs := [(w, a) for a, w in pcfg.lexical.tolist()]) == sorted(pairs)


def test_a_grammar_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        TOY.start = 1  # type: ignore[misc]
    for name in ("binary", "binary_logp", "unary", "unary_logp", "lexical", "lexical_logp"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(TOY, name)[0] = 0


def test_making_a_grammar_leaves_the_given_arrays_alone() -> None:
    logp = np.log([0.3])
    pcfg = replace(TOY, binary_logp=logp)
    logp[0] = -5.0
    assert pcfg == TOY
    assert logp.flags.writeable


def test_equality_is_that_of_rules_and_not_of_their_order_or_history() -> None:
    shuffled = replace(TOY, lexical=TOY.lexical[::-1], lexical_logp=TOY.lexical_logp[::-1]).with_meta(seed=3)
    assert shuffled == TOY
    assert hash(shuffled) == hash(TOY)
    assert shuffled.meta["seed"] == 3
    assert "seed" not in TOY.meta


@pytest.mark.parametrize(
    "changes",
    [
        {"symbols": ("S", "B")},
        {"vocabulary": ("a", "b", "x")},
        {"labels": ("S", "B")},
        {"binary_logp": np.log([0.2]), "unary_logp": np.log([0.3])},
    ],
)
def test_a_different_grammar_is_not_equal(changes: dict[str, Any]) -> None:
    other = replace(TOY, **changes)
    assert other != TOY
    assert other.digest != TOY.digest


def test_sizes_and_repr_count_rules() -> None:
    assert TOY.sizes() == {"symbols": 2, "labels": 2, "words": 3, "binary": 1, "unary": 1, "lexical": 3}
    assert TOY.n_rules == 5
    assert repr(TOY) == "PCFG(2 symbols, 3 words, 1 binary, 1 unary, 3 lexical rules)"


def test_words_are_encoded_by_their_number() -> None:
    assert TOY.encode(["c", "never-seen", "a"]).tolist() == [TOY.word_ids["c"], -1, TOY.word_ids["a"]]
    assert TOY.encode([]).tolist() == []


# -- collapsing -------------------------------------------------------------------------------------


def test_collapsing_adds_the_probabilities_of_the_words_left_out() -> None:
    rules = rules_of(TOY.collapse({"b", "not-a-word"}))
    assert set(rules.words) == {"b", "<unk>"}
    assert {(a, w): p for a, w, p in rules.lexical} == pytest.approx(
        {("S", "<unk>"): 0.5, ("A", "b"): 0.4, ("A", "<unk>"): 0.6}
    )


def test_collapsing_to_the_whole_vocabulary_changes_no_probability() -> None:
    whole = TOY.collapse(TOY.vocabulary)
    assert whole.log_prob(["a", "b"]) == pytest.approx(TOY.log_prob(["a", "b"]), rel=1e-12)
    assert whole.log_prob(["<unk>"]) == -math.inf


def test_collapsing_twice_is_collapsing_once() -> None:
    assert TOY.collapse({"a", "b"}).collapse({"b"}) == TOY.collapse({"b"})


def test_a_word_that_reads_unknown_already_joins_the_others() -> None:
    pcfg = PCFG.from_text("S -> '<unk>' 0.25 | 'a' 0.25 | 'b' 0.5").collapse({"b", "<unk>"})
    assert math.exp(pcfg.log_prob(["<unk>"])) == pytest.approx(0.5)


def test_rounded_rows_are_divided_by_their_sums_once() -> None:
    """Rows up to 1e-6 above 1 made a mass above 1, which was cut to 1: P(b) was off by 5e-6 of itself."""
    grammar = PCFG.from_text("S -> S S 0.4 | a 0.6 | b 1e-6")
    np.testing.assert_allclose(grammar.row_sums, 1.0, rtol=0.0, atol=1e-15)
    first = grammar.next_token([])
    assert first.probability.sum() == pytest.approx(1.0, rel=1e-14)
    assert first.probability[grammar.word_ids["b"]] == pytest.approx(1e-6 / 0.600001, rel=1e-14)
    assert math.exp(grammar.log_prob(["b"])) == pytest.approx(1e-6 / 1.000001, rel=1e-14)
    assert replace(grammar, meta={}).digest == grammar.digest
    exact = PCFG.from_text("S -> S S 0.4 | a 0.6")
    assert np.exp(exact.lexical_logp[0]) == 0.6  # rows that sum to one stay as they are, to the bit


def test_a_file_with_rounded_rows_has_the_digest_of_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of versions that kept rounded rows as they were are read, and a damaged one is still refused."""
    with monkeypatch.context() as patch:
        patch.setattr("truesource.grammar.rules.ROUNDING", 1e-6)
        PCFG.from_text("S -> S S 0.4 | a 0.6 | b 1e-6").save(tmp_path / "old.npz")
    found = PCFG.load(tmp_path / "old.npz")
    np.testing.assert_allclose(found.row_sums, 1.0, rtol=0.0, atol=1e-15)
    found.save(tmp_path / "new.npz")
    assert PCFG.load(tmp_path / "new.npz").digest == found.digest


SMALL = "S -> N V 1\nN -> 'dogs' 0.5 | 'cats' 0.5\nV -> 'bark' 1\n"


@pytest.mark.parametrize("method", ["log_prob", "prefix_log_prob", "next_token", "viterbi"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"expecting a sentence, a text such as 'the cat sleeps' or a list of words .*, not None$"),
        (5, "expecting a sentence, .*, not 5$"),
        (b"dogs bark", "expecting a sentence, .*, not b'dogs bark'$"),
        ({"dogs": 1}, "expecting a sentence"),
        ([1, 2], "expecting a sentence, .*; 1 in it is not a word$"),
        ([["dogs", "bark"], ["cats", "bark"]], "expecting one sentence, .*, not a list of sentences"),
        (["dogs bark"], "'dogs bark' is several words; pass a text such as 'the cat sleeps' or a"),
        (["dogs", "bark\n"], r"'bark\\n' is several words"),
    ],
)
def test_a_sentence_is_text_or_words(method: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        getattr(PCFG.from_text(SMALL), method)(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "expecting sentences, each a text such as .*, not None$"),
        (3.5, "expecting sentences, .*, not 3.5$"),
        ([1, 2], "expecting sentences, .*; 1 among them is not a sentence$"),
        ([["dogs", "bark"], None], "expecting sentences, .*; None among them is not a sentence$"),
        ([["dogs bark"], ["cats", "bark"]], "'dogs bark' is several words"),
        ([[["dogs"]], [["cats"]]], "expecting one sentence"),
    ],
)
def test_sentences_are_texts_or_lists_of_words(value: object, message: str) -> None:
    oracle = Oracle(PCFG.from_text(SMALL))
    with pytest.raises(InputError, match=message):
        oracle.score(value, ScoringFrame())  # type: ignore[arg-type]
    scores = [oracle.score(each, ScoringFrame()).log_prob.tolist() for each in (["dogs bark"], [("dogs", "bark")])]
    assert scores[0] == scores[1]
