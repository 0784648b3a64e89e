"""Corpora for other training code: read as it reads them, the truth itself has the loss of the bound."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command
from toy_english import TOY

from truesource.generator.corpus import Corpus
from truesource.generator.export import export
from truesource.grammar.pcfg import PCFG

SPLITS = ("--lengths", "2..8", "--shares", "train=.6,dev=.4", "--seed", 3)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    monkeypatch.chdir(tmp_path)
    assert command("sample", "toy.npz", "-n", 200, "-o", "corpus", *SPLITS).code == 0
    return tmp_path


def read(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "meta.json").read_text())
    return found


@pytest.mark.long
def test_the_loss_of_the_truth_is_the_bound(here: Path, command: Command) -> None:
    """As nanoGPT reads shards: targets are the inputs one place on, and the loss is the mean over all of them."""
    assert command("convert", "corpus", "shards", "--to", "bin").code == 0
    meta, corpus = read(here / "shards"), Corpus.load(here / "corpus")
    truth = PCFG.load("toy.npz")
    assert list(meta["splits"]) == ["train", "dev"]
    for name, part in meta["splits"].items():
        data = np.memmap(here / "shards" / f"{name}.bin", dtype=np.uint16, mode="r")
        assert len(data) == part["tokens"]
        stream = np.concatenate([[meta["end"]], data])
        x, y = stream[:-1], stream[1:]
        starts = np.flatnonzero(x == meta["end"])
        losses = []
        for start, stop in zip(starts, [*starts[1:], len(x)], strict=True):
            words = [meta["itos"][number] for number in x[start + 1 : stop]]
            table = truth.next_words([words], corpus.lengths).probability[0]
            losses += (-np.log(table[np.arange(len(table)), y[start:stop]])).tolist()
        assert len(losses) == part["tokens"]
        assert np.mean(losses) - part["bound"] == pytest.approx(0.0, abs=1e-6)


def test_every_format_has_the_sentences(here: Path, command: Command) -> None:
    corpus = Corpus.load(here / "corpus")
    for to in ("bin", "jsonl", "ids"):
        assert command("convert", "corpus", to, "--to", to, "--no-bound").code == 0
    meta = read(here / "ids")
    assert meta["itos"] == [*PCFG.load("toy.npz").vocabulary, "<end>"]
    assert [meta["stoi"][word] for word in meta["itos"]] == list(range(meta["vocab_size"]))
    for name in corpus.splits:
        wanted = corpus.sentences(name)
        lines = (here / "ids" / f"{name}.ids").read_text().splitlines()
        assert [[meta["itos"][int(number)] for number in line.split()] for line in lines] == wanted
        with gzip.open(here / "jsonl" / f"{name}.jsonl.gz", "rt") as stream:
            assert [json.loads(line)["text"].split(" ") for line in stream] == wanted
        data = np.fromfile(here / "bin" / f"{name}.bin", dtype=np.uint16)
        flat = [meta["stoi"][word] for sentence in wanted for word in (*sentence, "<end>")]
        assert data.tolist() == flat
        assert meta["splits"][name]["bound"] is None


@pytest.mark.long
def test_the_bytes_are_the_same_and_nothing_is_overwritten(here: Path, command: Command) -> None:
    for folder in ("a", "b"):
        assert command("convert", "corpus", folder, "--to", "jsonl", "--split", "dev").code == 0
    for file in sorted((here / "a").iterdir()):
        assert file.read_bytes() == (here / "b" / file.name).read_bytes()
    assert sorted(file.name for file in (here / "a").iterdir()) == ["dev.jsonl.gz", "meta.json"]
    assert command("convert", "corpus", "a", "--to", "bin").code == 2
    assert (here / "a" / "dev.jsonl.gz").is_file()
    assert command("convert", "corpus", "a", "--to", "bin", "--force").code == 0
    assert not (here / "a" / "dev.jsonl.gz").exists()
    code, _, err = command("convert", "corpus", "c", "--to", "bin", "--split", "test")
    assert code == 2 and "no split 'test'" in err


@pytest.mark.long
def test_a_disjoint_split_has_the_bound_of_what_is_left(here: Path, command: Command) -> None:
    assert command("sample", "toy.npz", "-n", 100, "-o", "apart", *SPLITS, "--overlap", "disjoint").code == 0
    assert command("convert", "apart", "shards", "--to", "bin").code == 0
    bound = command("bound", "toy.npz", "apart", "--split", "dev", "--no-masked", "--json", "bound.json")
    assert bound.code == 0
    corpus = Corpus.load(here / "apart")
    records = json.loads((here / "bound.json").read_text())["sentences"]
    tokens = corpus.n_tokens("dev") + corpus.n_sentences("dev")
    wanted = -sum(record["logprob"] for record in records) / tokens
    assert read(here / "shards")["splits"]["dev"]["bound"] == pytest.approx(wanted, abs=1e-12)


def test_a_corpus_without_its_grammar_has_no_bound(here: Path, command: Command) -> None:
    (here / "corpus" / "grammar.npz").unlink()
    code, _, err = command("convert", "corpus", "shards", "--to", "bin")
    assert code == 0 and "so the export has no bound" in err
    meta = read(here / "shards")
    assert meta["itos"][:-1] == sorted(meta["itos"][:-1])
    assert [part["bound"] for part in meta["splits"].values()] == [None, None]


def test_large_vocabularies_have_larger_numbers(here: Path) -> None:
    words = [f"w{i}" for i in range(2**16)]
    parts = export(Corpus.load(here / "corpus"), here / "large", "bin", words=words, splits=["dev"])
    meta = read(here / "large")
    assert meta["dtype"] == "uint32"
    data = np.fromfile(here / "large" / "dev.bin", dtype=np.uint32)
    assert len(data) == meta["splits"]["dev"]["tokens"] == parts["dev"].tokens
    assert data.min() >= 2**16 and data[-1] == meta["end"] == meta["vocab_size"] - 1
