"""`truesource infill`: exact fillings of gaps."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from command_line import Command

pytestmark = pytest.mark.long

TOY = "S -> A B 0.5 | B A 0.5\nA -> 'a' 0.75 | 'x' 0.25\nB -> 'b' 1.0\n"


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("toy.txt").write_text(TOY, "utf-8")


def test_fillings_gaps_and_samples_have_their_exact_probabilities(command: Command) -> None:
    done = command("infill", "toy.txt", "___ ___", "-n", 3, "--json", "f.json")
    assert done.code == 0, done.err
    found = json.loads(Path("f.json").read_text("utf-8"))
    probabilities = {each["sentence"]: math.exp(each["log_prob"]) for each in found["fillings"]}
    assert probabilities == pytest.approx({"a b": 0.375, "b a": 0.375, "x b": 0.125, "b x": 0.125})
    assert found["log_prob"] == pytest.approx(0.0, abs=1e-12)
    first = {each["word"]: each["probability"] for each in found["gaps"][0]["words"]}
    assert first == pytest.approx({"b": 0.5, "a": 0.375, "x": 0.125}) and found["gaps"][0]["possible"] == 3
    assert len(found["samples"]) == 3 and set(found["samples"]) <= set(probabilities)
    assert "0.3750" in done.out and "word 2" in done.out
    again = command("infill", "toy.txt", "x ___", "--top", 1)
    assert again.code == 0 and "1.0000" in again.out and "x b" in again.out


MODEL = """
import numpy as np
from truesource.generator.language_model import TokenScores

class Guess:
    name, objective, vocabulary = "guess", "any-order", ("a", "b", "x")

    def score(self, sentences, frame):
        raise NotImplementedError

    def denoise(self, patterns):
        \"\"\"The first gap is a, surely; others are a or x.\"\"\"
        table = np.full((len(patterns), len(patterns[0]), 4), -np.inf)
        for row, pattern in zip(table, patterns):
            first = pattern.index(None) if None in pattern else -1
            row[:, [0, 2]] = np.log(0.5)
            if first == 0:
                row[0] = np.log([0.8, 0.1, 0.1, 1e-300])
        return table
"""


def test_a_model_stands_beside_the_truth(command: Command) -> None:
    """P(a b) of the model: its order is left to right or right to left, each half of the time, and b is never said."""
    Path("guess.py").write_text(MODEL, "utf-8")
    done = command("infill", "toy.txt", "___ ___", "-n", 40, "--model", "guess.py:Guess", "--json", "f.json")
    assert done.code == 0, done.err
    found = json.loads(Path("f.json").read_text("utf-8"))
    of_model = {each["sentence"]: each["model_log_prob"] for each in found["fillings"]}
    assert of_model["a b"] is None and of_model["x b"] is None
    assert of_model["b a"] == of_model["b x"] == pytest.approx(math.log(0.05))
    first = {each["word"]: each["probability"] for each in found["gaps"][0]["model_words"]}
    assert first["a"] == pytest.approx(0.8) and first["b"] == pytest.approx(0.1)
    sampled = {each["sentence"]: each for each in found["model_samples"]}
    assert sum(each["count"] for each in sampled.values()) == 40
    assert sampled["a a"]["log_prob"] is None and math.exp(sampled["a a"]["model_log_prob"]) == pytest.approx(0.4)
    assert "Sampled by the model" in done.out
    many = command("infill", "toy.txt", "___ " * 11, "--model", "guess.py:Guess")
    assert many.code == 2 and "remove the model" in many.err


@pytest.mark.parametrize(
    ("sentence", "said"),
    [("a b", "there is no gap"), ("a ___ ___", "of the grammar matches"), ("moo ___", "lacks the word 'moo'")],
)
def test_bad_calls_get_one_sentence(command: Command, sentence: str, said: str) -> None:
    done = command("infill", "toy.txt", sentence)
    assert done.code == 2 and said in done.err and "Traceback" not in done.err


def test_samples_of_more_gaps_than_can_be_ranked(command, tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "g.txt").write_text("S -> S S 0.4 | 'a' 0.3 | 'b' 0.3\n")
    gaps = " ".join(["___"] * 20)
    code, _, err = command("infill", tmp_path / "g.txt", gaps)
    assert code == 2
    assert "or draw samples (infill -n 10)" in err
    code, out, err = command("infill", tmp_path / "g.txt", gaps, "-n", 2)
    assert code == 0
    assert "No fillings are ranked" in err
    assert sum(len(line.split()) == 20 and set(line.split()) <= {"a", "b"} for line in out.splitlines()) == 2
