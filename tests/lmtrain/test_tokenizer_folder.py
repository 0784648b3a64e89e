"""Tokenisers in folders: without `transformers` the same pieces as with it, and without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.pieces.inventory import read_pieces
from truesource.lmtrain.subwords import build_subword_tokenizer

LINES = ["the cat sat on the mat", "theatre cats sat there", "a cat , said the catty mat", "naïve cafés"] * 2


def byte_level() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=290, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(LINES, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<|endoftext|>", eos_token="<|endoftext|>")


def wordpiece(*, lowercase: bool) -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=60, special_tokens=special, show_progress=False)
    backend.train_from_iterator(LINES, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")


def same(folder: Path, tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> None:
    """The inventory and the cuts of a folder are those of a tokeniser in memory."""
    found, expected = read_pieces(folder), read_pieces(tokenizer)
    assert found.inventory.digest == expected.inventory.digest
    for text in texts:
        one, two = found.read(text), expected.read(text)
        assert (one.spelling, one.altered, one.unreadable) == (two.spelling, two.altered, two.unreadable)
        assert np.array_equal(one.canonical, two.canonical)


def test_vocab_json_with_merges(tmp_path: Path) -> None:
    tokenizer = byte_level()
    tokenizer.backend_tokenizer.model.save(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["merges.txt", "vocab.json"]
    same(tmp_path, tokenizer, [*LINES, "unseen Words, <|endoftext|>!"])


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("said", [False, True])
def test_vocab_txt(lowercase: bool, said: bool, tmp_path: Path) -> None:
    tokenizer = wordpiece(lowercase=lowercase)
    tokenizer.backend_tokenizer.model.save(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["vocab.txt"]
    if said:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lowercase, "bos_token": None}))
    elif not lowercase:  # nothing says so but a capital letter
        lines = (tmp_path / "vocab.txt").read_text().splitlines()
        (tmp_path / "vocab.txt").write_text("\n".join([*lines, "Zz"]) + "\n")
        assert read_pieces(tmp_path).read("the Cat").altered is False
        return
    same(tmp_path, tokenizer, ["the cat sat", "Theatre cats, there"] if lowercase else ["the cat sat", "cats there"])


def test_other_vocabularies_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no tokenizer\.json, vocab\.json with merges\.txt, or vocab\.txt"):
        read_pieces(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    with pytest.raises(InputError, match=r"not of byte-level BPE, it lacks 254 of 256 bytes"):
        read_pieces(tmp_path)
    (tmp_path / "vocab.json").write_text("{")
    with pytest.raises(InputError, match="the tokeniser cannot be loaded"):
        read_pieces(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": "yes"}')
    with pytest.raises(InputError, match="the configuration of the tokeniser is damaged: do_lower_case"):
        read_pieces(tmp_path)


@pytest.mark.long
def test_a_folder_with_tokenizer_json_needs_no_torch(tmp_path: Path) -> None:
    tokenizer = build_subword_tokenizer([["the", "cat"], ["seat"]] * 3, "unigram", 20)
    tokenizer.save_pretrained(tmp_path)
    same(tmp_path, tokenizer, ["the cat", "seat the"])
    code = "import sys; from truesource.lmtrain.pieces.inventory import read_pieces"
    code += f"; read_pieces({str(tmp_path)!r}).read('cat')"
    code += "; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
