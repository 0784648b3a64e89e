"""Sums over tokenisations in a run: the stage, what it leaves, when it is skipped, and its section of the report."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pyarrow import parquet
from seat_grammar import SEAT_GRAMMAR
from tiny_run import RunCopies, prepare, run

from truesource.evaluation.measures.bootstrap import Interval
from truesource.evaluation.tokenisation.figures import (
    Cost,
    Parts,
    cost_figure,
    decomposition_figure,
    tokenisation_figure,
)
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder
from truesource.run.experiment import build_report, load_config, plan

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]

CONFIG = """\
name: toy
seed: 3
grammar: {method: file, file: toy.txt}
corpus: {lengths: 2..5, splits: {train: 100, dev: 20, eval: 30}}
models:
  - name: network
    model: {dim: 8, heads: 2, layers: 1, tokenizer: bpe, vocab_size: 22, max_positions: 60}
    training: {max_steps: 4}
  - {name: counts, model: {architecture: ngram, order: 2, tokenizer: unigram, vocab_size: 22}}
  - {name: words, model: {architecture: ngram, order: 2}}
evaluation:
  tokenisation: {estimators: [exact, wor1, bracket], samples: 8, sentences: 6, equal_cost: 1, per_document: 2,
    out_of_domain: [respell=0.5], tolerance: 0.3}
"""
STAGES = [
    *("grammar", "corpus", "train:network", "train:counts", "train:words"),
    *("score:oracle", "score:network", "score:counts", "score:words"),
    *("vocabulary", "compare:network", "compare:counts", "compare:words"),
    *("tokenisation:network", "tokenisation:counts", "report"),
]


@pytest.fixture(scope="module")
def finished(finished_run: RunCopies) -> Path:
    """A finished run, in a folder with its configuration."""
    return finished_run("tokenisation", lambda folder: run(prepare(folder, CONFIG, SEAT_GRAMMAR)))


def found(folder: Path, name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "runs" / "toy" / "tokenisation" / f"{name}.json").read_text("utf-8"))
    return value


def test_causal_models_of_pieces_have_the_stage(finished: Path) -> None:
    assert [stage.name for stage in plan(load_config(finished / "toy.yaml"))] == STAGES
    without = load_config(finished / "toy.yaml", ["evaluation.tokenisation=null"])
    assert not any(stage.name.startswith("tokenisation") for stage in plan(without))


def test_the_packaged_configuration_sums_for_three_models() -> None:
    stages = [stage.name for stage in plan(load_config(data_folder() / "tokenisation.yaml"))]
    assert [name for name in stages if name.startswith("tokenisation:")] == [
        "tokenisation:gpt2-bpe", "tokenisation:gpt2-unigram", "tokenisation:trigram-unigram"
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["network", "counts"])
def test_what_the_stage_leaves(name: str, finished: Path) -> None:
    value = found(finished, name)
    assert (value["marginal"], value["bound"], value["documents"]) == ("exact", "exact", 6)
    records = {r["name"]: r for r in value["records"] if r.get("run") == "exact" and not {"by", "table"} & r.keys()}
    parts = records["tokenisation_gap_per_word"]["value"] + records["model_gap_per_word"]["value"]
    assert parts == pytest.approx(records["distance_per_word"]["value"], rel=1e-9)
    assert "given:2..5" in records["distance"]["signature"].split("|")
    assert all({"name", "value", "low", "high", "signature"} <= record.keys() for record in value["records"])
    assert {r["table"] for r in value["records"] if "table" in r} == {"equal-cost", "out-of-domain"}
    assert "sentences-a-document:2" in records["distance"]["signature"].split("|")
    assert len(value["gaps"]) == 6
    table = parquet.read_table(finished / "runs" / "toy" / "tokenisation" / f"{name}.parquet").to_pandas()
    assert set(table["run"]) == {"one-best", "exact", "wor1", "bracket"}
    assert len(table) == 24


@pytest.mark.usefixtures("quick_report")
def test_the_stage_is_made_again_for_its_own_settings_only(finished: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished, tmp_path / "copy")
    assert run(copy) == []
    other = "evaluation.tokenisation={estimators: [nbest], samples: 2, sentences: 2, equal_cost: 0}"
    assert run(copy, other) == ["tokenisation:network", "tokenisation:counts", "report"]
    (copy / "runs" / "toy" / "tokenisation" / "counts.json").unlink()
    assert run(copy, other) == ["tokenisation:counts"]


FEW = "estimators: [exact], samples: 3, sentences: 5, equal_cost: 0"


def test_other_texts_are_measured_beside_the_split_and_pooled(finished: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished, tmp_path / "copy")
    words = ["the cat sees the cat", "a seat", "cat a heath the", "xyz"]
    trees = "".join(f"(S {' '.join(f'(X {word})' for word in text.split())})\n" for text in words)
    (copy / "away.mrg").write_text(trees, encoding="utf-8")
    asked = f"evaluation.tokenisation={{{FEW}, grid: true, also: {{away: away.mrg}}}}"
    assert run(copy, asked) == ["tokenisation:network", "tokenisation:counts", "report"]
    value = found(copy, "network")
    assert {row["set"] for row in value["gaps"]} == {"eval", "away"}
    assert [row["set"] for row in value["gaps"]] == ["eval"] * 5 + ["away"] * 3

    def of_set(name: str | None, table: str | None, run: str = "exact") -> dict[str, Any]:
        place = {"set": name, "table": table, "run": run, "by": None}
        return {r["name"]: r for r in value["records"] if all(r.get(key) == x for key, x in place.items())}

    assert of_set("eval", "sets")["ppl"]["value"] == of_set(None, None)["ppl"]["value"]
    nats = sum(of_set(name, "sets")["log_p"]["value"] for name in ("eval", "away"))
    assert of_set("pooled", "sets")["log_p"]["value"] == pytest.approx(nats, rel=1e-12)
    assert of_set("pooled", "sets")["documents"]["value"] == 8
    table = parquet.read_table(copy / "runs" / "toy" / "tokenisation" / "network.parquet").to_pandas()
    assert table.groupby("set", sort=False).size().to_dict() == {"eval": 10, "away": 6}
    html = (copy / "runs" / "toy" / "report.html").read_text(encoding="utf-8")
    for name in ("eval", "away", "pooled"):
        record = of_set(name, "sets")["ppl"]
        assert f"{record['value']:.2f}<" in html
        assert record["signature"] in html
    grid = [row for row in value["records"] if row.get("table") == "sets-grid" and row["name"] == "ppl"]
    assert len(grid) == 3 * 9
    assert all(f">{row['value']:.2f}</td>" in html for row in grid)
    assert ", all sets" in html
    assert len(re.findall('<td class="n"[^>]*>1</td>', html)) == 4  # documents left out: of two models, and pooled
    assert run(copy, asked) == []
    file = copy / "runs" / "toy" / "tokenisation" / "network.json"
    score = {"name": "below_bound", "value": 9.5, "low": None, "high": None, "signature": ""}
    place = {"table": "sets", "set": "away", "run": "exact", "warning": "ln P by exact is 9.5 nats below"}
    changed = json.loads(file.read_text("utf-8"))
    kept = file.read_bytes()
    file.write_text(json.dumps({**changed, "records": [*changed["records"], {**place, **score}]}), encoding="utf-8")
    assert "Warning: away: ln P by exact is 9.5 nats below." in page(copy)
    file.write_bytes(kept)
    (copy / "away.mrg").write_text("(S (X the) (X cat) (X sees))\n", encoding="utf-8")
    assert run(copy, asked) == ["tokenisation:network", "tokenisation:counts", "report"]


@pytest.mark.usefixtures("quick_report")
def test_what_stands_around_a_text_can_be_set(finished: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished, tmp_path / "copy")
    network = "models=[{name: network, model: {dim: 8, heads: 2, layers: 1, tokenizer: bpe, vocab_size: 22,"
    network += " max_positions: 60}, training: {max_steps: 4}}]"
    asked = f"evaluation.tokenisation={{{FEW}, before: eos, end: false}}"
    assert "tokenisation:network" in run(copy, network, asked)
    value = found(copy, "network")
    assert all("|before:eos|" in r["signature"] and "|eos:out|" in r["signature"] for r in value["records"])
    names = {record["name"] for record in value["records"]}
    assert "gap" in names and "distance" not in names
    with pytest.raises(InputError, match="before and end are for networks, and counts counts n-grams of pieces"):
        load_config(finished / "toy.yaml", [asked])
    page(copy)


@pytest.mark.usefixtures("quick_report")
def test_where_exact_alone_cannot_be_there_is_nothing_to_measure(finished: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished, tmp_path / "copy")
    asked = "evaluation.tokenisation={estimators: [exact], sentences: 3, most_prefixes: 1}"
    assert "report" in run(copy, asked)
    stages = json.loads((copy / "runs" / "toy" / "stages.json").read_text("utf-8"))["stages"]
    codes = {name: stages[f"tokenisation:{name}"]["unmeasured"]["code"] for name in ("network", "counts")}
    assert codes == {"network": "too-many-segmentations", "counts": "no-document"}


def page(finished: Path) -> str:
    return build_report(finished / "runs" / "toy").read_text(encoding="utf-8")


def test_the_report_has_a_section(finished: Path) -> None:
    html = (finished / "runs" / "toy" / "report.html").read_text(encoding="utf-8")
    root = ElementTree.fromstring(re.sub(r"<(meta|br)([^>]*)>", r"<\1\2/>", html.replace("<!DOCTYPE html>", "")))
    assert len(root.findall(".//section")) == 8
    ids = [node.attrib["id"] for node in root.iter() if "id" in node.attrib]
    assert len(ids) == len(set(ids))
    section = next(node for node in root.iter("section") if node.attrib["id"] == "tokenisation")
    text = re.sub(r"\s+", " ", "".join(section.itertext()))
    for part in (
        "7Sums over segmentations",
        "network: 6 documents",
        "counts: 6 documents",
        "tokenisation gap",
        "against the reference exact",
        "to \N{MINUS SIGN}",
        "respell=0.5",
    ):
        assert part in text
    assert len(list(section.iter("{http://www.w3.org/2000/svg}svg")) or list(section.iter("svg"))) == 5
    for name in ("network", "counts"):
        for record in found(finished, name)["records"]:
            if record["name"] == "ppl" and record.get("run") in ("one-best", "exact", "wor1"):
                assert record["signature"] in html
                assert f"{record['value']:.2f}<" in html
    assert "8 Provenance" in html
    assert 'class="no">8<' in html


def test_what_cannot_be_believed_is_said(finished: Path) -> None:
    file = finished / "runs" / "toy" / "tokenisation" / "network.json"
    whole = file.read_text(encoding="utf-8")
    value = json.loads(whole)
    gone = (("wor1", "ppl"), ("exact", "canonical_mass"))
    records = [record for record in value["records"] if (record.get("run"), record["name"]) not in gone]
    note = {"bound": "unbiased", "note": "error bar too small: 9.5 below exact"}
    score = {"value": 9.5, "low": None, "high": None, "signature": ""}
    records.append({"run": "wor1", "name": "error_too_small", **note, **score})
    records.append({"run": "exact", "name": "below_bound", "warning": "ln P by exact is 9.5 nats below", **score})
    for record in records:
        if (record.get("run"), record["name"]) == ("bracket", "ppl"):
            record["value"] = 2.5e200
        if (record.get("run"), record["name"]) == ("wor1", "standard_error"):
            record["value"] = 1e-9
        if (record.get("run"), record["name"]) == ("wor1", "log_p"):
            record["low"], record["high"] = record["value"] - 2e-9, record["value"] + 2e-9
    file.write_text(json.dumps({**value, "records": records}), encoding="utf-8")
    html = page(finished)
    file.write_text(whole, encoding="utf-8")
    usual = page(finished)
    for part in (
        "error bar too small: 9.5 below exact</small>", "Warning: ln P by exact is 9.5 nats below.",
        "over 1e308", "2.5e+200", "<small>below rounding, ±",
    ):  # fmt: skip
        assert part in html
        assert part not in usual


def test_a_run_without_it_has_no_section(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_folder = finished / "runs" / "toy"
    config = json.loads((run_folder / "config.json").read_text("utf-8"))
    kept = config["evaluation"]["tokenisation"]
    config["evaluation"]["tokenisation"] = None
    write_json(run_folder / "config.json", config)
    html = page(finished)
    assert '<section id="tokenisation">' not in html
    assert "7 Provenance" in html
    config["evaluation"]["tokenisation"] = kept
    write_json(run_folder / "config.json", config)


def test_a_damaged_file_is_named(finished: Path) -> None:
    file = finished / "runs" / "toy" / "tokenisation" / "network.json"
    whole = file.read_text(encoding="utf-8")
    file.write_text('{"marginal": "exact"}', encoding="utf-8")
    with pytest.raises(InputError, match=r"this file is damaged: .*network\.json"):
        page(finished)
    file.write_text(whole, encoding="utf-8")


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ("estimators=[magic]", "there is no estimator 'magic'; choose one of auto, exact"),
        ("estimators=[]", "name at least one of"),
        ("samples=1", "wor1 needs at least 3 samples, got 1"),
        ("particle=3", "unknown key"),
        ("out_of_domain=[respell=2]", "above 0 and at most 1, got 2"),
        ("inverse_temperature=-1", "expected 0 or more, not -1"),
        ("also={eval: toy.txt}", "two sets of texts have the name 'eval'"),
        ("also={a b: toy.txt}", "'a b' is not a name for a set of texts"),
        ("end=false", "out_of_domain and per_document need the end of texts"),
    ],
)
def test_bad_settings(setting: str, part: str, finished: Path) -> None:
    with pytest.raises(InputError, match=re.escape(part)):
        load_config(finished / "toy.yaml", [f"evaluation.tokenisation.{setting}"])


# -- figures ----------------------------------------------------------------------------------------


def test_gaps_that_differ_much_are_drawn_on_a_logarithmic_axis() -> None:
    apart = [Parts("a", Interval(4.0, 3.9, 4.1), Interval(0.4, 0.3, 0.5), Interval(0.001, 0.0008, 0.0012))]
    close = [Parts("a", Interval(4.0, 3.9, 4.1), Interval(0.4, -0.1, 0.5), Interval(0.3, 0.2, 0.4))]
    assert "0.001" in words(decomposition_figure(apart))
    assert "0.001" not in words(decomposition_figure(close))
    assert {"true NLL", "model gap", "tokenisation gap", "4.40"} <= words(decomposition_figure(apart))


def test_errors_of_zero_can_be_drawn() -> None:
    points = [Cost("exact", 3.0, 0.0, True, "exact"), Cost("wr", 8.0, 0.5, False, "exact")]
    assert {"exact", "wr"} <= words(cost_figure(0, points))


def test_a_figure_without_numbers_is_empty_but_whole() -> None:
    assert words(tokenisation_figure([], [])) == set()


def words(svg: str) -> set[str]:
    text = ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    return {"".join(node.itertext()).strip() for node in text.iter("{http://www.w3.org/2000/svg}text")}
