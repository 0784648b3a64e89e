"""An evaluation that finds nothing to measure is a note in the report; the run goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_run import RunCopies

from truesource.evaluation.evaluators import EVALUATORS
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.report.finished_run import read_run
from truesource.run import runner
from truesource.run.config import RunConfig
from truesource.run.experiment import execute, load_config
from truesource.run.sections import unmeasured
from truesource.run.stage import Stage

pytestmark = pytest.mark.long

GRAMMAR = "S -> '(' S ')' 0.2 | '[' S ']' 0.2 | S S 0.2 | '(' ')' 0.2 | '[' ']' 0.2\n"
CONFIG = """\
name: dyck
seed: 1
grammar: {method: file, file: dyck.txt}
corpus: {lengths: 2..6, splits: {train: 100, eval: 20}}
models:
  - {name: two, model: {architecture: ngram, order: 2}}
  - {name: three, model: {architecture: ngram, order: 3}}
evaluation:
  pplu: true
  pairs: {number: 2}
"""


def run(folder: Path, *overrides: str) -> Path:
    execute(load_config(folder / "dyck.yaml", list(overrides)), base=folder, runs=folder / "runs")
    return folder / "runs" / "dyck"


def stages(folder: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads((folder / "stages.json").read_text("utf-8"))["stages"]
    return found


@pytest.fixture(scope="module")
def finished(finished_run: RunCopies) -> Path:
    def fill(folder: Path) -> None:
        (folder / "dyck.txt").write_text(GRAMMAR, encoding="utf-8")
        (folder / "dyck.yaml").write_text(CONFIG, encoding="utf-8")
        run(folder)

    return finished_run("dyck", fill)


def test_the_run_ends_with_a_report_that_says_why(finished: Path) -> None:
    folder = finished / "runs" / "dyck"
    found = stages(folder)
    note = found["pairs"]["unmeasured"]
    assert note == found["pairs:two"]["unmeasured"] == found["pairs:three"]["unmeasured"]
    assert isinstance(note, dict) and note["code"] == "no-pairs"
    assert "unmeasured" not in found["pplu:two"] and found["pairs"]["files"] == {}
    page = (folder / "report.html").read_text(encoding="utf-8")
    section = page[page.index('<section id="pairs">') : page.index('<section id="provenance">')]
    assert f"Nothing to measure: {note['reason']}." in section.replace("&#39;", "'")
    assert '<a href="#pairs">' in page


def test_a_second_run_skips_what_had_nothing_to_measure(finished: Path) -> None:
    assert all(entry["skipped"] for entry in stages(run(finished)).values())


def test_files_of_an_earlier_configuration_do_not_stay(finished: Path) -> None:
    pair = {"sentence_good": "( )", "sentence_bad": "( ) ( )", "phenomenon": "toy"}
    (finished / "own.jsonl").write_text(json.dumps(pair) + "\n", encoding="utf-8")
    folder = run(finished, "evaluation.pairs={file: own.jsonl}")
    assert (folder / "pairs" / "models" / "two.json").is_file()
    assert not any("unmeasured" in entry for entry in stages(folder).values())
    run(finished)
    assert not [path for path in (folder / "pairs").rglob("*") if path.is_file()]
    assert "unmeasured" in stages(folder)["pairs"]


def test_the_same_reason_is_said_once(finished: Path) -> None:
    notes = unmeasured(read_run(finished / "runs" / "dyck"), EVALUATORS)
    assert list(notes) == ["pairs"] and len(notes["pairs"]) == 1


@pytest.mark.parametrize(
    ("stage", "error"),
    [("score:two", NothingToMeasureError("none", "no-text")), ("pplu:two", InputError("a bad setting"))],
)
def test_other_refusals_end_the_run(
    stage: str, error: InputError, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(run: object) -> str:
        raise error

    whole = runner.plan

    def broken_plan(config: RunConfig, evaluators: object) -> list[Stage]:
        return [
            replace(s, inputs=lambda run: "other", make=broken) if s.name == stage else s
            for s in whole(config, EVALUATORS)
        ]

    monkeypatch.setattr("truesource.run.runner.plan", broken_plan)
    with pytest.raises(InputError, match=str(error)):
        run(finished)
