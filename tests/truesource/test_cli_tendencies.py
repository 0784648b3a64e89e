"""`truesource evaluate tendencies`: two texts, a grammar, samples of a model, and bad luck."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import Command
from saved_models import save_model
from toy_english import TOY

from truesource.grammar.pcfg import PCFG

pytestmark = pytest.mark.long

CALL = ("evaluate", "tendencies")
SHORT = ("--permutations", "39", "--chance", "19")
FRENCH = "le chien voit un chat .\nun homme marche\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    """A folder with texts, a grammar and a corpus of it, as working directory."""
    monkeypatch.chdir(tmp_path)
    files = {
        "a.txt": "the dog sees a cat .\nman walks in the park\n" * 30,
        "b.txt": "the cat walks .\na dog with a man sees the park\nman walks\n" * 20,
        "words.txt": "dog\ncat\n" * 20,
        "empty.txt": "",
        "gap.txt": "the dog\n\nman walks\n",
        "raw.txt": "The dog, it doesn't walk.\nMen walk.\n" * 20,
        "french.txt": FRENCH * 20,
        "unknown.txt": "the <unk> sees\n" * 20,
        "none.txt": "zut\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    sampled = ("sample", "toy.npz", "-n", 300, "-o", "corpus", "--lengths", "2..9", "--shares", "train=.5,test=.5")
    assert command(*sampled).code == 0
    return tmp_path


def test_two_texts_without_a_grammar(here: Path, command: Command) -> None:
    found = command(*CALL, "a.txt", "--reference", "b.txt", *SHORT, "--json", "x.json", "--figure", "x.svg")
    assert found.code == 0, found.err
    assert found.last == "Wrote x.json and x.svg. Next: truesource cite"
    for words in (
        "sentence length: KS",
        "stopwords: KS",
        "Zipf exponent",
        "different words",
        "Against the reference",
    ):
        assert words in found.out
    records = json.loads(Path("x.json").read_text("utf-8"))
    assert all({"name", "value", "low", "high", "signature", "source"} <= r.keys() for r in records)
    by_name = {r["name"]: r for r in records if r["source"] == "a"}
    assert by_name["length_mean_difference"]["value"] == pytest.approx(5.5 - 14 / 3)
    assert by_name["unigram_tv"]["draws"] == 39
    assert ElementTree.parse("x.svg").getroot().tag.endswith("svg")
    assert command(*CALL, "a.txt", "--reference", "b.txt", "--json", "x.json").code == 2


def test_samples_beside_the_grammar(here: Path, command: Command) -> None:
    call = (*CALL, "corpus", "mine=a.txt", "--oracle", "toy.npz", "--lengths", "2..9", *SHORT)
    found = command(*call, "--json", "x.json", "--figure", "x.svg")
    assert found.code == 0, found.err
    assert "Against the exact distribution" in found.out
    records = json.loads(Path("x.json").read_text("utf-8"))
    assert {r["name"] for r in records if r["tendency"] == "symbols"} == {"symbols_mean"}  # of the samples alone
    assert "no word of the class symbols is in the grammar" in found.err
    rows = {(r["source"], r["name"]): r for r in records}
    assert rows["corpus", "length_ks"]["p"] > 0.01
    assert rows["mine", "length_ks"]["p"] < 0.01
    assert "toy" not in Path("x.svg").read_text("utf-8")


def test_the_condition_is_that_of_the_corpus(here: Path, command: Command) -> None:
    """Text of the very grammar is not told from it when nothing is said of lengths."""
    found = command(*CALL, "corpus", "--oracle", "toy.npz", *SHORT, "--json", "x.json")
    assert found.code == 0, found.err
    assert "lengths of the truth: 2..9, as recorded by corpus" in found.out
    assert "Warning" not in found.err
    rows = {r["name"]: r for r in json.loads(Path("x.json").read_text("utf-8"))}
    assert rows["length_ks"]["p"] > 0.01
    assert "/2..9/" in rows["length_ks"]["signature"]
    found = command(*CALL, "corpus", "--oracle", "toy.npz", "--lengths", "3..9", *SHORT)
    assert "Warning: the lengths of corpus are 2..9, of the truth here 3..9" in found.err


def test_samples_and_models_know_the_condition_of_their_corpus(here: Path, command: Command) -> None:
    """Two texts of different conditions are refused, whatever holds them."""
    assert command("train", "corpus", "--model", "ngram", "-o", "gram").code == 0
    assert command("generate", "gram", "-n", 60, "-o", "drawn").code == 0
    for source in ("gram", "drawn"):
        found = command(*CALL, source, "--oracle", "toy.npz", "--vocabulary", "gram", "-n", 60, *SHORT)
        assert found.code == 0, found.err
        assert f"lengths of the truth: 2..9, as recorded by {source}" in found.out
    split = ("--shares", "train=.5,test=.5")
    assert command("sample", "toy.npz", "-n", 100, "-o", "short", "--lengths", "2..5", *split).code == 0
    found = command(*CALL, "drawn", "short", "--oracle", "toy.npz", *SHORT)
    assert found.code == 2
    assert "the lengths of drawn are 2..9, of short 2..5" in found.err


def test_lengths_leave_sentences_out_of_both_texts(here: Path, command: Command) -> None:
    found = command(*CALL, "a.txt", "--reference", "b.txt", "--lengths", "3..5", *SHORT, "--json", "x.json")
    assert found.code == 0, found.err
    assert "a: 30 sentences, 30 of other lengths left out" in found.out
    assert "b: 20 sentences, 40 of other lengths left out" in found.out
    save_model(here / "model")
    found = command(*CALL, "model", "--reference", "b.txt", "--lengths", "1..4", "-n", 40, *SHORT)
    assert found.code == 0, found.err
    assert "of other lengths left out" in found.out


def test_words_that_the_grammar_does_not_have_are_found(here: Path, command: Command) -> None:
    found = command(*CALL, "raw.txt", "--oracle", "toy.npz", "--lengths", "2..9", *SHORT, "--json", "x.json")
    assert found.code == 0, found.err
    assert "outside the grammar" in found.out
    rows = {r["name"]: r for r in json.loads(Path("x.json").read_text("utf-8"))}
    assert rows["outside_share"]["value"] == pytest.approx(1.0)  # The dog, it doesn't walk. Men walk.
    assert "Warning: raw and the grammar are not tokenised alike: punctuation joined to words" in found.err
    assert "Warning: raw and the grammar are not tokenised alike: capital letters" in found.err
    found = command(*CALL, "a.txt", "--oracle", "toy.npz", "--lengths", "2..9", *SHORT, "--json", "x.json", "--force")
    rows = {r["name"]: r for r in json.loads(Path("x.json").read_text("utf-8"))}
    assert rows["outside_share"]["value"] == pytest.approx(1 / 11)  # the full stop
    assert "Warning" not in found.err


def test_models_are_drawn_from(here: Path, command: Command) -> None:
    save_model(here / "model")
    found = command(
        *CALL, "model", "m2=model", "--reference", "a.txt", "-n", 40, "--seed", 5, *SHORT, "--json", "x.json"
    )
    assert found.code == 0, found.err
    assert "unfinished or empty, are left out" in found.err
    rows = {(r["source"], r["name"]): r["value"] for r in json.loads(Path("x.json").read_text("utf-8"))}
    assert rows["model", "length_ks"] == rows["m2", "length_ks"]


def test_sentences_of_one_word_have_no_heaps_law(here: Path, command: Command) -> None:
    found = command(*CALL, "words.txt", "--reference", "b.txt", *SHORT)
    assert found.code == 0
    assert "words: no heaps_beta; Heaps' law needs" in found.err
    assert "words: no bigram_types" in found.err


def test_texts_that_are_cut_in_different_ways_are_named(here: Path, command: Command) -> None:
    found = command(*CALL, "raw.txt", "--reference", "b.txt", *SHORT)
    assert found.code == 0
    assert "Warning: raw and b are not tokenised alike: punctuation joined to words" in found.err
    assert "Warning" not in command(*CALL, "a.txt", "--reference", "b.txt", *SHORT).err


def test_without_stopwords_it_is_said_how_to_give_some(here: Path, command: Command) -> None:
    call = (*CALL, "french.txt", "--reference", "french.txt", *SHORT)
    found = command(*CALL, "french.txt", "--reference", "same=french.txt", *SHORT)
    assert found.code == 0
    assert "one word per line: --stopwords FILE" in found.err
    Path("list.txt").write_text("le\nun\n", encoding="utf-8")
    found = command(*CALL, "french.txt", "--reference", "same=french.txt", "--stopwords", "list.txt", *SHORT)
    assert "stopwords: KS" in found.out
    assert command(*call).code == 2  # one name for both


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.txt",), "give either --oracle GRAMMAR"),
        (("a.txt", "--oracle", "toy.npz", "--reference", "b.txt"), "give either --oracle GRAMMAR"),
        (("a.txt", "--reference", "b.txt", "--vocabulary", "m"), "--vocabulary goes with --oracle"),
        (("a.txt", "--oracle", "toy.npz", "--definitions", "paper"), "--definitions paper goes with --reference"),
        (("nowhere.txt", "--oracle", "toy.npz"), "there is no such file"),
        (("a.txt", "--oracle", "toy.npz"), "give --lengths, such as 6..25, or none"),
        (("a.txt", "--oracle", "toy.npz", "--lengths", "2..300"), "up to 200 words"),
        (("unknown.txt", "--oracle", "toy.npz", "--lengths", "2..9"), "--vocabulary MODEL"),
        (("empty.txt", "--reference", "b.txt"), "empty"),
        (("gap.txt", "--reference", "b.txt"), "gap.txt:2"),
        (("nowhere.txt", "--reference", "b.txt"), "there is no such file"),
        (("a.txt", "a.txt", "--reference", "b.txt"), "two samples are called 'a'"),
        (("a.txt", "--reference", "b.txt", "--stopwords", "empty.txt"), "this list of stopwords has no words"),
        (("a.txt", "--reference", "b.txt", "--lengths", "30..40"), "none of the"),
    ],
)
def test_bad_input_is_one_sentence(arguments: tuple[str, ...], message: str, here: Path, command: Command) -> None:
    found = command(*CALL, *arguments)
    assert found.code == 2
    assert message in found.err
    assert found.err.rstrip().count("\n") == 0


def test_sentences_of_one_beam_are_refused(here: Path, command: Command) -> None:
    save_model(here / "model")
    drawn = ("generate", "model", "-n", 12, "--scheme", "beam_sampling", "--beams", 3, "--keep", "all", "-o", "kept")
    assert command(*drawn).code == 0
    found = command(*CALL, "kept", "--reference", "b.txt")
    assert found.code == 2
    assert "not independent" in found.err
