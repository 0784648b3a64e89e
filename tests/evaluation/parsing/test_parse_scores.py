"""Scores of parses: values against counts by hand, ranges of length, records."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.measures.bootstrap import resampled_ratio
from truesource.evaluation.parsing import BANDS, COUNTS, RATIOS, SHARES, SHORT, ParseScores, score_parses
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.brackets import read_text


def tree(text: str) -> Tree:
    """One bracketing."""
    (found,) = [found for _, found in read_text(text)]
    return found


def flat(n: int, label: str = "NP", tag: str = "NN") -> Tree:
    """A sentence of n words with two brackets."""
    return tree(f"(ROOT (S ({label} {' '.join(f'({tag} w{i})' for i in range(n))})))")


def of(found: ParseScores, name: str, **place: str) -> dict[str, Any]:
    """The one record of this name and place."""
    keys = ("by", "group")
    records = found.records()
    (record,) = [
        each
        for each in records
        if each["name"] == name and [each.get(key) for key in keys] == [place.get(key) for key in keys]
    ]
    return dict(record)


#: 12 sentences of 2 to 46 words: some right, some with another label, one without a parse
GOLD = [flat(2 + 4 * i) for i in range(12)]
PARSED = [None if i == 4 else flat(2 + 4 * i, "VP" if i % 3 == 0 else "NP") for i in range(12)]


@pytest.fixture(scope="module")
def found() -> ParseScores:
    return score_parses(GOLD, PARSED, parser="max-rule", grammar="ab12", seed=5)


def test_values_are_those_counted_by_hand(found: ParseScores) -> None:
    # of 24 gold brackets 22 are proposed, of which the label is wrong in 4
    assert of(found, "labelled_precision")["value"] == pytest.approx(18 / 22)
    assert of(found, "labelled_recall")["value"] == pytest.approx(18 / 24)
    assert of(found, "labelled_f1")["value"] == pytest.approx(36 / 46)
    assert of(found, "unlabelled_f1")["value"] == pytest.approx(44 / 46)
    assert of(found, "unlabelled_precision")["value"] == 1.0
    assert of(found, "unlabelled_recall")["value"] == pytest.approx(22 / 24)
    assert of(found, "exact_match")["value"] == pytest.approx(7 / 12)
    words = sum(2 + 4 * i for i in range(12))
    assert of(found, "tagging_accuracy")["value"] == pytest.approx((words - 18) / words)
    assert of(found, "crossing_brackets")["value"] == 0.0
    assert of(found, "no_crossing")["value"] == of(found, "at_most_two_crossing")["value"] == 1.0
    counts = {name: of(found, name)["value"] for name in COUNTS}
    assert counts == {
        "sentences": 12, "unparsed": 1, "words": words,
        "gold_brackets": 24, "proposed_brackets": 22, "matched_brackets": 18,
    }  # fmt: skip


def test_by_label_and_by_tag() -> None:
    gold = [tree("(S (NP (NN a)) (VP (VB b)))")] * 3
    parsed = [tree("(S (NP (NN a)) (NP (VB b)))"), tree("(S (NP (VB a)) (VP (VB b)))"), None]
    found = score_parses(gold, parsed)
    noun = of(found, "f1", by="label", group="NP")
    assert (noun["gold"], noun["proposed"], noun["matched"]) == (3, 3, 2)
    assert noun["value"] == pytest.approx(2 / 3)
    assert of(found, "precision", by="label", group="VP")["value"] == 1.0
    assert of(found, "recall", by="label", group="VP")["value"] == pytest.approx(1 / 3)
    assert of(found, "precision", by="tag", group="VB")["value"] == pytest.approx(2 / 3)
    confusion = of(found, "words", by="confusion", group="NN VB")
    assert (confusion["gold"], confusion["proposed"], confusion["value"]) == ("NN", "VB", 1)


def test_a_label_that_is_never_proposed_has_no_precision() -> None:
    found = score_parses([tree("(S (NP (NN a)) (NN b))")], [tree("(S (NN a) (NN b))")])
    records = [record for record in found.records() if record.get("group") == "NP"]
    assert {record["name"]: record["value"] for record in records} == {"recall": 0.0, "f1": 0.0}


@pytest.mark.long
def test_lengths_part_the_sentences(found: ParseScores) -> None:
    """Every sentence is in one range; those of at most 40 words are in the short one."""
    sizes = {str(band): of(found, "sentences", by="length", group=str(band))["value"] for band in (SHORT, *BANDS)}
    # 2 6 10 | 14 18 | 22 26 30 | 34 38 | 42 46
    assert sizes == {"1..40": 10, "1..10": 3, "11..20": 2, "21..30": 3, "31..40": 2, "41..": 2}
    for name in ("matched_brackets", "gold_brackets", "unparsed", "words"):
        parts = [of(found, name, by="length", group=str(band))["value"] for band in BANDS]
        assert sum(parts) == of(found, name)["value"]
        assert of(found, name, by="length", group="1..40")["value"] == sum(parts[:-1])
    # 14 words: the label is wrong; 18 words: no parse
    assert of(found, "labelled_f1", by="length", group="11..20")["value"] == pytest.approx(2 / 6)
    assert of(found, "exact_match", by="length", group="11..20")["value"] == 0.0


def test_punctuation_counts_for_the_length_and_traces_do_not() -> None:
    words = " ".join(f"(NN w{i})" for i in range(9))
    gold = [tree(f"(S (NP {words}) (. .) (. .))"), tree(f"(S (NP {words}) (. .) (-NONE- *))")]
    found = score_parses(gold, gold)
    assert of(found, "sentences", by="length", group="1..10")["value"] == 1
    assert of(found, "sentences", by="length", group="11..20")["value"] == 1


def test_what_has_nothing_to_count_has_no_record() -> None:
    found = score_parses([tree("(ROOT (NN a))")], [None])
    named = {(record["name"], record.get("group")) for record in found.records()}
    assert ("labelled_f1", None) not in named  # no brackets at all
    assert ("no_crossing", None) not in named  # no parse
    assert ("exact_match", None) in named and ("tagging_accuracy", None) in named
    assert not any(group == "11..20" for _, group in named)


def test_intervals_resample_sentences(found: ParseScores) -> None:
    rows = found.brackets.by_sentence
    total = np.array([2.0 * row.matched for row in rows])
    count = np.array([float(row.gold + row.proposed) for row in rows])
    f1 = of(found, "labelled_f1")
    assert (f1["low"], f1["high"]) == pytest.approx(np.clip(resampled_ratio(total, count, seed=5), 0.0, 1.0))
    assert f1["low"] < f1["value"] < f1["high"]
    exact = of(found, "exact_match")
    wilson = binomtest(7, 12).proportion_ci(method="wilson")
    assert (exact["low"], exact["high"]) == pytest.approx((wilson.low, wilson.high))
    assert of(found, "labelled_f1", by="length", group="41..")["low"] is None  # two sentences


def test_shares_of_few_sentences_have_no_interval(found: ParseScores) -> None:
    few = of(found, "exact_match", by="length", group="11..20")
    assert (few["low"], few["high"], few["no_interval"]) == (None, None, "fewer-than-10-sentences")
    assert parts_of(few["signature"])["ci"] == "none/fewer-than-10-sentences"


def test_signatures_say_what_was_compared_and_how(found: ParseScores) -> None:
    parts = parts_of(of(found, "labelled_f1")["signature"])
    assert (parts["parser"], parts["grammar"], parts["brackets"]) == ("max-rule", "ab12", "evalb-collins")
    assert (parts["sentences"], parts["unparsed"]) == ("12", "1")
    assert parts["ci"] == "sentence-bootstrap-t95/seed5"
    band = parts_of(of(found, "labelled_f1", by="length", group="11..20")["signature"])
    assert (band["band"], band["sentences"], band["ci"]) == ("11..20", "2", "none/fewer-than-10-sentences")
    assert parts_of(of(found, "exact_match")["signature"])["ci"] == "wilson95"
    other = score_parses([flat(2, "S"), *GOLD[1:]], PARSED, parser="max-rule", grammar="ab12", seed=5)
    changed = parts_of(of(other, "labelled_f1")["signature"])
    assert changed["data"] == parts["data"]  # the same sentences
    assert changed["reference"] != parts["reference"]  # another treebank


def test_records_are_json_and_hold_a_row_a_sentence_if_asked(found: ParseScores) -> None:
    records = {"summary": found.records(), "sentences": found.rows()}
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    assert "sentences" not in found.records()
    assert len(records["sentences"]) == 12
    assert records["sentences"][4] == {
        "number": 5, "length": 18, "words": 18, "gold": 2, "proposed": 0, "matched": 0, "matched_unlabelled": 0,
        "crossing": 0, "tagged": 0, "exact": False, "parsed": False,
    }  # fmt: skip
    assert set(RATIOS + SHARES + COUNTS) == {record["name"] for record in records["summary"] if "by" not in record}


def test_the_treebank_itself_is_right_throughout() -> None:
    found = score_parses(GOLD, GOLD)
    for name in set(RATIOS + SHARES) - {"crossing_brackets"}:
        record = of(found, name)
        assert record["value"] == record["high"] == 1.0
    crossing = of(found, "crossing_brackets")
    assert (crossing["value"], crossing["low"], crossing["high"]) == (0.0, 0.0, 0.0)


def test_other_words_are_refused() -> None:
    with pytest.raises(InputError, match="parse 2 has other words than tree 2"):
        score_parses([flat(2), flat(3)], [flat(2), flat(4)])
