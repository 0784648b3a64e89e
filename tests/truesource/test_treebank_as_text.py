"""Treebanks where text is expected: refused with the call that writes their sentences; and that call."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from truesource.generator.text_files import read_documents, read_sentences, stream_sentences
from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank import Treebank

TREES = "( (S (NP-SBJ (D the) (N dog))\n  (VP (V barks) (-NONE- *T*-1))) )\n( (S (NP (D a) (N cat)) (VP (V runs))) )\n"


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    path = tmp_path / "bank.mrg.gz"
    path.write_bytes(gzip.compress(TREES.encode()))
    return path


@pytest.mark.parametrize("read", [read_sentences, read_documents, lambda path: list(stream_sentences(path))])
def test_a_treebank_is_no_text(read, bank: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=r"this is a treebank, but a text is expected.*truesource convert") as caught:
        read(bank)
    assert caught.value.code == "treebank"


@pytest.mark.parametrize("line", ["( see above )", "(see above)", "(S)", "( ( a ) b )", "(a (b) c", "((a)) b"])
def test_a_text_that_begins_with_a_bracket_is_a_text(line: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(f"{line}\nmore words\n")
    assert read_sentences(tmp_path / "text.txt") == [line.split(), ["more", "words"]]
    assert list(stream_sentences(tmp_path / "text.txt")) == [line.split(), ["more", "words"]]


@pytest.mark.parametrize(
    "call",
    [
        ("bound", "dyck:k=1"),
        ("inspect", "dyck:k=1"),
        ("parse", "dyck:k=1", "-o", "trees.mrg"),
        ("train", "--model", "ngram", "-o", "model"),
    ],
)
def test_verbs_refuse_it(call, bank: Path, command, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    position = 2 if call[0] != "train" else 1
    arguments = [*call[:position], bank, *call[position:]]
    code, _, err = command(*arguments)
    assert code == 2
    assert "this is a treebank" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bank.mrg.gz"]


def test_convert_writes_its_sentences_and_trees(bank: Path, command, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    out = command("convert", bank, tmp_path / "text.txt").out
    assert (tmp_path / "text.txt").read_text() == "the dog barks\na cat runs\n"
    assert "dropped 1 word (-NONE- 1)" in out
    assert command("convert", bank, tmp_path / "trees.mrg").code == 0
    assert len(Treebank.read(tmp_path / "trees.mrg", None)) == 2
    assert command("convert", bank, tmp_path / "x.txt", "--normalise").code == 2
    assert not (tmp_path / "x.txt").exists()


def test_inspect_marks_a_text_without_a_word_of_the_grammar(command, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "text.txt").write_text("x y\nz\n")
    out = command("inspect", "dyck:k=1", tmp_path / "text.txt").out
    assert "! " in out and "has no word of the grammar" in out
    assert "No problem found" not in out
