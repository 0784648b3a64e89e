"""`truesource evaluate tokenisation --lattice`: what it prints and writes, what it warns of, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import enumerated_cuts as slow
import pytest
from command_line import Command
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG
from truesource.lmtrain.pieces.inventory import read_pieces
from truesource.lmtrain.subwords import build_subword_tokenizer

LINES = ["the cat sat on the mat", "a theatre of cats and mats", "the mats sit there"]
CALL = ("evaluate", "tokenisation", "--lattice")


@pytest.fixture(scope="module")
def tokenisers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of tokenisers: two of ours, one with a normaliser, one whose pieces reach over white space."""
    folder = tmp_path_factory.mktemp("tokenisers")
    for kind in ("unigram", "bpe"):
        made = build_subword_tokenizer([line.split() for line in LINES * 20], kind, 40)  # type: ignore[arg-type]
        made.backend_tokenizer.save(str(folder / f"{kind}.json"))
    for name, parts in (("lower", {"split": True}), ("across", {"split": False})):
        backend = Tokenizer(models.BPE(unk_token="<unk>"))
        backend.normalizer = normalizers.Lowercase() if name == "lower" else None
        backend.pre_tokenizer = pre_tokenizers.Metaspace(**parts)
        trainer = trainers.BpeTrainer(vocab_size=70, special_tokens=["<unk>"], show_progress=False)
        backend.train_from_iterator(LINES * 20, trainer)
        backend.save(str(folder / f"{name}.json"))
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenisers: Path) -> Path:
    """A folder with texts and tokenisers, as working directory."""
    monkeypatch.chdir(tmp_path)
    for path in tokenisers.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "text.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return tmp_path


def records_of(path: Path) -> dict[str, dict[str, Any]]:
    """Those of the whole text, by name."""
    return {r["name"]: r for r in json.loads(path.read_text(encoding="utf-8")) if "by" not in r}


def test_it_prints_and_writes_what_enumeration_finds(here: Path, command: Command) -> None:
    found = command(
        *CALL, "unigram.json", "text.txt", "--json", "l.json", "--list-words", 3, "--inverse-temperature", 0.5
    )
    assert (found.code, found.err) == (0, "")
    assert found.last == "Wrote l.json. Next: truesource evaluate tokenisation MODEL text.txt"
    pieces = read_pieces(here / "unigram.json")
    assert pieces.inventory.scores is not None
    scores = dict(zip(pieces.inventory.pieces, pieces.inventory.scores.tolist(), strict=True))
    words = [f"▁{word}" for line in LINES for word in line.split()]
    entropy = sum(slow.entropy(word, scores, 0.5) for word in words)
    log_partition = sum(slow.log_partition(word, scores, 0.5) for word in words)
    records = records_of(here / "l.json")
    assert records["entropy"]["value"] == pytest.approx(entropy / 3, abs=1e-10)
    assert records["entropy_per_word"]["value"] == pytest.approx(entropy / len(words), abs=1e-10)
    assert records["log_partition"]["value"] == pytest.approx(log_partition / 3, abs=1e-10)
    assert records["entropy_check"]["value"] < 1e-9
    assert records["own_below_best"]["value"] == 0
    assert records["factorises"]["value"] == 1
    assert records["words"]["value"] == len(words)
    assert "scores:own|b:0.5" in records["entropy"]["signature"]
    assert f"entropy|{records['entropy']['signature']}" in found.out
    assert f"{records['entropy']['value']:.4f}" in found.out
    assert f"3 documents, {len(words)} words" in found.out
    top = sorted(set(words), key=lambda word: -slow.entropy(word, scores, 0.5))[:3]
    listed = [r["group"] for r in json.loads((here / "l.json").read_text(encoding="utf-8")) if "by" in r]
    assert sorted(listed) == sorted(top)
    assert all(word in found.out for word in top)


@pytest.mark.parametrize(("asked", "used"), [(None, "fitted"), ("fitted", "fitted"), ("uniform", "uniform")])
def test_pieces_without_scores_get_some(asked: str | None, used: str, here: Path, command: Command) -> None:
    options = () if asked is None else ("--proposal", asked)
    found = command(*CALL, "bpe.json", "text.txt", *options, "--json", "l.json")
    assert found.code == 0
    assert ("fitted to this same text (3 documents)" in found.err) == (used == "fitted")
    records = records_of(here / "l.json")
    assert f"scores:{used}" in records["entropy"]["signature"]
    assert "own_below_best" not in records
    if used == "uniform":
        bits = records["log2_paths"]["value"]
        assert records["entropy"]["value"] == pytest.approx(bits * 0.6931471805599453, abs=1e-10)


@pytest.mark.long
def test_a_text_of_one_sentence_is_warned_of(here: Path, command: Command) -> None:
    (here / "one.txt").write_text("the cat sat on the mat\n", encoding="utf-8")
    found = command(*CALL, "bpe.json", "one.txt", "--json", "l.json")
    assert found.code == 0 and "fitted to this same text (1 document)" in found.err
    assert command(*CALL, "unigram.json", "one.txt").err == ""


def test_pieces_that_reach_over_white_space_are_found_out(here: Path, command: Command) -> None:
    found = command(*CALL, "across.json", "text.txt", "--json", "l.json")
    assert found.code == 0
    assert "Most ambiguous words" not in found.out
    records = records_of(here / "l.json")
    assert records["factorises"]["value"] == 0
    assert "words_to_64_paths" not in records
    assert records["entropy_check"]["value"] < 1e-9


def test_what_the_tokeniser_changes_or_cannot_read_is_said(here: Path, command: Command) -> None:
    lines = ["the cat", "The mat", " a  cat", "the Ω", "the ☃Ω cat"]
    (here / "odd.txt").write_text("\n".join(lines), encoding="utf-8")
    found = command(*CALL, "lower.json", "odd.txt", "--json", "l.json")
    assert found.code == 0
    set_aside, spaced, changed, fitted = found.err.splitlines()
    assert "fitted to this same text (3 documents)" in fitted
    assert set_aside.startswith("Warning: 2 of 5 documents of odd.txt (lines 4, 5) are excluded: no piece spells ")
    assert "'Ω'" in set_aside
    assert "alters characters of 1 of 5 documents of odd.txt (line 2)" in changed
    assert "alters white space of 1 of 5 documents of odd.txt (line 3)" in spaced
    records = records_of(here / "l.json")
    assert (records["documents"]["value"], records["characters"]["value"]) == (3, 7 + 7 + 7)
    assert records["altered"]["value"] == pytest.approx(2 / 3)
    assert (records["entropy"]["given"], records["entropy"]["unreadable"]) == (5, 2)


def test_a_corpus_folder_is_read_by_split(here: Path, command: Command) -> None:
    grammar = "S -> D N 1.0\nD -> the 0.5 | a 0.5\nN -> cat 0.5 | mat 0.3 | theatre 0.2\n"
    PCFG.from_text(grammar).save(here / "g.npz")
    assert (
        command("sample", "g.npz", "-n", 20, "-o", "c", "--shares", "train=.5,eval=.5", "--lengths", "2..2").code == 0
    )
    found = command(*CALL, "unigram.json", "c", "--json", "l.json")
    assert (found.code, found.err) == (0, "")
    records = records_of(here / "l.json")
    originals = [" ".join(sentence) for sentence in Corpus.load(here / "c").sentences("eval")]
    assert records["documents"]["value"] == len(originals)
    assert records["characters"]["value"] == sum(map(len, originals))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("unigram.json", "empty.txt"), "this line is empty; expecting one document a line (empty.txt:2)"),
        (("unigram.json", "nothing.txt"), "there is no such file (nothing.txt)"),
        (
            ("nothing.json", "text.txt"),
            "name a model folder, a tokenizer.json or a SentencePiece .model (nothing.json)",
        ),
        (("unigram.json", "strange.txt"), "no document has a segmentation: no piece spells 'Ω' (strange.txt:1)"),
        (
            ("bpe.json", "text.txt", "--proposal", "own"),
            "a bpe tokeniser has no scores; use fitted or uniform ones",
        ),
        (("unigram.json", "text.txt", "--json", "text.txt"), "will not overwrite text.txt without --force"),
        (("text.txt", "text.txt"), "this is no SentencePiece model, nor a tokenizer.json (text.txt)"),
        (("gone.json", "gone.txt"), "the tokeniser keeps nothing of the text '\\u200b' (gone.txt:2)"),
    ],
)
def test_bad_input_is_one_sentence(args: tuple[str, ...], message: str, here: Path, command: Command) -> None:
    if "SentencePiece model, nor" in message:
        pytest.importorskip("sentencepiece")
    (here / "empty.txt").write_text("the cat\n \nthe mat\n", encoding="utf-8")
    (here / "strange.txt").write_text("Ω\n", encoding="utf-8")
    (here / "gone.txt").write_text("the cat\n\u200b\n", encoding="utf-8")
    backend = Tokenizer.from_file("lower.json")
    backend.normalizer = normalizers.Replace("\u200b", "")
    backend.save("gone.json")
    found = command(*CALL, *args)
    assert found.code == 2
    assert found.err.startswith("truesource: ")
    assert found.err.rstrip().endswith(message)
    assert found.err.count("\n") == 1


@pytest.mark.long
def test_options_of_models_are_refused(here: Path, command: Command) -> None:
    for options, name in (
        (("--samples", 3), "--samples"),
        (("--figure", "f.svg"), "a figure"),
        (("--oracle", "dyck:k=1"), "--oracle"),
    ):
        found = command(*CALL, "unigram.json", "text.txt", *options)
        assert found.code == 2 and "--lattice runs no model" in found.err and name in found.err
    found = command("evaluate", "tokenisation", "unigram.json", "text.txt", "--list-words", 3)
    assert found.code == 2 and "--list-words needs --lattice" in found.err
