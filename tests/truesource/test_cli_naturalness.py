"""`truesource evaluate naturalness`: sources of every kind, the table, the files, and bad luck."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import Command
from toy_english import BANK, TOY

from truesource.evaluation.sources import kind_of, read_source
from truesource.grammar.pcfg import PCFG

CALL = ("evaluate", "naturalness")
SHORT = ("--lengths", "2..12", "--sentences", "300")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    """A folder with a grammar in two formats, a treebank, text and a corpus, as working directory."""
    monkeypatch.chdir(tmp_path)
    files = {
        "toy.txt": f"# a comment\n{TOY}",
        "bank.mrg": BANK * 40,
        "words.txt": "( the dog sees ) a cat\nman walks in the park\n" * 40,
        "long.txt": "the dog sees a cat\n" * 5,
        "same.txt": "dog dog\n" * 50,
        "gap.txt": "the dog\n\nman walks\n",
        "one.txt": "the dog sees a cat\n",
        "explode.txt": "S -> S S 0.7 | a 0.3\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "packed.mrg.gz").write_bytes(gzip.compress(BANK.encode()))
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    assert (
        command(
            "sample", "toy.npz", "-n", 200, "-o", "corpus", "--lengths", "2..12", "--shares", "train=.6,eval=.4"
        ).code
        == 0
    )
    return tmp_path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("toy.txt", "grammar"),
        ("toy.npz", "grammar"),
        ("bank.mrg", "treebank"),
        ("packed.mrg.gz", "treebank"),
        ("*.mrg", "treebank"),
        (".", "treebank"),
        ("corpus", "corpus"),
        ("words.txt", "text"),
    ],
)
def test_what_a_file_holds_says_what_it_is(name: str, kind: str, here: Path) -> None:
    assert kind_of(name) == kind


def test_a_source_is_read_or_drawn_within_the_lengths(here: Path) -> None:
    from truesource.grammar.conditioning import LengthRange

    lengths = LengthRange(4, 6)
    bank = read_source("my=bank.mrg", n=9, seed=1, lengths=lengths)
    assert (bank.name, len(bank.sentences), bank.left_out) == ("my", 80, 40)
    drawn = read_source("toy.npz", n=50, seed=1, lengths=lengths)
    assert (drawn.name, len(drawn.sentences)) == ("toy", 50)
    assert all(len(sentence) in lengths for sentence in drawn.sentences)
    assert drawn == read_source("toy.npz", n=50, seed=1, lengths=lengths)
    assert drawn.sentences != read_source("toy.npz", n=50, seed=2, lengths=lengths).sentences
    assert len(read_source("corpus", n=9, seed=1, lengths=None, split="eval").sentences) == 80


@pytest.mark.long
@pytest.mark.parametrize("variant", ["default", "paper"])
def test_all_kinds_side_by_side(variant: str, here: Path, command: Command) -> None:
    call = ("toy.npz", "corpus", "words.txt", "--reference", "bank.mrg", *SHORT, "--definitions", variant)
    code, out, err = command(*CALL, *call, "--json", "new.json", "--figure", "new.svg")
    assert (code, err) == (0, "")
    assert "toy: 300 sentences sampled" in out
    assert "mean length" in out and "4-grams: Spearman" in out
    assert out.rstrip().endswith("Wrote new.json and new.svg. Next: truesource sample toy.npz -n 100000 -o corpus/")
    records = json.loads((here / "new.json").read_text(encoding="utf-8"))
    assert {record["source"] for record in records} == {"bank", "toy", "corpus", "words"}
    found = {(record["source"], record["name"]): record for record in records}
    assert found["toy", "length_tv_exact"]["value"] > found["corpus", "length_tv_null"]["value"]
    assert found["corpus", "length_tv_exact"]["value"] == found["toy", "length_tv_exact"]["value"]
    types = "union" if variant == "default" else "reference"
    assert f"types:{types}" in found["toy", "ngram_spearman_2"]["signature"]
    figure = (here / "new.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(figure).tag == "{http://www.w3.org/2000/svg}svg"
    assert "toy" in figure and "bank, one half against the other" in figure
    assert command(*CALL, *call, "--json", "again.json", "--figure", "again.svg").code == 0
    for suffix in ("json", "svg"):
        assert (here / f"new.{suffix}").read_bytes() == (here / f"again.{suffix}").read_bytes()


@pytest.mark.long
def test_a_corpus_says_its_lengths_and_its_grammar_their_distribution(here: Path, command: Command) -> None:
    call = (*CALL, "corpus", "--reference", "bank.mrg", "--oracle", "toy.npz", "--json", "x.json")
    code, out, err = command(*call)
    assert (code, err) == (0, "")
    assert "lengths 2..12 (recorded by corpus)\n" in out
    assert "corpus: 120 sentences\n" in out
    records = {(r["source"], r["name"]): r for r in json.loads((here / "x.json").read_text(encoding="utf-8"))}
    assert 0 < records["corpus", "length_tv_exact"]["value"] < 1
    code, out, err = command(*call, "--lengths", "4..6", "--force")
    assert code == 0 and "of other lengths left out" in out
    assert "sampled with lengths 2..12" in err


@pytest.mark.long
def test_without_a_corpus_sentences_have_all_lengths(here: Path, command: Command) -> None:
    call = (*CALL, "toy.npz", "long.txt", "--reference", "bank.mrg", "--sentences", "300", "--json")
    code, out, err = command(*call, "x.json")
    assert (code, err) == (0, "")
    assert "toy: 300 sentences sampled\n" in out and "left out" not in out
    assert command(*call, "y.json", "--lengths", "none").code == 0
    assert (here / "x.json").read_bytes() == (here / "y.json").read_bytes()


@pytest.mark.long
def test_names_may_hold_brackets_and_dollars(here: Path, command: Command) -> None:
    code, out, err = command(*CALL, "a[b]$x$=toy.npz", "--reference", "bank.mrg", *SHORT, "--figure", "new.svg")
    assert (code, err) == (0, "")
    assert "a[b]$x$" in out
    assert "a[b]$x$" in (here / "new.svg").read_text(encoding="utf-8")


@pytest.mark.long
def test_nothing_is_written_unless_asked(here: Path, command: Command) -> None:
    before = set(here.iterdir())
    code, out, _ = command(*CALL, "words.txt", "--reference", "bank.mrg", "--lengths", "none")
    assert code == 0
    assert out.rstrip().endswith("--json FILE saves these numbers. Next: truesource cite")
    assert set(here.iterdir()) == before


BAD = [
    ("missing.txt --reference bank.mrg", "check the path (missing.txt)"),
    ("toy.npz --reference missing.mrg", "check the path (missing.mrg)"),
    ("toy.npz --reference x=missing.mrg", "check the path (missing.mrg)"),
    ("no*thing --reference bank.mrg", "no file matches"),
    ("gap.txt --reference bank.mrg", "this line is empty"),
    ("long.txt --reference bank.mrg --lengths 9..12", "none of the 120 sentences has 9..12 words"),
    ("long.txt --reference bank.mrg --lengths 9", "6..25 (inclusive) or none, got '9'"),
    ("one.txt --reference bank.mrg --lengths 2..9", "'one' needs 2 sentences or more, got 1"),
    ("same.txt --reference bank.mrg --lengths none", "same: a Zipf-Mandelbrot law needs at least 3 different words"),
    ("bank.mrg --reference bank.mrg --lengths none", "two sources are called 'bank'; name one, NAME=bank.mrg"),
    ("corpus --reference bank.mrg --split test", "no split 'test'"),
    ("explode.txt --reference bank.mrg --lengths none", "spectral radius"),
    ("toy.npz --reference bank.mrg --json bank.mrg", "will not overwrite bank.mrg without --force"),
    ("toy.npz --reference bank.mrg --figure corpus", "is a folder; name a file"),
]


@pytest.mark.long
@pytest.mark.parametrize(("line", "part"), BAD, ids=[line for line, _ in BAD])
def test_bad_input_is_one_sentence(line: str, part: str, here: Path, command: Command) -> None:
    code, _, err = command(*CALL, *line.split())
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("truesource: ")
    assert part in err


@pytest.mark.long
def test_a_folder_of_files_is_halved_by_file(here: Path, command: Command) -> None:
    folder = here / "files"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.mrg").write_text(BANK * 10, encoding="utf-8")
    assert len(set(read_source("files", n=9, seed=1, lengths=None).documents or ())) == 4
    assert read_source("bank.mrg", n=9, seed=1, lengths=None).documents is None
    done = command(*CALL, "toy.npz", "--reference", "files", *SHORT)
    assert done.code == 0 and "divided by document (4 in all)" in " ".join(done.out.split())
    done = command(*CALL, "toy.npz", "--reference", "bank.mrg", *SHORT)
    assert "sentences of the same documents" in " ".join(done.out.split())
