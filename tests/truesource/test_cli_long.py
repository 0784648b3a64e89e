"""`bound` of long sentences: what they will cost, and leaving them out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import Command

from truesource.grammar.pcfg import PCFG

GRAMMAR = PCFG.from_text("S -> S S 0.3 | A 0.2 | a 0.5\nA -> b 0.4 | c 0.6")


def test_longer_sentences_are_announced_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.setattr("truesource.terminal.inputs.PATIENCE", 0.0)
    grammar, text = tmp_path / "g.npz", tmp_path / "long.txt"
    GRAMMAR.save(grammar)
    text.write_text("a b\n" + "a " * 250 + "\nc\n", encoding="utf-8")
    call = ("bound", grammar, text, "--lengths", "none")
    code, out, err = command(*call)
    assert code == 0
    assert re.search(r"1 sentence has more than 200 words, the longest 250: about \d+ s, and .*--longest 200", err)
    assert "longest" not in out
    code, out, err = command(*call, "--longest", 200)
    assert code == 0
    assert "1 of 3 sentences have more than 200 words and are left out" in err
    assert "about" not in err
    assert out.count("|longest:200|longer:1|") == 2
    assert out.count("|sentences:2|") == 2
    code, _, err = command("bound", grammar, text, "--lengths", "none", "--longest", 1, "--no-masked")
    assert code == 0
    text.write_text("a b\n", encoding="utf-8")
    code, _, err = command(*call, "--longest", 1)
    assert code == 2
    assert "increase --longest" in err


@pytest.mark.long
def test_longer_sentences_are_left_out_of_a_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.setattr("truesource.terminal.inputs.PATIENCE", 0.0)
    grammar, text = tmp_path / "g.npz", tmp_path / "long.txt"
    GRAMMAR.save(grammar)
    text.write_text("a b\n" * 9 + "a " * 205 + "\nc a\nb\n", encoding="utf-8")
    assert command("train", text, "--model", "ngram", "-o", tmp_path / "m").code == 0
    call = ("score", tmp_path / "m", text, "--oracle", grammar, "--lengths", "none")
    done = command(*call)
    assert done.code == 0
    assert "1 sentence has more than 200 words, the longest 205: about" in done.err
    assert "longest" not in done.out
    done = command(*call, "--longest", 200)
    assert (done.code, done.err) == (0, "1 of 12 sentences have more than 200 words and are left out\n")
    assert "|sentences:11|excluded:0|tokens:32|longest:200|longer:1|data:" in done.out
    short = tmp_path / "short.txt"
    short.write_text("a b\n" * 9 + "c a\nb\n", encoding="utf-8")
    same = command("score", tmp_path / "m", short, "--oracle", grammar, "--lengths", "none")
    assert same.out.replace("short.txt", "long.txt") == done.out.replace("|longest:200|longer:1", "")
    bound = command("bound", grammar, text, "--lengths", "none", "--longest", 200)
    assert bound.out.count("|tokens:32|longest:200|longer:1|") == 1
    done = command(*call[:-2], "--lengths", "1..1", "--longest", 0)
    assert done.code == 2


def test_a_grammar_without_endings_gives_no_bound(tmp_path: Path, command: Command) -> None:
    PCFG.from_text("S -> S S 0.7 | a 0.3").save(tmp_path / "grows.npz")
    (tmp_path / "text.txt").write_text("a\na a\n", encoding="utf-8")
    code, out, err = command("bound", tmp_path / "grows.npz", tmp_path / "text.txt", "--lengths", "none")
    assert (code, out) == (2, "")
    assert "have total probability 0.428571, not 1" in err
    assert command("bound", tmp_path / "grows.npz", tmp_path / "text.txt", "--lengths", "1..9").code == 0


@pytest.mark.long
def test_no_verb_takes_a_grammar_without_endings_for_the_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    PCFG.from_text("S -> S S 0.7 | a 0.3").save(tmp_path / "grows.npz")
    (tmp_path / "text.txt").write_text("a\na a\na a a\n" * 6, encoding="utf-8")
    assert command("train", "text.txt", "--model", "ngram", "-o", "m").code == 0
    compared = ("m", "text.txt", "--oracle", "grows.npz", "--lengths", "none")
    for call in (
        ("score", *compared),
        ("evaluate", "pplu", *compared[:-2]),
        ("evaluate", "divergence", *compared),
        ("evaluate", "tendencies", "text.txt", *compared[2:]),
        ("evaluate", "pairs", *compared[2:], "-o", "p.jsonl"),
    ):
        code, out, err = command(*call)
        assert (code, "=" in out) == (2, False), call
        assert "have total probability 0.428571, not 1" in err or "the spectral radius is 1.4" in err
    assert not (tmp_path / "p.jsonl").exists()
