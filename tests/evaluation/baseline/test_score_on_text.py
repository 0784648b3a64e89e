"""Several models and the grammar on one text, against sums written out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from truesource.evaluation.core.comparison import score_alone
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.treebank_baseline.measure import GRAMMAR, score_on_text
from truesource.generator.language_model import ScoringFrame, TokenScores, assemble_scores, preset_frame
from truesource.generator.objectives import Objective
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError, NothingToMeasureError

GRAMMAR_OF_TEXT = PCFG.from_text("S -> A S 0.5 | A 0.5\nA -> 'a' 0.5 | 'b' 0.3 | 'c' 0.2")


@dataclass
class WordTable:
    """A causal model of independent words: ``table`` has their probabilities, ``<unk>`` and ``</s>``."""

    table: dict[str, float]
    name: str = "words"
    objective: Objective = "causal"

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(word for word in self.table if word not in ("<unk>", "</s>"))

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        known = set(self.vocabulary)
        with np.errstate(divide="ignore"):
            rows = [
                np.log([*(self.table[w if w in known else "<unk>"] for w in s), self.table["</s>"]]) for s in sentences
            ]
        return assemble_scores(rows, [np.array([w not in known for w in s]) for s in sentences], frame)


MODEL = WordTable({"a": 0.4, "b": 0.2, "<unk>": 0.1, "</s>": 0.3})
OTHER = WordTable({"a": 0.0, "b": 0.5, "<unk>": 0.2, "</s>": 0.3})
TEXT = [["a", "b"], ["b"], ["b", "c"], ["z", "b"], ["b", "b"]]  # z: only the collapsed grammar reads it


def value(records: list[dict[str, Any]], model: str, name: str, **wanted: str) -> float:
    chosen = {"sentences": "common", "words": "all", **wanted}
    found = [r for r in records if r["model"] == model and r["name"] == name and all(r[k] == chosen[k] for k in chosen)]
    assert len(found) == 1
    return float(found[0]["value"])


def ppl(*probabilities: float) -> float:
    return math.exp(-sum(map(math.log, probabilities)) / len(probabilities))


@pytest.mark.long
def test_common_and_all_sentences() -> None:
    found = score_on_text({"one": MODEL, "two": OTHER}, Setting(GRAMMAR_OF_TEXT, TEXT, lengths=None), kind="real")
    assert found.impossible == {"one": 0, "two": 1, GRAMMAR: 0} and found.common == 4 and found.lacking == 1
    one = [0.2, 0.3, 0.2, 0.1, 0.3, 0.1, 0.2, 0.3, 0.2, 0.2, 0.3]
    two = [0.5, 0.3, 0.5, 0.2, 0.3, 0.2, 0.5, 0.3, 0.5, 0.5, 0.3]
    truth = [0.3, 0.5, 0.3, 0.1, 0.5, 0.1, 0.15, 0.5, 0.3, 0.15, 0.5]
    assert value(found.records, "one", "ppl") == pytest.approx(ppl(*one), rel=1e-12)
    assert value(found.records, "two", "ppl") == pytest.approx(ppl(*two), rel=1e-12)
    assert value(found.records, "two", "ratio") == pytest.approx(ppl(*two) / ppl(*one), rel=1e-12)
    assert value(found.records, "one", "ppl", sentences="all") == pytest.approx(ppl(*one, 0.4, 0.2, 0.3), rel=1e-12)
    assert value(found.records, "two", "ppl", sentences="all") == pytest.approx(ppl(*two), rel=1e-12)
    grammar = math.exp(-math.fsum(_truth(s) for s in TEXT[1:]) / len(truth))
    assert value(found.records, GRAMMAR, "reference_ppl") == pytest.approx(grammar, rel=1e-10)
    assert value(found.records, "one", "ratio_to_reference") == pytest.approx(ppl(*one) / grammar, rel=1e-10)


def _truth(sentence: list[str]) -> float:
    """Ln P of a sentence under the grammar with c and what it lacks as <unk>."""
    table = {"a": 0.5, "b": 0.3}
    return sum(math.log(table.get(word, 0.2)) for word in sentence) + len(sentence) * math.log(0.5)


@pytest.mark.long
def test_known_words_alone() -> None:
    found = score_on_text({"one": MODEL}, Setting(GRAMMAR_OF_TEXT, TEXT, lengths=None), kind="real")
    expected = ppl(0.4, 0.2, 0.3, 0.2, 0.3, 0.2, 0.3, 0.2, 0.3, 0.2, 0.2, 0.3)
    assert value(found.records, "one", "ppl", words="known") == pytest.approx(expected, rel=1e-12)
    signatures = {r["words"]: r["signature"] for r in found.records}
    assert "|unk:token|" in signatures["all"] and "|unk:skip|" in signatures["known"]
    without = score_on_text({"one": MODEL}, Setting(GRAMMAR_OF_TEXT, TEXT[:2], lengths=None), kind="real")
    assert {record["words"] for record in without.records} == {"all"}


def test_the_truth_is_on_its_bound_and_sampled_text_has_one() -> None:
    truth = Oracle(GRAMMAR_OF_TEXT)
    text = truth.sample(50, 1)
    found = score_on_text({"truth": truth}, Setting(GRAMMAR_OF_TEXT, text, lengths=None), kind="sampled")
    assert value(found.records, "truth", "relative_ppl") == 1.0
    assert value(found.records, GRAMMAR, "bound") == value(found.records, "truth", "ppl")
    assert not {"reference_ppl", "ratio_to_reference"} & {record["name"] for record in found.records}


def test_what_the_grammar_cannot_make_is_in_all_sentences_only() -> None:
    spelled = PCFG.from_text("S -> 'a' 0.5 | 'b' 'b' 0.5")
    found = score_on_text({"one": MODEL}, Setting(spelled, TEXT, lengths=None), kind="real")
    assert found.counts() == {"given": 5, "impossible": {"one": 0, GRAMMAR: 4}, "common": 1, "lacking": 0}
    assert value(found.records, "one", "ppl") == pytest.approx(ppl(0.2, 0.2, 0.3), rel=1e-12)
    assert value(found.records, GRAMMAR, "reference_ppl") == pytest.approx(2.0 ** (1 / 3), rel=1e-12)


def test_where_nothing_is_common_there_is_no_reference() -> None:
    other = PCFG.from_text("S -> 'a' 'x' 'x' 1.0")
    found = score_on_text({"one": MODEL}, Setting(other, TEXT, lengths=None), kind="real")
    assert found.common == 0 and {(r["model"], r["sentences"]) for r in found.records} == {("one", "all")}


def test_the_published_frame_skips_what_is_unknown_and_keeps_it_in_contexts() -> None:
    found = score_on_text(
        {"one": MODEL}, Setting(GRAMMAR_OF_TEXT, TEXT, lengths=None, frame=preset_frame("paper", "causal")), kind="real"
    )
    assert found.impossible == {"one": 0, GRAMMAR: 1} and {record["words"] for record in found.records} == {"all"}
    assert value(found.records, "one", "ppl") == pytest.approx(ppl(0.2, 0.2), rel=1e-12)
    assert value(found.records, GRAMMAR, "reference_ppl") == pytest.approx(ppl(0.15, 0.15), rel=1e-10)


def test_models_that_do_not_compare_are_refused() -> None:
    truth = Oracle(GRAMMAR_OF_TEXT, "masked")
    wider = WordTable({"a": 0.4, "b": 0.1, "c": 0.1, "<unk>": 0.1, "</s>": 0.3})
    for models, message in (
        ({}, "no model to score"),
        ({GRAMMAR: MODEL}, "the name of the grammar's row"),
        ({"one": MODEL, "two": truth}, "is causal, but two is masked"),
        ({"one": MODEL, "two": wider}, "different vocabularies"),
    ):
        with pytest.raises(InputError, match=message):
            score_on_text(models, Setting(GRAMMAR_OF_TEXT, TEXT, lengths=None), kind="real")  # type: ignore[arg-type]
    with pytest.raises(NothingToMeasureError, match="impossible for the model"):
        score_on_text({"two": OTHER}, Setting(None, [["a"]], lengths=None), kind="real")


def test_a_model_alone() -> None:
    found = score_alone(OTHER, TEXT)
    assert found.ppl.value == pytest.approx(ppl(0.5, 0.3, 0.5, 0.2, 0.3, 0.2, 0.5, 0.3, 0.5, 0.5, 0.3), rel=1e-12)
    assert found.ppl.low is None and "|grammar:none|" in found.signature
    names = {score.name: score.value for score in found.as_scores()}
    assert (names["tokens"], names["sentences"], names["excluded"]) == (11, 4, 1)
    skipping = score_alone(OTHER, TEXT, ScoringFrame(eos=False, unk="skip"))
    assert skipping.ppl.value == pytest.approx(2.0, rel=1e-12)
    with pytest.raises(NothingToMeasureError, match="no position is left to score"):
        score_alone(OTHER, [["a"]])


def test_intervals_are_those_of_a_ratio_of_means() -> None:
    text = [["a"] * (1 + i % 3) + ["b"] * (i % 2) for i in range(300)]
    found = score_alone(MODEL, text).ppl
    totals = np.array([-sum(math.log(MODEL.table[w]) for w in [*s, "</s>"]) for s in text])
    counts = np.array([len(s) + 1.0 for s in text])
    mean = totals.sum() / counts.sum()
    error = math.sqrt((((totals - mean * counts) / counts.sum()) ** 2).sum())
    assert found.low is not None and found.high is not None
    assert math.log(found.low) == pytest.approx(mean - 1.968 * error, abs=2e-4)
    assert math.log(found.high) == pytest.approx(mean + 1.968 * error, abs=2e-4)
