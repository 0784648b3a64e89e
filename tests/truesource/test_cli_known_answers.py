"""`truesource known-answers`: the kit on disk, and the diagnosis of a number."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from command_line import Command

from truesource.evaluation.known_answers.kit import known_answers


@pytest.mark.long
def test_the_command_writes_and_checks(command: Command, tmp_path: Path) -> None:
    kit, record = tmp_path / "kit", known_answers().detail
    values = {answer.name: answer.value for answer in record.texts["words-1"].answers}
    done = command("known-answers", "-o", kit)
    assert done.code == 0, done.err
    assert json.loads((kit / "answers.json").read_text("utf-8")) == asdict(record)
    again = command("known-answers", "-o", kit)
    assert again.code == 2 and "will not overwrite" in again.err
    number, check = f"{values['perplexity per word']:.5f}", ("known-answers", "check")
    good = command(*check, number, "--kit", kit, "--text", "texts/words-1.txt", "--expect", "perplexity per word")
    assert good.code == 0 and f"to {len(number) - 1} digits" in good.out
    other = command(*check, number, "--text", "words-1", "--expect", "bits per byte", "--json", tmp_path / "c.json")
    assert other.code == 3 and "the expected answer is bits per byte" in other.err
    assert json.loads((tmp_path / "c.json").read_text("utf-8"))["matches"][0]["name"] == "perplexity per word"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("check 9.1806", "name a number and a text"),
        ("check --text words-1", "name a number and a text"),
        ("check 9.1806 --text words-1 -o kit", "check writes no kit"),
        ("--text words-1", "--text is for truesource known-answers check"),
        ("check 9.1806 --text words-1 --expect perplexty", "no answer 'perplexty'"),
        ("check 9.1806 --text words-9", "did you mean words-"),
        ("check 9.1806 --text words-1 --kit nowhere", "there is no kit"),
    ],
)
def test_the_command_refuses(arguments: str, message: str, command: Command) -> None:
    done = command("known-answers", *arguments.split())
    assert done.code == 2 and message in done.err and "Traceback" not in done.err
