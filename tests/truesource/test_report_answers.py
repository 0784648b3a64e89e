"""The sentences at the head of a report: how good the grammar is, how natural its text, where the divergence lies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_run import BANK, RunCopies, prepare, run

from truesource.evaluation.divergence.report import constructions, nearest
from truesource.evaluation.naturalness.report import headline
from truesource.evaluation.parsing import score_parses
from truesource.evaluation.show import words
from truesource.grammar.estimate.relative_frequency import relative_frequency
from truesource.grammar.parsing import ParseMethod
from truesource.grammar.parsing.parser import Parse, Parser
from truesource.grammar.pcfg import PCFG
from truesource.grammar.treebank import Treebank
from truesource.run.experiment import load_config
from truesource.run.grammar.quality import ALL, INDUCED, PARSED, PLAIN, stages
from truesource.run.grammar.section import parsing_sentence, parsing_table

pytestmark = pytest.mark.long

CONFIG = """\
name: toy
seed: 2
treebank: {files: bank.mrg, held_out_files: held.mrg}
grammar: {method: split_merge, split_merge: {cycles: 1, em_split: 3, em_merge: 2, em_smooth: 2}}
corpus: {lengths: 1..9, splits: {train: 40, eval: 20}}
models:
  - {name: counts, preset: tiny, model: {architecture: ngram}}
evaluation: {divergence: {sentences: 10}}
"""
HELD = """\
( (S (NP (D a) (N man)) (VP (V sees) (NP (D the) (N park)))) )
( (S (NP (N unicorn)) (VP (V walks))) )
( (S (NP (D the) (N dog)) (VP (V walks) (PP (P in) (NP (D a) (N park))))) )
"""


@pytest.fixture(scope="module")
def folder(finished_run: RunCopies) -> Path:
    def fill(folder: Path) -> None:
        (folder / "bank.mrg").write_text(2 * BANK, encoding="utf-8")
        (folder / "held.mrg").write_text(HELD, encoding="utf-8")
        run(prepare(folder, CONFIG, ""))

    return finished_run("answers", fill)


@pytest.fixture
def records(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "runs/toy/grammar/parsing.json").read_text("utf-8"))["records"]
    return found


def test_held_out_trees_are_parsed_by_both_grammars(folder: Path, records: list[dict[str, Any]]) -> None:
    place = folder / "runs" / "toy"
    gold = list(Treebank.read(place / "treebank" / "held_out.mrg.gz", None).trees)
    bank = Treebank.read(place / "treebank" / "treebank.mrg.gz", None)
    config = load_config(folder / "toy.yaml").grammar
    grammars = {
        INDUCED: PCFG.load(place / "grammar" / "grammar.npz"),
        PLAIN: relative_frequency(bank.binarise(config.binarise)),
    }
    values = {(r["trees"], r["parser"], r["name"]): r["value"] for r in records}
    for name, pcfg in grammars.items():
        found = [Parser(pcfg, ParseMethod.MAX_RULE).parse_all([tree.leaves()])[0] for tree in gold]
        trees = [parse.tree if isinstance(parse, Parse) else None for parse in found]
        assert [tree is None for tree in trees] == [False, True, False]  # no grammar knows unicorns
        for which, kept in ((ALL, [0, 1, 2]), (PARSED, [0, 2])):
            scores = score_parses([gold[i] for i in kept], [trees[i] for i in kept]).brackets
            assert values[which, name, "labelled_f1"] == pytest.approx(scores.f1, rel=1e-12)
            assert values[which, name, "sentences"] == len(kept)
    assert values[ALL, INDUCED, "unparsed"] == 1 and values[PARSED, INDUCED, "unparsed"] == 0


def test_the_page_answers_how_good_the_grammar_is(folder: Path, records: list[dict[str, Any]]) -> None:
    sentence = parsing_sentence(records)
    f1 = {r["parser"]: r["value"] for r in records if r["name"] == "labelled_f1" and r["trees"] == PARSED}
    assert sentence.startswith("On the 2 of 3 held-out trees that can be parsed")
    assert f"{f1[INDUCED]:.3f} [-]; the plain grammar of the same trees, {f1[PLAIN]:.3f}" in sentence
    assert sentence in (folder / "runs/toy/report.html").read_text("utf-8")
    assert len(parsing_table(records).rows) == 4
    assert "None of 3 held-out trees has a parse" in parsing_sentence([r for r in records if r["trees"] == ALL])


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ([], 1),
        (["treebank={embedded: 'english:size=small'}"], 0),
        (["treebank.held_out_files=null", "treebank.held_out=0"], 0),
        (["grammar.variant=temperature=0.5"], 0),
    ],
)
def test_grammars_that_are_not_those_of_held_out_trees_are_not_tried(
    folder: Path, change: list[str], wanted: int
) -> None:
    assert len(stages(load_config(folder / "toy.yaml", change))) == wanted


def test_the_largest_parts_of_a_divergence_are_named_with_their_intervals(folder: Path) -> None:
    record = json.loads((folder / "runs/toy/divergence/counts.json").read_text("utf-8"))
    sentence = constructions(record)
    for by in ("phrase", "class"):
        rows = [r for r in record["records"] if r.get("by") == by and r["name"] == "kl" and r["group"] != "(end)"]
        most = max(rows, key=lambda r: r["value"] * r["tokens"])
        share = most["value"] * most["tokens"] / sum(r["value"] * r["tokens"] for r in rows)
        assert (
            f"{most['group']} ({share:.0%} of it, {most['value']:.3f} [{most['low']:.3f}, {most['high']:.3f}]"
            in sentence
        )
    assert constructions({"model": "m", "records": []}) == ""


def test_only_the_nearest_model_of_each_objective_is_named() -> None:
    def record(model: str, objective: str, kl: float | None) -> dict[str, Any]:
        name = "kl_infinite" if kl is None else "kl"
        return {"model": model, "objective": objective, "records": [{"name": name, "value": kl or 0.5}]}

    every = [record("far", "causal", 0.9), record("near", "causal", 0.3), record("never", "masked", None)]
    assert [each["model"] for each in nearest([*every, record("only", "masked", 2.0)])] == ["near", "only"]


def test_naturalness_stands_next_to_its_ceiling() -> None:
    name = "ngram_shared_tokens_2"
    shares = {"held-out trees": (0.25, 0.24, 0.27), "corpus": (0.14, 0.13, 0.15), "raw grammar": (0.08, 0.07, 0.09)}
    records = [
        {"source": source, "name": name, "value": value, "low": low, "high": high}
        for source, (value, low, high) in shares.items()
    ]
    (sentence,) = headline({"reference": "held-out trees", "records": records})
    assert "corpus, 14.0% (13.0% to 15.0% by halves)" in sentence and "25.0%" in sentence.partition("other half")[2]
    assert "plain grammar, 8.0%" in sentence
    assert headline({"reference": "held-out trees", "records": records[:1]}) == []


def test_the_box_names_the_vocabulary_of_a_comparison() -> None:
    row = {"objective": "causal", "relative_ppl": 1.2, "sentences": 50, "excluded": 0}

    def said(vocab: str, compared: str = "") -> list[str]:
        signed = f"objective:causal|vocab:{vocab}{compared}|v:1"
        rows = [{**row, "model": name, "signature": signed} for name in ("a", "b")]
        return words.answer(rows, lambda *_: None)

    assert any("compared in the 103 words" in sentence for sentence in said("103/ab/full-contexts", "|compared:common"))
    assert any("in all 103 words of the truth" in sentence for sentence in said("103/all", "|compared:full/uniform"))
    assert not any("compared in" in sentence for sentence in said("103/ab"))
