"""Treebanks where text is expected: refused with the call that writes their sentences; and that call."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from truesource.generator.text_files import read_documents, read_sentences, stream_sentences
from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank import Treebank
from truesource.run.reading import override, read_settings
from truesource.terminal.treebanks import normalisation

TREES = "( (S (NP-SBJ (D the) (N dog))\n  (VP (V barks) (-NONE- *T*-1))) )\n( (S (NP (D a) (N cat)) (VP (V runs))) )\n"


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    path = tmp_path / "bank.mrg.gz"
    path.write_bytes(gzip.compress(TREES.encode()))
    return path


@pytest.mark.parametrize("read", [read_sentences, read_documents, lambda path: list(stream_sentences(path))])
def test_a_treebank_is_no_text(read, bank: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=r"expecting a text, got a treebank.*truesource convert") as caught:
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
    assert "expecting a text, got a treebank" in err
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
    assert "! " in out and "is in the grammar" in out
    assert "No problem found" not in out


LEMMAS = "(S (NP (D the-the) (N dogs-dog)) (VP (V bark-bark)))\n(S (NP (N cats-cat)) (VP (V run-run)))\n"


@pytest.mark.parametrize(("sign", "words"), [("-", "dogs"), ("|", "dogs-dog"), ("#", "dogs-dog"), ("none", "dogs-dog")])
def test_signs_are_values_as_they_are(sign: str, words: str, command, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "bank.mrg").write_text(LEMMAS)
    call = ("convert", tmp_path / "bank.mrg", tmp_path / "text.txt", "--normalisation", f"annotation={sign}")
    assert command(*call).code == 0
    assert words in (tmp_path / "text.txt").read_text().split()
    assert normalisation("penn", [f"annotation={sign}"]).annotation == (None if sign == "none" else sign)


def test_the_label_of_the_root_is_text() -> None:
    assert normalisation("penn", ["root=yes"]).root == "yes"
    assert normalisation("penn", ["root=1"]).root == "1"
    assert normalisation("penn", ["root=none", "loose_words=none"]).root is None


def test_signs_in_overrides_and_configurations(tmp_path: Path) -> None:
    values: dict[str, object] = {}
    override(values, "treebank.normalise.annotation=-")
    assert values == {"treebank": {"normalise": {"annotation": "-"}}}
    (tmp_path / "c.yaml").write_text("name: w\ntreebank:\n  normalise:\n    annotation: -\n")
    with pytest.raises(InputError, match="quote a value such as '-'"):
        read_settings(tmp_path / "c.yaml")


def test_the_advice_about_annotation_works(command, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    Path("bank.mrg").write_text(LEMMAS)
    assert "read the treebank with --normalisation annotation=-, or" in command("convert", "bank.mrg", "a.txt").err
    err = command("evaluate", "naturalness", "bank.mrg", "--reference", "same=bank.mrg").err
    assert "convert it first: truesource convert bank.mrg new.mrg --normalisation annotation=-, or" in err


@pytest.mark.parametrize("option", ["--convention=ctb", "--normalisation=loose_words=tag"])
def test_options_of_trees_mean_trees(option: str, command, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    Path("a.conll").write_text("1\tthe\tthe\n2\tdog\tdog\n")
    code, _, err = command("convert", "a.conll", "a.txt", option)
    assert (code, "this is CoNLL" in err) == (2, True)
    code, _, err = command("convert", "dyck:k=1", "a.txt", option)
    assert code == 2
    assert f"{option.partition('=')[0]} applies to treebanks only" in err
