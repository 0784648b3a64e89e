"""Four models that are off by construction: each lever that would help most is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
CASES = {
    "data": (1_000, ("--model", "gpt2", "--set", "model.dim=64", "--set", "training.max_steps=800")),
    "width": (
        39_600,
        (
            *("--model", "lstm", "--set", "model.dim=8", "--set", "model.layers=1"),
            *("--set", "training.max_steps=1500", "--set", "training.learning_rate=0.01"),
        ),
    ),
    "steps": (39_600, ("--model", "gpt2", "--set", "model.dim=64", "--set", "training.max_steps=50")),
    "context": (
        39_600,
        (
            *("--model", "gated_cnn", "--set", "model.dim=64", "--set", "model.layers=1"),
            *("--set", "model.kernel_size=2", "--set", "training.max_steps=800"),
        ),
    ),
}


@pytest.mark.parametrize("lacks", CASES)
def test_what_a_model_lacks_is_named_first(
    lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    train, settings = CASES[lacks]
    shares = f"train={train / (train + 3000):.12f},dev={1000 / (train + 3000):.12f},eval={2000 / (train + 3000):.12f}"
    drawn = command("sample", "dyck", "-n", train + 3000, "--shares", shares, "--lengths", "2..40", "-o", "corpus")
    assert drawn.code == 0, drawn.err
    assert command("train", "corpus", "-o", "model", *settings).code == 0
    done = command("explain", "model", "corpus", "--oracle", "dyck", "-o", "why")
    assert done.code == 0, done.err
    record = json.loads(Path("why/explain.json").read_text("utf-8"))
    assert record["first"] == lacks
    first = record["levers"][0]
    assert first["change"]["high"] < 0.0 and first["p_adjusted"] < 0.001
    kinds = {(row["rung"], row.get("seen")): row["value"] for row in record["ladder"]}
    lines = [kinds["window", k] for k in range(4)]
    assert lines == sorted(lines, reverse=True) and record["kl"]["value"] < lines[0]
    if lacks == "context":  # it sees two words, so it cannot pass that line
        assert record["kl"]["low"] > 0.99 * lines[2]
