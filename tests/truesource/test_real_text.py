"""`bound` of text that no grammar made: a perplexity under a name of its own, and words read as `parse` reads them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from command_line import Command

from truesource.evaluation.core.signature import parts_of
from truesource.grammar.pcfg import PCFG
from truesource.grammar.unknown import read_words

pytestmark = pytest.mark.long

BANK = """\
(ROOT (S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat)))))
(ROOT (S (NP (DT the) (NN cat)) (VP (VBZ walks))))
(ROOT (S (NP (DT a) (NN walker)) (VP (VBZ sleeps))))
(ROOT (S (NP (DT the) (NN runner)) (VP (VBZ sees) (NP (DT the) (NN dog)))))
"""
TEXT = "the dog sees a cat\nThe cat walks\na jumper sleeps\nthe dog zaps the talker\n" * 3


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    """A folder with a parser, and with text that was not sampled from it, as working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bank.mrg").write_text(BANK * 6, encoding="utf-8")
    (tmp_path / "tokens.txt").write_text(TEXT, encoding="utf-8")
    call = ("induce", "bank.mrg", "-o", "parser.npz", "--cycles", 0, "--lexicon", "parse", "--set")
    assert command(*call, "split_merge.rare=6").code == 0
    return tmp_path


def test_real_text_has_a_perplexity_over_all_sentences_that_parse_reads(here: Path, command: Command) -> None:
    assert command("parse", "parser.npz", "tokens.txt", "-o", "trees.mrg").out.count("12 trees") == 1
    done = command("bound", "parser.npz", "tokens.txt", "--no-masked", "--lines", 2, "--json", "b.json")
    assert done.code == 0, done.err
    assert "is no corpus that truesource sampled from this grammar" in done.err
    assert "12 of 48 words (25.0%) are read as parse reads them" in done.err and "cannot be made" not in done.err
    assert "causal_perplexity|" in done.out and "bound|" not in done.out
    found = json.loads((here / "b.json").read_text(encoding="utf-8"))
    names = [record["name"] for record in found["summary"]]
    assert names == ["causal_perplexity", "perplexity_0_words", "perplexity_1_words"]
    causal, parts = found["summary"][0], parts_of(found["summary"][0]["signature"])
    assert (parts["sentences"], parts["impossible"], parts["unk"], parts["unit"]) == (
        "12",
        "0",
        "form-class",
        "perplexity",
    )
    pcfg = PCFG.load(here / "parser.npz")
    read = [read_words(pcfg, line.split()) for line in TEXT.splitlines()]
    assert [record["tokens"] for record in found["sentences"]] == read
    total = pcfg.exact.string_log_probs(read).sum()
    assert causal["value"] == pytest.approx(math.exp(-total / sum(len(words) + 1 for words in read)), rel=1e-9)


def test_a_corpus_of_the_grammar_has_a_bound_and_keeps_its_words(here: Path, command: Command) -> None:
    (here / "toy.txt").write_text("S -> A S 0.4 | A 0.6\nA -> a 0.5 | b 0.5\n", encoding="utf-8")
    assert command("sample", "toy.txt", "-n", 40, "-o", "corpus", "--shares", "train=.5,eval=.5").code == 0
    done = command("bound", "toy.txt", "corpus", "--json", "b.json")
    assert done.code == 0 and "is no corpus" not in done.err
    assert [r["name"] for r in json.loads(Path("b.json").read_text())["summary"]] == ["causal_bound", "masked_bound"]
    (here / "other.txt").write_text("S -> A S 0.3 | A 0.7\nA -> a 0.5 | b 0.5\n", encoding="utf-8")
    other = command("bound", "other.txt", "corpus", "--json", "o.json")
    assert other.code == 0 and "sampled from another grammar" in other.err
    names = [record["name"] for record in json.loads(Path("o.json").read_text())["summary"]]
    assert names == ["causal_perplexity", "masked_perplexity"]


def test_what_split_wrote_is_real_text(here: Path, command: Command) -> None:
    assert command("split", "bank.mrg", "-o", "text", "--held-out", "0.5").code == 0
    done = command("bound", "parser.npz", "text/held_out.txt", "--no-masked")
    assert done.code == 0, done.err
    assert "causal_perplexity|" in done.out and "is no corpus that truesource sampled" in done.err
