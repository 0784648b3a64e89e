"""Released token scores, and published choices on grammars of one's own."""

from __future__ import annotations

import gzip
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from command_line import Command

from truesource.evaluation.core.published_scores import read_published, read_words
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

SHARED = os.environ.get("TRUESOURCE_SHARED_DATA")
MASKED = "the <apostrophe>s dog\nToken: 0\n0.5\nToken: 1\n0.25\nToken: 2\n0.125\nno\nToken: 0\n1.0\n"


@pytest.mark.long
@pytest.mark.skipif(SHARED is None, reason="TRUESOURCE_SHARED_DATA is not set")
@pytest.mark.parametrize(("file", "value", "tokens"), [("clm.json.gz", 183.06, 984), ("mlm.txt.gz", 63.86, 115_960)])
def test_the_published_bounds_come_from_one_command(
    file: str, value: float, tokens: int, command: Command, tmp_path: Path
) -> None:
    folder = Path(str(SHARED)) / "reference" / "jumelet2023"
    words, out = folder / "vocab.json.gz", tmp_path / "found.json"
    call = ["bound", "--token-scores", folder / file, "--vocabulary", words, "--frame", "paper", "--json", out]
    done = command(*call)
    assert done.code == 0, done.err
    (score,) = json.loads(out.read_text())["summary"]
    assert score["value"] == pytest.approx(value, abs=0.005)
    assert f"|tokens:{tokens}|" in score["signature"] and "|unk:skip|" in score["signature"]


def test_both_formats_are_read(tmp_path: Path, command: Command) -> None:
    (tmp_path / "m.txt.gz").write_bytes(gzip.compress(MASKED.encode()))
    found = read_published(tmp_path / "m.txt.gz")
    assert (found.objective, found.sentences) == ("masked", [["the", "'s", "dog"], ["no"]])
    assert np.concatenate(found.rows) == pytest.approx(np.log([0.5, 0.25, 0.125, 1.0]))
    (tmp_path / "c.json").write_text(json.dumps({"the <apostrophe>s dog": [1.0, 2.0, 3.0], "no": [0.5]}))
    causal = read_published(tmp_path / "c.json")
    assert (causal.objective, causal.sentences) == ("causal", found.sentences)
    assert [row.tolist() for row in causal.rows] == [[-1.0, -2.0, -3.0], [-0.5]]
    (tmp_path / "words").write_text("the\n<apostrophe>s\nno\n")
    for file, nats in (("c.json", 2.0), ("m.txt.gz", (math.log(2) + math.log(4)) / 3)):
        done = command(
            "bound", "--token-scores", tmp_path / file, "--vocabulary", tmp_path / "words", "--frame", "paper"
        )
        value = float(done.out.splitlines()[3].split("│")[2].split()[0])
        assert value == pytest.approx(math.exp(nats), abs=1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no sentence"),
        ("{}", "holds no sentence"),
        ("the dog\nToken: 0\n0.5\n", "expecting 'Token: 1', got ''.*:4"),
        ("the\nToken: 1\n0.5\n", "expecting 'Token: 0', got 'Token: 1'.*:2"),
        ("the\nToken: 0\n0\n", "expecting a probability above 0, got '0'.*:3"),
        ("the\nToken: 0\nnan\n", "expecting a probability above 0, got 'nan'"),
        ("the\nToken: 0\nhalf\n", "expecting a probability above 0, got 'half'"),
        ('{"the dog": [1.0]}', "sentence 1 has 2 words and 1 scores"),
        ('{"the": [-1.0]}', "sentence 1 has a word with a probability above 1"),
        ('{"the": "1"}', "damaged"),
        ('{"the": [1.0', "is not JSON"),
    ],
)
def test_files_in_neither_format_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(text)
    with pytest.raises(InputError, match=message):
        read_published(tmp_path / "f")


@pytest.mark.parametrize("text", ['{"a": 1, "b": {}}', '["a", "b"]', "a\nb\n"])
def test_vocabularies(text: str, tmp_path: Path) -> None:
    (tmp_path / "v").write_text(text)
    assert read_words(tmp_path / "v") == {"a", "b"}
    (tmp_path / "v").write_text(" ")
    with pytest.raises(InputError, match="holds no word"):
        read_words(tmp_path / "v")


def test_the_published_choices_on_a_grammar(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unary rule makes the published masked variant another number; unknown words are targets only."""
    monkeypatch.chdir(tmp_path)
    law = PCFG.from_text("S -> A S 0.3 | A 0.7\nA -> B 0.5 | a 0.3 | c 0.2\nB -> a 0.4 | b 0.6")
    law.save("g.npz")
    sentences = [["a", "c", "b"], ["b", "a"], ["c"], ["a", "a"]]
    Path("t.txt").write_text("".join(" ".join(s) + "\n" for s in sentences))
    Path("v.txt").write_text("a b\n")
    options = ["--frame", "paper", "--vocabulary", "v.txt", "--definitions", "paper", "--lengths", "none"]
    done = command("bound", "g.npz", "t.txt", *options)
    assert done.code == 0, done.err
    causal, masked = (float(line.split("│")[2].split()[0]) for line in done.out.splitlines()[3:5])
    rows, hidden = law.exact.causal_log_probs(sentences), law.exact.masked_log_probs(sentences, variant="paper")
    wanted = [rows[0][2], rows[1][1], rows[3][1]]
    assert causal == pytest.approx(math.exp(-np.mean(wanted)), abs=1e-4)
    wanted = [hidden[0][0], hidden[0][2], *hidden[1], *hidden[3]]
    assert masked == pytest.approx(math.exp(-np.mean(wanted)), abs=1e-4)
    exact = law.exact.masked_log_probs(sentences)
    assert abs(np.mean([exact[0][0], exact[0][2], *exact[1], *exact[3]]) - np.mean(wanted)) > 1e-3
    of_causal, of_masked = (line for line in done.out.splitlines() if "|" in line)
    assert "variant:paper" in of_masked and "variant" not in of_causal
    parts = command("bound", "g.npz", "t.txt", *options, "-o", "parts")
    assert parts.out.splitlines()[:-1] == done.out.splitlines()[:-1]
    assert "other settings" in command("bound", "g.npz", "t.txt", *options[:4], "--lengths", "none", "-o", "parts").err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "name a corpus folder, or a grammar and a text"),
        (["--vocabulary", "v"], "--vocabulary needs --frame paper"),
        (["dyck", ".", "--token-scores", "f"], "replaces the grammar and the corpus"),
        (["--token-scores", "missing"], "missing"),
    ],
)
def test_calls_that_do_not_fit_together(options: list[str], message: str, command: Command) -> None:
    done = command("bound", *options)
    assert done.code == 2 and message in done.err
