"""Minimal pairs in a run: the stages, what they leave, when they are skipped, and the section of the report."""

from __future__ import annotations

import html
import json
import logging
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from agreement_grammar import agreement_grammar
from tiny_run import RunCopies, run

from truesource.evaluation.pairs.report import pairs_figure
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError
from truesource.run.experiment import build_report, load_config, plan

pytestmark = pytest.mark.long

CONFIG = """\
name: toy
seed: 3
grammar: {method: file, file: toy.npz}
corpus: {lengths: 3..9, splits: {train: 300, dev: 20, eval: 30}}
models:
  - {name: bigrams, model: {architecture: ngram, order: 2}}
  - {name: raw, model: {architecture: ngram, order: 3, smoothing: mle}}
evaluation: {pairs: {number: 12, tries: 40, tolerance: 0.8}}
"""
MADE_AS_USUAL = tuple(f"evaluation.pairs.{name}" for name in ("number=null", "tries=10", "tolerance=0.5"))


@pytest.fixture(scope="module")
def finished(finished_run: RunCopies) -> Path:
    def fill(folder: Path) -> None:
        agreement_grammar().save(folder / "toy.npz")
        (folder / "toy.yaml").write_text(CONFIG, encoding="utf-8")
        run(folder)

    return finished_run("pairs", fill)


def values(found: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {(r["phenomenon"], r["name"]): r["value"] for r in found["records"] if "by" not in r}


def test_the_stages_are_there_when_asked_for(finished: Path) -> None:
    names = [stage.name for stage in plan(load_config(finished / "toy.yaml"))]
    assert names[-4:] == ["pairs", "pairs:bigrams", "pairs:raw", "report"]
    without = load_config(finished / "toy.yaml", ["evaluation.pairs=null"])
    assert not any(stage.name.startswith("pairs") for stage in plan(without))


def test_what_the_stages_leave(finished: Path) -> None:
    folder = finished / "runs" / "toy" / "pairs"
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["pairs"] == len((folder / "pairs.jsonl").read_text(encoding="utf-8").splitlines()) == 60
    assert summary["notes"] == []
    truth = values(summary["oracle"])
    assert truth["all", "accuracy"] == 1.0
    assert truth["all", "slope"] == pytest.approx(1.0, abs=1e-10)
    for name in ("bigrams", "raw"):
        found = json.loads((folder / "models" / f"{name}.json").read_text(encoding="utf-8"))
        own = values(found)
        assert own["all", "pairs"] == len(found["points"]) == 60
        assert found["left_out"] == {}
        assert 0.5 < own["all", "accuracy"] < 1.0
    neither = own["all", "impossible_for_model"]  # of the model without smoothing
    assert neither > 0
    page = (folder.parent / "report.html").read_text(encoding="utf-8")
    assert re.search(rf"pairs impossible for the model</td>.*<td class=\"n\"[^>]*>{neither}</td><td>", page)


def test_a_model_that_knows_no_pair_does_not_stop_a_run(tmp_path: Path) -> None:
    agreement_grammar().save(tmp_path / "toy.npz")
    config = CONFIG.replace("order: 3, smoothing: mle", "order: 2, min_count: 165")
    (tmp_path / "toy.yaml").write_text(config, encoding="utf-8")
    run(tmp_path)
    folder = tmp_path / "runs" / "toy"
    found = json.loads((folder / "pairs" / "models" / "raw.json").read_text(encoding="utf-8"))
    told = {"a word is outside the model's vocabulary": 60}
    assert found == {"model": "raw", "objective": "causal", "left_out": told, "records": [], "points": []}
    page = (folder / "report.html").read_text(encoding="utf-8")
    section = re.search(r'<section id="pairs">(.*?)</section>', page, re.DOTALL)
    assert section is not None
    sentence = "raw: 60 pairs left out, because a word is outside the model's vocabulary."
    assert sentence in html.unescape(section[1])
    (figure,) = re.findall(r"<svg.*?</svg>", section[1], re.DOTALL)
    assert "bigrams" in figure
    assert ">raw<" not in figure


def test_the_stage_says_how_many_pairs_it_leaves_out_and_what_keeps_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agreement_grammar().save(tmp_path / "toy.npz")
    config = CONFIG.replace("order: 3, smoothing: mle", "order: 2, min_count: 40")
    (tmp_path / "toy.yaml").write_text(config, encoding="utf-8")
    with caplog.at_level(logging.INFO, "truesource"):
        run(tmp_path)
    found = json.loads((tmp_path / "runs" / "toy" / "pairs" / "models" / "raw.json").read_text(encoding="utf-8"))
    (left_out,) = found["left_out"].values()
    assert 0 < left_out < 60
    (line,) = (message for message in caplog.messages if message.startswith(f"raw: {left_out} of 60 pairs excluded"))
    assert "min_count" in line


def test_the_section_of_the_report(finished: Path) -> None:
    page = (finished / "runs" / "toy" / "report.html").read_text(encoding="utf-8")
    section = re.search(r'<section id="pairs">(.*?)</section>', page, re.DOTALL)
    assert section is not None
    assert '<a href="#pairs">7 Minimal pairs</a>' in page
    for text in ("60 pairs of sentences", "subject-verb", "bigrams, causal", "raw, causal", "oracle, causal"):
        assert text in section[1]
    (figure,) = re.findall(r"<svg.*?</svg>", section[1], re.DOTALL)
    assert ElementTree.fromstring(figure.replace("xlink:", "")) is not None
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(set(ids)) == len(ids)


def test_without_pairs_the_section_is_absent(finished: Path) -> None:
    path = finished / "runs" / "toy" / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {**config, "evaluation": {**config["evaluation"], "pairs": None}})
    page = (path.parent / "report.html").read_text(encoding="utf-8")
    assert 'id="pairs"' not in build_report(path.parent).read_text(encoding="utf-8")
    write_json(path, config)
    (path.parent / "report.html").write_text(page, encoding="utf-8")


def test_damaged_records_are_told(finished: Path) -> None:
    path = finished / "runs" / "toy" / "pairs" / "models" / "raw.json"
    whole = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {"records": []})
    with pytest.raises(InputError, match="this file is damaged"):
        build_report(finished / "runs" / "toy")
    write_json(path, whole)


def test_the_figure_is_the_same_every_time(finished: Path) -> None:
    folder = finished / "runs" / "toy" / "pairs" / "models"
    models = {p.stem: json.loads(p.read_text(encoding="utf-8"))["records"] for p in sorted(folder.glob("*.json"))}
    drawn = pairs_figure("causal", models)
    assert drawn == pairs_figure("causal", models)
    assert "by word frequency alone" in drawn


@pytest.mark.usefixtures("quick_report")
def test_a_second_run_skips_and_settings_make_anew(finished: Path) -> None:
    assert run(finished) == []
    assert run(finished, "evaluation.pairs.number=10") == ["pairs", "pairs:bigrams", "pairs:raw", "report"]
    pairs = finished / "runs" / "toy" / "pairs"
    (pairs / "models" / "raw.json").unlink()
    assert run(finished, "evaluation.pairs.number=10") == ["pairs:raw"]


@pytest.mark.usefixtures("quick_report")
def test_own_pairs_and_forms(finished: Path) -> None:
    line = '{"sentence_good": "the dog sleeps", "sentence_bad": "the dog sleep", "phenomenon": "mine"}\n'
    (finished / "own.jsonl").write_text(line, encoding="utf-8")
    own = (*MADE_AS_USUAL, "evaluation.pairs.file=own.jsonl")
    assert run(finished, *own)[0] == "pairs"
    summary = json.loads((finished / "runs" / "toy" / "pairs" / "summary.json").read_text(encoding="utf-8"))
    assert summary["pairs"] == 1
    assert summary["examples"][0]["phenomenon"] == "mine"
    more = line + line.replace("dog", "cat") + line.replace("mine", "other")
    (finished / "own.jsonl").write_text(more, encoding="utf-8")
    run(finished, *own, "evaluation.pairs.phenomena=[mine]", "evaluation.pairs.number=1")
    assert (finished / "runs" / "toy" / "pairs" / "pairs.jsonl").read_text(encoding="utf-8").count("\n") == 1
    (finished / "forms.txt").write_text("verb sleeps sleep\n", encoding="utf-8")
    run(finished, "evaluation.pairs.forms=forms.txt", "evaluation.pairs.phenomena=[subject-verb]")
    summary = json.loads((finished / "runs" / "toy" / "pairs" / "summary.json").read_text(encoding="utf-8"))
    assert [r["phenomenon"] for r in summary["examples"]] == ["subject-verb"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("evaluation.pairs.number=0", "evaluation.pairs.number"),
        (
            "evaluation.pairs.phenomena=[islands]",
            "evaluation.pairs: phenomena: there is no phenomenon 'islands'; there are subject-verb",
        ),
        (
            "evaluation.pairs.file=own.jsonl",
            "evaluation.pairs: tolerance, tries: only used to generate pairs; leave out together with file",
        ),
        ("evaluation.pairs.size=3", "evaluation.pairs.size: unknown key"),
    ],
)
def test_bad_settings_are_named(finished: Path, override: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_config(finished / "toy.yaml", [override])
    assert message in str(caught.value)
