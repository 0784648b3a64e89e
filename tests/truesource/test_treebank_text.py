"""The sentences of a treebank as text, models trained on them, and scores without a grammar."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from command_line import Command
from tiny_run import BANK

from truesource.generator.sampler import sample_treebank
from truesource.generator.text_files import line_of, read_sentences
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.treebank import Treebank, hold_out
from truesource.run.treebank.text import TreebankText, text_of_file, write_text_folder

GRAMMAR = "S -> A S 0.5 | A 0.5\nA -> 'a' 0.5 | 'b' 0.3 | 'c' 0.15 | 'd' 0.05\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with ``bank.mrg``, 60 trees."""
    trees = sample_treebank(PCFG.from_text(GRAMMAR), 60, 1)
    Treebank.from_trees(trees).write(tmp_path / "bank.mrg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def texts(folder: Path) -> dict[str, list[list[str]]]:
    text = TreebankText.load(folder)
    return {split: text.sentences(split) for split in text.splits}


def test_a_tree_is_in_one_part_only(here: Path, command: Command) -> None:
    made = command("split", "bank.mrg", "-o", "text", "--held-out", 0.2, "--dev", 0.25, "--lengths", "1..3")
    assert made.code == 0 and made.last == f"Wrote text. Next: truesource train {Path('text/train.txt')} -o model/"
    bank, found = Treebank.read(here / "bank.mrg"), texts(here / "text")
    kept, held = hold_out(bank, 0.2, 1)
    assert held is not None and len(held) == 12
    train, dev = hold_out(kept, 0.25, 1)
    assert dev is not None and len(dev) == 12
    assert found == {
        name: [s for s in part.sentences() if len(s) <= 3]
        for name, part in (("train", train), ("dev", dev), ("held_out", held))
    }
    about = TreebankText.load(here / "text").about
    assert [split["trees"] for split in about["splits"].values()] == [36, 12, 12]
    assert sum(split["outside"] for split in about["splits"].values()) == sum(len(s) > 3 for s in bank.sentences())
    assert Treebank.read(here / "text" / "treebank.mrg.gz", None).trees == kept.trees
    assert Treebank.read(here / "text" / "held_out.mrg.gz", None).trees == held.trees


@pytest.mark.long
@pytest.mark.usefixtures("quick_report")
def test_a_run_and_the_verb_split_alike(here: Path, command: Command) -> None:
    from truesource.run.experiment import execute, load_config

    (here / "toy.yaml").write_text(
        "name: toy\nseed: 5\ntreebank: {files: bank.mrg, held_out: 0.3}\ngrammar: {method: relative_frequency}\n"
        "corpus: {lengths: 1..4, splits: {eval: 5}}\nevaluation: {sentences: 2}\n",
        encoding="utf-8",
    )
    execute(load_config(here / "toy.yaml"), base=here, runs=here / "runs")
    assert command("split", "bank.mrg", "-o", "text", "--held-out", 0.3, "--seed", 5).code == 0
    for name in ("treebank.mrg.gz", "held_out.mrg.gz"):
        assert (here / "text" / name).read_bytes() == (here / "runs" / "toy" / "treebank" / name).read_bytes()


def test_sentences_that_both_parts_have_are_counted_or_left_out(tmp_path: Path) -> None:
    bank, held = _bank(tmp_path, "aabc"), _bank(tmp_path, "adda")
    for disjoint, kept in ((False, ["a", "d", "d", "a"]), (True, ["d", "d"])):
        made = write_text_folder(tmp_path / "t", bank, held, lengths=None, dev=0.0, seed=1, disjoint=disjoint)
        assert [s[0] for s in made.sentences("held_out")] == kept
        assert [s[0] for s in made.sentences("train")] == [*"aabc"]
        assert made.about["shared_sentences"] == made.about["shared_trees"] == 2
        assert made.about["splits"]["held_out"]["repeated"] == (2 if disjoint else 0)


def _bank(folder: Path, words: str) -> Treebank:
    path = folder / "bank.mrg"
    path.write_text("".join(f"(S (A {word}))\n" for word in words), encoding="utf-8")
    return Treebank.read(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--held-out", "2"), "--held-out is a share between 0 and 1"),
        (("--held-out", "nowhere.mrg"), "nowhere.mrg"),
        (("--held-out", "0.001"), "too few to hold out"),
        (("--lengths", "90..99"), "no sentence is left for train"),
        (("--lengths", "9..1"), "length range"),
    ],
)
def test_what_cannot_be_split_is_refused(options: tuple[str, ...], message: str, here: Path, command: Command) -> None:
    refused = command("split", "bank.mrg", "-o", "text", *options)
    assert refused.code == 2 and message in refused.err and "Traceback" not in refused.err
    assert not (here / "text").exists()


def test_a_changed_text_is_noticed(here: Path) -> None:
    made = write_text_folder(here / "t", _bank(here, "abcd"), _bank(here, "ab"), lengths=None, dev=0.0, seed=1)
    file = made.file("held_out")
    assert text_of_file(file) is not None and text_of_file(here / "bank.mrg") is None
    file.write_text("x\n", encoding="utf-8")
    with pytest.raises(InputError, match="has changed"):
        made.sentences("held_out")
    with pytest.raises(InputError, match="it has train, held_out"):
        made.file("dev")
    with pytest.raises(NothingToMeasureError):
        write_text_folder(here / "u", _bank(here, "ab"), _bank(here, "a"), lengths=LengthRange(2, 3), dev=0.0, seed=1)


def test_words_with_white_space_are_no_text() -> None:
    assert line_of(["a", "b\u00a0c"]) == "a b\u00a0c"
    with pytest.raises(InputError, match="contains white space"):
        line_of(["a b"])


def unigram(train: list[list[str]], text: list[list[str]]) -> float:
    """Perplexity of the relative frequencies of words and ends of ``train``."""
    counts = Counter(token for sentence in train for token in [*sentence, "."])
    logs = [math.log(counts[token] / counts.total()) for sentence in text for token in [*sentence, "."]]
    return math.exp(-sum(logs) / len(logs))


def test_a_model_alone_has_the_perplexity_that_counting_gives(here: Path, command: Command) -> None:
    assert command("split", "bank.mrg", "-o", "text", "--held-out", 0.4).code == 0
    given = ("--model", "ngram", "--set", "model.order=1", "--set", "model.smoothing=mle")
    trained = command("train", "text/train.txt", "-o", "real", *given, "--dev", "text/held_out.txt")
    assert trained.code == 0 and trained.last.endswith("Next: truesource score real TEXT"), trained.err
    found = command("score", "real", "text/held_out.txt", "--json", "alone.json")
    assert found.code == 0, found.err
    records = {record["name"]: record for record in json.loads(Path("alone.json").read_text("utf-8"))}
    parts = texts(here / "text")
    expected = unigram(parts["train"], parts["held_out"])
    assert records["ppl"]["value"] == pytest.approx(expected, rel=1e-12)
    assert records["ppl"]["low"] < expected < records["ppl"]["high"]
    assert records["tokens"]["value"] == sum(len(s) + 1 for s in parts["held_out"])
    assert "|grammar:none|" in records["ppl"]["signature"] and "bound" not in records
    metrics = json.loads(Path("real/metrics.jsonl").read_text("utf-8"))
    assert math.exp(metrics["dev_loss"]) == pytest.approx(expected, rel=1e-12)


def test_of_real_text_the_grammar_gives_a_reference_and_no_bound(here: Path, command: Command) -> None:
    assert command("split", "bank.mrg", "-o", "text", "--held-out", 0.4, "--lengths", "1..4").code == 0
    grammar = command("induce", "text/treebank.mrg.gz", "--method", "relative-frequency", "-o", "g.npz")
    assert grammar.code == 0, grammar.err
    assert command("train", "text/train.txt", "-o", "real", "--model", "ngram").code == 0
    found = command("score", "real", "text/held_out.txt", "--oracle", "g.npz", "--json", "scores.json")
    assert found.code == 0, found.err
    records = json.loads(Path("scores.json").read_text("utf-8"))
    names = {record["name"] for record in records}
    assert names == {"ppl", "reference_ppl", "ratio_to_reference"}
    assert "not a bound" in " ".join(found.out.split())
    sentences, pcfg = read_sentences("text/held_out.txt"), PCFG.load("g.npz")
    logs = np.concatenate(pcfg.exact.causal_log_probs(sentences, LengthRange(1, 4)))
    assert np.isfinite(logs).all()
    values = {r["name"]: r["value"] for r in records if r["sentences"] == "common" and r["words"] == "all"}
    assert values["reference_ppl"] == pytest.approx(math.exp(-logs.mean()), rel=1e-10)
    assert values["ratio_to_reference"] == pytest.approx(values["ppl"] / values["reference_ppl"], rel=1e-10)


def test_a_shared_tokeniser(here: Path, command: Command) -> None:
    Path("large.txt").write_text("a b\nc d\na e\n", encoding="utf-8")
    Path("small.txt").write_text("a\nb z\n", encoding="utf-8")
    for name, text, more in (("large", "large.txt", ()), ("small", "small.txt", ("--tokenizer", "large"))):
        assert command("train", text, "-o", name, "--model", "ngram", *more).code == 0
    from truesource.lmtrain.models import load_model

    assert load_model("large").vocabulary == load_model("small").vocabulary
    for given, message in (
        (("--tokenizer", "nowhere"), "no such model folder"),
        (("--tokenizer", "large", "--set", "model.tokenizer=bpe", "--set", "model.vocab_size=20"), "tokeniser is one"),
    ):
        refused = command("train", "small.txt", "-o", "other", "--model", "ngram", *given)
        assert refused.code == 2 and message in refused.err
    assert not Path("other").exists()


def test_options_that_need_another_are_refused(here: Path, command: Command) -> None:
    Path("text.txt").write_text("a b\n", encoding="utf-8")
    Path("folder").mkdir()
    for call, message in (
        (("train", "folder", "-o", "m", "--dev", "text.txt"), "--dev needs a text file"),
        (("score", "folder", "text.txt", "--lengths", "1..4"), "--lengths is the condition of the oracle"),
    ):
        refused = command(*call)
        assert refused.code == 2 and message in refused.err


def test_the_bank_of_other_tests_can_be_split(tmp_path: Path, command: Command) -> None:
    (tmp_path / "train.mrg").write_text(BANK, encoding="utf-8")
    (tmp_path / "dev.mrg").write_text(BANK, encoding="utf-8")
    found = command("split", tmp_path / "train.mrg", "-o", tmp_path / "text", "--held-out", tmp_path / "dev.mrg")
    assert found.code == 0 and "4 held-out trees are also among the training trees" in found.err
