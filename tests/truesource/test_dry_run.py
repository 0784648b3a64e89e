"""`truesource run --dry-run`: which stages would be made and why, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Command
from stopping import contents
from tiny_run import prepare, run

from truesource.run.experiment import dry_run, load_config
from truesource.run.runner import Fate

pytestmark = pytest.mark.long

GRAMMAR = "S -> NP VP 1.0\nNP -> 'they' 0.6 | 'fish' 0.4\nVP -> V NP 0.4 | V 0.6\nV -> 'fish' 0.7 | 'can' 0.3\n"
CONFIG = """\
name: toy
grammar: {method: file, file: toy.txt}
corpus: {splits: {train: 60, dev: 10, eval: 20}}
models:
  - {name: a, model: {architecture: ngram, order: 2}}
  - {name: b, model: {architecture: ngram, order: 3}}
evaluation: {divergence: {sentences: 10}}
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = prepare(tmp_path_factory.mktemp("dry"), CONFIG, GRAMMAR)
    run(folder)
    return folder


def planned(folder: Path, *overrides: str, force: bool = False) -> dict[str, tuple[Fate, str]]:
    config = load_config(folder / "toy.yaml", list(overrides))
    stages = dry_run(config, base=folder, runs=folder / "runs", force=force)
    return {stage.name: (stage.fate, stage.reason) for stage in stages}


def test_before_the_first_run_everything_is_new(tmp_path: Path) -> None:
    prepare(tmp_path, CONFIG, GRAMMAR)
    before = contents(tmp_path)
    assert set(planned(tmp_path).values()) == {(Fate.RUNS, "new")}
    assert contents(tmp_path) == before


def test_afterwards_nothing_would_run(finished: Path) -> None:
    before = contents(finished)
    assert set(planned(finished).values()) == {(Fate.UP_TO_DATE, "")}
    assert set(planned(finished, force=True).values()) == {(Fate.RUNS, "--force")}
    assert contents(finished) == before


def test_the_setting_that_changed_is_named(finished: Path) -> None:
    found = planned(finished, "models.1.model.order=4")
    assert found["train:b"] == (Fate.RUNS, "model.order: 3 -> 4")
    assert found["score:b"] == (Fate.MAY_RUN, "if its input changes: train:b")
    assert {found[name][0] for name in ("grammar", "corpus", "train:a", "score:a", "score:oracle")} == {Fate.UP_TO_DATE}
    assert found["report"][0] is Fate.RUNS


def test_what_depends_on_a_stage_waits_for_it(finished: Path) -> None:
    found = planned(finished, "corpus.splits.train=61")
    assert found["corpus"] == (Fate.RUNS, "corpus.splits.train: 60 -> 61")
    assert found["train:a"] == (Fate.MAY_RUN, "if its input changes: corpus")
    assert found["grammar"][0] is Fate.UP_TO_DATE


def test_a_model_more_is_new(finished: Path) -> None:
    found = planned(finished, "models=[{name: a, model: {architecture: ngram, order: 2}}, {name: c, preset: tiny}]")
    assert found["train:c"] == (Fate.RUNS, "new")
    assert found["train:a"][0] is Fate.UP_TO_DATE


@pytest.mark.usefixtures("quick_report")
def test_a_file_that_changed_is_named(tmp_path: Path) -> None:
    run(prepare(tmp_path, CONFIG, GRAMMAR))
    (tmp_path / "toy.txt").write_text(GRAMMAR.replace("0.7", "0.6").replace("0.3", "0.4"), encoding="utf-8")
    fate, reason = planned(tmp_path)["grammar"]
    assert fate is Fate.RUNS
    assert reason.startswith("input changed: ")
    (tmp_path / "toy.txt").write_text(GRAMMAR, encoding="utf-8")
    (tmp_path / "runs/toy/scores/a.parquet").unlink()
    assert planned(tmp_path)["score:a"] == (Fate.RUNS, "files are missing or incomplete")


@pytest.mark.usefixtures("quick_report")
def test_what_is_planned_is_what_is_made(tmp_path: Path) -> None:
    run(prepare(tmp_path, CONFIG, GRAMMAR))
    change = "evaluation.divergence.sentences=5"
    expected = [name for name, (fate, _) in planned(tmp_path, change).items() if fate is not Fate.UP_TO_DATE]
    assert run(tmp_path, change) == expected


def test_the_command_prints_the_stages(finished: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished)
    found = command("run", "toy.yaml", "--dry-run", "--set", "models.0.model.order=1")
    assert found.code == 0
    assert "model.order: 2 -> 1" in found.out
    assert "up to date. Nothing was written. Next: the same command without --dry-run." in found.out
    assert "stages: 2 to run, " in found.out
    found = command("run", "toy.yaml", "--dry-run")
    assert "There is nothing to do; the report is runs/toy/report.html." in found.out and "Next" not in found.out
