"""Small tokenisers with byte fallback, and all token sequences that they decode to a text, one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from piece_models import ToyPieceModel
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from truesource.generator.piece_model import PieceInventory, PieceText, PieceTokenizer
from truesource.lmtrain.pieces.inventory import read_pieces
from truesource.lmtrain.pieces.models import piece_model

SPACE, E_ACUTE, MARKER = b" ", "é".encode(), "▁".encode()
PIECES = ("▁", "a", "é", "▁a", "aé", "é▁")
MERGES = [("▁", "a"), ("a", "é"), ("é", "▁")]


def byte_token(byte: int) -> str:
    return f"<0x{byte:02X}>"


def decoder(*, strip: bool = False) -> decoders.Decoder:
    """As Llama's: the marker becomes a space before byte tokens become letters."""
    end = [decoders.Strip(" ", 1, 0)] if strip else []
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *end])


def bpe(
    singles: bytes,
    pieces: Sequence[str] = PIECES,
    merges: Sequence[tuple[str, str]] = MERGES,
    *,
    prefix: bool = False,
) -> Tokenizer:
    """BPE with byte tokens of some bytes; `prefix` adds a space to a text as Llama does."""
    vocab = {token: number for number, token in enumerate(["<unk>", *map(byte_token, singles), *pieces])}
    merges = [(a, b) for a, b in merges if {a, b, a + b} <= {*pieces}]
    backend = Tokenizer(models.BPE(vocab, merges, byte_fallback=True, unk_token="<unk>"))
    return _finished(backend, prefix=prefix)


def unigram(singles: bytes, pieces: Sequence[str] = PIECES) -> Tokenizer:
    """Unigram with byte tokens, whose own scores are 0 as in models of SentencePiece."""
    scored = [(piece, -2.0 - 0.3 * at) for at, piece in enumerate(pieces)]
    vocab = [("<unk>", 0.0), *((byte_token(byte), 0.0) for byte in singles), *scored]
    return _finished(Tokenizer(models.Unigram(vocab, 0, byte_fallback=True)))


def _finished(backend: Tokenizer, *, prefix: bool = False) -> Tokenizer:
    before = [normalizers.Prepend("▁")] if prefix else []
    backend.normalizer = normalizers.Sequence([*before, normalizers.Replace(" ", "▁")])
    backend.decoder = decoder(strip=prefix)
    backend.add_special_tokens(["<unk>"])
    return backend


def with_two_tokens_of_one_spelling(singles: bytes) -> Tokenizer:
    """Text that a user added as a token has the spelling of a piece."""
    backend = bpe(singles)
    backend.add_tokens([AddedToken(" a", normalized=False)])
    return backend


def sequences(backend: Tokenizer, text: str, longest: int) -> Iterator[tuple[int, ...]]:
    """Yield every sequence of up to ``longest`` tokens that decodes to a text, by trying all."""
    special = {number for number, token in backend.get_added_tokens_decoder().items() if token.special}
    tokens = [number for number in backend.get_vocab().values() if number not in special]
    for length in range(1, longest + 1):
        for numbers in itertools.product(tokens, repeat=length):
            if backend.decode(list(numbers), skip_special_tokens=False) == text:
                yield numbers


def llama(backend: Tokenizer, *, seed: int = 0) -> Any:
    """Return a small random network of the tokens of a tokeniser."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>", add_prefix_space=None
    )
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=64, initializer_range=0.4,
    )  # fmt: skip
    return piece_model(LlamaForCausalLM(config), tokenizer, "llama", "causal")


class _Read:
    """A tokeniser with scores of 0."""

    def __init__(self, pieces: PieceTokenizer) -> None:
        self._pieces = pieces
        self.inventory: PieceInventory = replace(pieces.inventory, scores=np.zeros(len(pieces.inventory.pieces)))

    def read(self, text: str) -> PieceText:
        return self._pieces.read(text)


class ByteModel(ToyPieceModel):
    """A random model of the tokens of a tokeniser."""

    def __init__(self, backend: Tokenizer, *, order: int | None, seed: int = 0, longest: int | None = None) -> None:
        read = _Read(read_pieces(backend))
        super().__init__(read.inventory, order=order, seed=seed, longest=longest)
        self.pieces = read  # type: ignore[assignment]
