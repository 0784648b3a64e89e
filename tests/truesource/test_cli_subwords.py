"""Subword models and foreign checkpoints through the command: train, score, generate."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from command_line import Command
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from truesource.cli.main import main
from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import parts_of
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import ScoringFrame, preset_frame
from truesource.grammar.pcfg import PCFG
from truesource.lmtrain.decoding.folder import SampleFolder
from truesource.lmtrain.models import load_model
from truesource.lmtrain.pieces.models import CausalPieceModel, MaskedPieceModel
from truesource.lmtrain.subwords import build_subword_tokenizer

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]

SPLIT = "train=.8,dev=.1,eval=.1"
GRAMMAR = """\
S -> NP VP 1.0
NP -> D N 0.7 | N 0.3
VP -> V NP 0.5 | V 0.5
D -> the 0.6 | these 0.4
N -> theatre 0.4 | cat 0.3 | cats 0.2 | seat 0.1
V -> sees 0.6 | seats 0.4
"""
SETTINGS = {
    "gpt2": ("bpe", 36, "training.learning_rate=0.01"),
    "bert": ("unigram", 30, "training.learning_rate=0.01"),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a grammar, a corpus from it, and a model of each objective."""
    folder = tmp_path_factory.mktemp("subwords")
    PCFG.from_text(GRAMMAR).save(folder / "g.npz")

    def run(*words: object) -> None:
        with patch.object(sys, "argv", ["truesource", *map(str, words)]), pytest.raises(SystemExit) as stop:
            main()
            raise SystemExit(0)
        assert stop.value.code in (None, 0)

    run("sample", folder / "g.npz", "-n", 600, "-o", folder / "corpus", "--lengths", "2..5", "--shares", SPLIT)
    for model, (kind, size, rate) in SETTINGS.items():
        sets = (f"model.tokenizer={kind}", f"model.vocab_size={size}", "model.dim=32", "model.layers=1", rate)
        options = [x for setting in (*sets, "training.max_steps=60") for x in ("--set", setting)]
        run("train", folder / "corpus", "-o", folder / model, "--model", model, *options)
    return folder


def records(path: Path) -> dict[str, dict[str, Any]]:
    return {record["name"]: record for record in json.loads(path.read_text(encoding="utf-8"))}


def test_what_comes_before_a_text_can_be_said(trained: Path, command: Command) -> None:
    call = ("score", trained / "gpt2", trained / "corpus", "--oracle", trained / "g.npz")
    found = command(*call, "--before", "eos")
    assert found.code == 0
    assert "|reading:pieces/bow/bos=3/eos=3|" in found.out
    assert "|reading:pieces/bow/bos=2/eos=3|" in command(*call).out
    for model, part in (("gpt2", "has no token 'rubbish' to put before a text"), ("bert", "causal networks")):
        refused = command("score", trained / model, *call[2:], "--before", "rubbish")
        assert refused.code == 2 and part in refused.err


@pytest.mark.parametrize(
    ("model", "reading"),
    [("gpt2", "pieces/bow/bos=2/eos=3"), ("bert", "pieces/pll-word-l2r/before=2/after=3")],
)
def test_score_compares_words_with_the_truth(
    model: str, reading: str, trained: Path, command: Command, tmp_path: Path
) -> None:
    done = command(
        *("score", trained / model, trained / "corpus"),
        *("--oracle", trained / "g.npz", "--json", tmp_path / "s.json"),
    )
    assert (done.code, done.err) == (0, "")
    found = records(tmp_path / "s.json")
    assert f"reading:{reading}" in found["ppl"]["signature"]
    sentences = Corpus.load(trained / "corpus").sentences("eval")
    ends = len(sentences) if model == "gpt2" else 0
    assert found["tokens"]["value"] == sum(map(len, sentences)) + ends  # words, not pieces
    if model == "gpt2":
        assert 1.0 < found["relative_ppl"]["value"] < 3.0
    record = json.loads((trained / model / "training.json").read_text())
    assert record["vocabulary"] <= SETTINGS[model][1] - 5
    assert f"cut into {record['vocabulary']} {SETTINGS[model][0]} pieces" in (trained / model / "README.md").read_text()


def test_a_masked_model_of_pieces_is_compared_per_piece(trained: Path, command: Command, tmp_path: Path) -> None:
    call = (trained / "bert", trained / "corpus", "--oracle", trained / "g.npz", "--json", tmp_path / "d.json")
    done = command("evaluate", "divergence", *call)
    assert done.code == 0, done.err
    assert "Each piece is given all other pieces of the sentence and their number" in " ".join(done.err.split())
    assert "KL(P‖Q) per word" not in done.out
    assert "frequency of the masked piece" in done.out
    found = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))
    (kl,) = [record for record in found if record["name"] == "kl" and "by" not in record]
    model = load_model(trained / "bert", device="cpu")
    pieces = sum(map(len, model.cut(Corpus.load(trained / "corpus").sentences("eval"))))  # type: ignore[union-attr]
    parts = parts_of(kl["signature"])
    assert (parts["objective"], parts["given"], parts["contexts"]) == ("masked", "length, 2..5 words", str(pieces))
    assert parts["grammar"].endswith(f"pieces {parts['pieces']}")
    assert 0.0 < kl["value"] < 10.0
    refused = command("evaluate", "divergence", *call[:4], "--by", "phrase")
    assert (refused.code, "the divergence by phrase is of words" in " ".join(refused.err.split())) == (2, True)


def test_the_dev_loss_is_the_score_per_piece(trained: Path) -> None:
    model = load_model(trained / "gpt2", device="cpu")
    assert isinstance(model, CausalPieceModel)
    sentences = Corpus.load(trained / "corpus").sentences("dev")
    last = json.loads((trained / "gpt2" / "metrics.jsonl").read_text().splitlines()[-1])
    pieces = len(model.aligner.align(sentences).ids) + len(sentences)
    total = model.score(sentences, ScoringFrame()).log_prob.sum()
    assert last["dev_loss"] == pytest.approx(-total / pieces, abs=1e-4)
    assert isinstance(load_model(trained / "bert", device="cpu"), MaskedPieceModel)


def test_words_with_unseen_characters_are_left_out(trained: Path, command: Command, tmp_path: Path) -> None:
    """The grammar knows ``dog``, of which the train split never showed the ``d`` or ``g``."""
    pcfg = PCFG.from_text(GRAMMAR.replace("seat 0.1", "seat 0.05 | dog 0.05"))
    pcfg.save(tmp_path / "dog.npz")
    text = tmp_path / "text.txt"
    text.write_text("the cat sees\nthe dog sees\nthese cats seats the theatre\n", encoding="utf-8")
    done = command("score", trained / "gpt2", text, "--oracle", tmp_path / "dog.npz")
    assert (done.code, "1 of 3 sentences have probability 0" in done.err) == (0, True)
    skipped = command(
        *("score", trained / "gpt2", text, "--oracle", tmp_path / "dog.npz"),
        *("--frame", "paper", "--json", tmp_path / "s.json"),
    )
    assert skipped.code == 0
    found = records(tmp_path / "s.json")
    assert (found["excluded"]["value"], found["tokens"]["value"]) == (0, 2 + 1 + 4)
    model = load_model(trained / "gpt2", device="cpu")
    sentences = [line.split() for line in text.read_text(encoding="utf-8").splitlines()]
    result = compare_in(model, Setting(pcfg, sentences, frame=preset_frame("paper", "causal")))
    assert list(zip(result.paired.sentence, result.paired.position, strict=True)) == [
        *((0, 1), (0, 2)),
        (1, 2),
        *((2, 1), (2, 2), (2, 3), (2, 4)),
    ]


def test_sentences_drawn_piece_by_piece_are_words(trained: Path, command: Command, tmp_path: Path) -> None:
    done = command("generate", trained / "gpt2", "-n", 300, "-o", tmp_path / "samples")
    assert done.code == 0, done.err
    drawn = SampleFolder.load(tmp_path / "samples")
    assert drawn.n_sentences == 300
    known = set(PCFG.from_text(GRAMMAR).vocabulary)
    words = [word for sentence in drawn.sentences() for word in sentence]
    assert np.mean([word in known for word in words]) > 0.5


def test_a_checkpoint_made_elsewhere(trained: Path, command: Command, tmp_path: Path) -> None:
    """Untrained, with small weights: every piece about as likely as any other."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    sentences = Corpus.load(trained / "corpus").sentences("train")
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(
        (" ".join(sentence) for sentence in sentences),
        trainers.BpeTrainer(
            vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<|endoftext|>", eos_token="<|endoftext|>", unk_token="<|endoftext|>"
    )
    torch.manual_seed(0)
    shape = {"n_positions": 64, "n_embd": 8, "n_layer": 1, "n_head": 2, "bos_token_id": 0, "eos_token_id": 0}
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **shape)).save_pretrained(tmp_path / "theirs")
    tokenizer.save_pretrained(tmp_path / "theirs")
    done = command(
        *("score", tmp_path / "theirs", trained / "corpus", "--oracle", trained / "g.npz"),
        *("--json", tmp_path / "s.json"),
    )
    assert (done.code, done.err) == (0, "")
    found = records(tmp_path / "s.json")
    assert "reading:pieces/bow/bos=0/eos=0" in found["ppl"]["signature"]
    model = load_model(tmp_path / "theirs", device="cpu")
    assert isinstance(model, CausalPieceModel)
    held = Corpus.load(trained / "corpus").sentences("eval")
    predicted = len(model.aligner.align(held).ids) + len(held)
    uniform = predicted * math.log(len(tokenizer)) / found["tokens"]["value"]
    assert math.log(found["ppl"]["value"]) == pytest.approx(uniform, rel=0.02)
    (tmp_path / "theirs" / "tokenizer.json").unlink()
    refused = command("score", tmp_path / "theirs", trained / "corpus", "--oracle", trained / "g.npz")
    assert (refused.code, "no fast tokeniser" in refused.err) == (2, True)


def test_the_command_bounds_pieces(tmp_path: Path, command: Command) -> None:
    folder = tmp_path / "tokens"
    build_subword_tokenizer([["cats", "cat"]], "bpe", 12).save_pretrained(folder)
    Path(tmp_path / "g.txt").write_text("S -> W S 0.5 | W 0.5\nW -> cat 0.5 | cats 0.5\n", "utf-8")
    assert command("sample", tmp_path / "g.txt", "-n", 400, "--lengths", "1..4", "-o", tmp_path / "corpus").code == 0
    values = []
    for name in (folder, folder / "tokenizer.json"):
        done = command(
            "bound", tmp_path / "corpus", "--no-masked", "--tokenizer", name, "--json", tmp_path / "b.json", "--force"
        )
        assert done.code == 0, done.err
        values.append(
            {each["name"]: each["value"] for each in json.loads((tmp_path / "b.json").read_text())["summary"]}
        )
    assert values[0] == pytest.approx(values[1])
    assert set(values[0]) == {"causal_bound", "piece_bound", "bits_per_byte"}
    missing = command("bound", tmp_path / "corpus", "--tokenizer", tmp_path / "nowhere")
    assert missing.code == 2 and "there is no such tokeniser" in missing.err
    framed = command("bound", tmp_path / "corpus", "--tokenizer", "bytes", "--frame", "paper")
    assert framed.code == 2 and "--tokenizer gives causal bounds in the default frame" in framed.err
