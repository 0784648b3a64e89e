"""`truesource benchmark`: models measured, shown, checked and joined from the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from command_line import Command
from tiny_benchmark import SUITE

pytestmark = pytest.mark.long

GRU = """
from torch import nn

class GRU(nn.Module):
    def __init__(self, vocabulary_size, hidden=8):
        super().__init__()
        self.words, self.cells = nn.Embedding(vocabulary_size, hidden), nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocabulary_size)

    def forward(self, input_ids, attention_mask):
        return self.out(self.cells(self.words(input_ids))[0])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mini.yaml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "own.py").write_text(GRU, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_of_ones_own_is_measured_shown_checked_and_joined(folder: Path, command: Command) -> None:
    measured = command(
        *("benchmark", "--suite", "mini.yaml", "--model", "own.py:GRU", "--set", "model.hidden=6", "--name", "mine"),
        *("--workers", "1", "-o", "results", "--table", "table.csv"),
    )
    assert measured.code == 0, measured.err
    results = json.loads((folder / "results" / "results.json").read_text(encoding="utf-8"))
    (model,) = results["models"]
    assert (model["name"], model["architecture"]) == ("mine", "own.py:GRU")
    assert model["settings"]["model"]["hidden"] == 6
    assert len(model["cells"]) == 4
    with (folder / "table.csv").open(encoding="utf-8") as stream:
        assert any("mine" in cell for row in csv.reader(stream) for cell in row)
    assert "mine" in (folder / "results" / "leaderboard.html").read_text(encoding="utf-8")

    again = command("benchmark", "--suite", "mini.yaml", "--check", "results/results.json", "--cell", "chain/mine/2")
    assert again.code == 0, again.err

    shown = command("benchmark", "--suite", "mini.yaml", "--join", "results/results.json", "-o", "page")
    assert shown.code == 0, shown.err
    assert (folder / "page" / "leaderboard.html").is_file()


def test_changed_numbers_end_with_code_2(folder: Path, command: Command) -> None:
    assert command("benchmark", "--suite", "mini.yaml", "--model", "small", "--workers", "1", "-o", "results").code == 0
    path = folder / "results" / "results.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    for cell in results["models"][0]["cells"]:
        cell["test"]["kl"] = [value / 10.0 for value in cell["test"]["kl"]]
    path.write_text(json.dumps(results), encoding="utf-8")
    assert command("benchmark", "--suite", "mini.yaml", "--check", path).code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("--suite", "huge"),
        ("--model", "small"),
        ("--model", "gpt9", "-o", "results"),
        ("--model", "small", "--languages", "klingon", "-o", "results"),
        ("--model", "small", "--seeds", "one", "-o", "results"),
        ("--model", "small", "--shard", "3/2", "-o", "results"),
        ("--model", "small", "--model", "bigram", "--name", "both", "-o", "results"),
        ("--join", "absent.json"),
        ("--check", "absent.json"),
        ("--plan", "--check", "absent.json"),
        ("--plan", "-o", "results"),
        ("--cell", "chain/small/1"),
        (),
    ],
)
def test_a_wrong_call_ends_with_code_2_and_leaves_nothing(
    folder: Path, command: Command, arguments: tuple[str, ...]
) -> None:
    suite = () if "--suite" in arguments else ("--suite", "mini.yaml")
    outcome = command("benchmark", *suite, *arguments)
    assert outcome.code == 2
    assert "Traceback" not in outcome.err
    assert {path.name for path in folder.iterdir()} == {"mini.yaml", "own.py"}


def test_pairs_are_exported_as_tasks(folder: Path, command: Command) -> None:
    exported = command("benchmark", "--suite", "mini.yaml", "--languages", "brackets", "--export-lm-eval", "tasks")
    assert exported.code == 0, exported.err
    assert {".yaml", ".jsonl"} <= {path.suffix for path in (folder / "tasks").iterdir()}
    assert command("benchmark", "--suite", "mini.yaml", "--export-lm-eval", "tasks").code == 2
