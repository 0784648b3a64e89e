"""Model folders made without training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerFast

from truesource.lmtrain.model_registry import model_settings, network_architecture
from truesource.lmtrain.subwords import SubwordKind, build_subword_tokenizer
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.word_vocabulary import WordVocabulary

WORDS = [f"w{i}" for i in range(7)]


def save_model(folder: Path, architecture: str = "gpt2", seed: int = 0) -> Path:
    """A tiny network with large random weights, for sentences of at most 9 words (8 if masked)."""
    tokenizer = build_tokenizer([WORDS], objective=network_architecture(architecture).objective)
    torch.manual_seed(seed)
    return _save(folder, architecture, tokenizer, 10)


def save_piece_model(
    folder: Path,
    sentences: Sequence[Sequence[str]],
    kind: SubwordKind,
    vocab_size: int,
    *,
    architecture: str = "gpt2",
    max_positions: int = 40,
    seed: int = 0,
) -> Path:
    """A tiny network of pieces with large random weights."""
    objective = network_architecture(architecture).objective
    tokenizer = build_subword_tokenizer(sentences, kind, vocab_size, objective=objective)
    torch.manual_seed(seed)
    return _save(folder, architecture, tokenizer, max_positions)


def _save(folder: Path, architecture: str, tokenizer: PreTrainedTokenizerFast, max_positions: int) -> Path:
    config = model_settings(architecture=architecture, layers=1, heads=2, dim=8, max_positions=max_positions)
    network = network_architecture(architecture).build(config, WordVocabulary(tokenizer))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
