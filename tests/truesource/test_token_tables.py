"""`score --token-table`, `--word-table` and `bound --token-table`: a row for each token, or each word."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command_line import Command

from truesource import PCFG
from truesource.evaluation.core.token_table import word_columns

GRAMMAR = "S -> 'a' S 0.3 | 'b' S 0.3 | 'a' 0.2 | 'c' 0.2\n"
CODE = """
import numpy as np
from truesource.generator.language_model import assemble_scores

class Unigram:
    name, objective, vocabulary = "unigram", "causal", None
    words = {"a": -1.0, "b": -1.25, "c": -2.0, "</s>": -1.5}
    def score(self, sentences, frame):
        rows = [np.array([self.words[w] for w in [*s, "</s>"]]) for s in sentences]
        return assemble_scores(rows, [np.zeros(len(s), dtype=bool) for s in sentences], frame)

unigram = Unigram()
"""
SENTENCES = [["a", "b", "c"], ["c"], ["b", "a"]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("toy.txt").write_text(GRAMMAR, encoding="utf-8")
    Path("own.py").write_text(CODE, encoding="utf-8")
    Path("text").write_text("".join(f"{' '.join(s)}\n" for s in SENTENCES), encoding="utf-8")
    return tmp_path


def rows(file: str) -> list[dict[str, str]]:
    with Path(file).open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_tokens_of_the_model_and_of_the_truth(here: Path, command: Command) -> None:
    call = ("score", "own.py:unigram", "text", "--oracle", "toy.txt")
    found = command(*call, "--token-table", "t.csv", "--word-table", "w.parquet")
    assert found.code == 0, found.err
    assert (
        found.last
        == "Wrote t.csv and w.parquet. Next: truesource compare own.py:unigram OTHER_MODEL text --oracle toy.txt"
    )
    tokens = rows("t.csv")
    names = ["sentence", "position", "token", "word", "log_prob", "surprisal", "truth_log_prob", "truth_surprisal"]
    assert list(tokens[0]) == names
    assert [row["token"] for row in tokens] == ["a", "b", "c", "</s>", "c", "</s>", "b", "a", "</s>"]
    assert [row["word"] for row in tokens] == ["0", "1", "2", "", "0", "", "0", "1", ""]
    assert [float(row["log_prob"]) for row in tokens[:4]] == [-1.0, -1.25, -2.0, -1.5]
    pcfg = PCFG.load(Path("toy.txt"))
    for number, sentence in enumerate(SENTENCES):
        truth = sum(float(row["truth_log_prob"]) for row in tokens if row["sentence"] == str(number))
        assert truth == pytest.approx(pcfg.log_prob(sentence), abs=1e-12)
    words = pq.read_table("w.parquet").to_pylist()
    assert [word["text"] for word in words] == ["a", "b", "c", "c", "b", "a"]
    assert [word["surprisal"] for word in words] == [1.0, 1.25, 2.0, 2.0, 1.25, 1.0]
    assert all(word["tokens"] == 1 and math.isfinite(word["truth_surprisal"]) for word in words)


def test_tokens_of_a_model_alone(here: Path, command: Command) -> None:
    found = command("score", "own.py:unigram", "text", "--token-table", "t.parquet")
    assert found.code == 0, found.err
    table = pq.read_table("t.parquet")
    assert table.column_names == ["sentence", "position", "token", "word", "log_prob", "surprisal"]
    assert table["word"].to_pylist()[3] is None and str(table["word"].type) == "int64"


def test_the_word_table_sums_over_the_tokens_of_a_word() -> None:
    tokens = {
        "sentence": [0, 0, 0, 0, 1],
        "position": [0, 1, 2, 3, 0],
        "token": ["un", "do", "it", "</s>", "x"],
        "word": [0, 0, 1, None, 0],
        "surprisal": [1.0, 2.0, 4.0, 8.0, 16.0],
        "truth_surprisal": [1.0, None, 4.0, 8.0, 16.0],
    }
    assert word_columns(tokens) == {
        "sentence": [0, 0, 1],
        "word": [0, 1, 0],
        "text": ["undo", "it", "x"],
        "tokens": [2, 1, 1],
        "surprisal": [3.0, 4.0, 16.0],
        "truth_surprisal": [None, 4.0, 16.0],
    }


def test_tokens_of_the_bound(here: Path, command: Command) -> None:
    found = command("bound", "toy.txt", "text", "--token-table", "t.csv", "-o", "parts")
    assert found.code == 0, found.err
    tokens = rows("t.csv")
    parts = pq.read_table(Path("parts", "part-00000.parquet"))
    assert list(tokens[0]) == parts.column_names
    assert [float(row["surprisal"]) for row in tokens] == parts["surprisal"].to_pylist()
    assert [row["masked_logprob"] == "" for row in tokens] == [row["token"] == "</s>" for row in tokens]
    assert command("bound", "toy.txt", "text", "--token-table", "t.md").code == 2
