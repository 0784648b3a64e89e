"""Text that comes back from token numbers: spaces between words and none inside, for every kind of tokeniser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, pipeline

from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.training import train

pytestmark = pytest.mark.long

SENTENCES = [
    ["the", "dog", "sees", "a", "cat"],
    ["do", "n't", "stop", "."],
    ["a", "dog", "stops", "(", "日本", ")"],
] * 20
KINDS: dict[str, dict[str, Any]] = {
    "word": {},
    "bpe": {"tokenizer": "bpe", "vocab_size": 60},
    "unigram": {"tokenizer": "unigram", "vocab_size": 60},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for kind, settings in KINDS.items():
        shape = model_settings(architecture="gpt2", layers=1, heads=2, dim=16, ffn_dim=32, max_positions=60, **settings)
        made[kind] = tmp_path_factory.mktemp("models") / kind
        train(SENTENCES, shape, TrainConfig(max_steps=2, batch_tokens=64), made[kind], seed=1)
    return made


@pytest.mark.parametrize("kind", list(KINDS))
def test_text_comes_back_as_it_was(kind: str, models: dict[str, Path]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(models[kind])
    for sentence in SENTENCES[:3]:
        text = " ".join(sentence)
        decoded = tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True)
        assert decoded.removeprefix(" ") == text  # whole words have a space before each, so that they follow a prompt


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_pipeline_puts_spaces_between_words_only(kind: str, models: dict[str, Path]) -> None:
    generate = pipeline("text-generation", model=str(models[kind]))
    tokenizer = generate.tokenizer
    for seed in range(5):
        torch.manual_seed(seed)
        (found,) = generate("the dog", max_new_tokens=12)
        torch.manual_seed(seed)
        (same,) = generate("the dog", max_new_tokens=12, return_tensors=True)
        pieces = tokenizer.convert_ids_to_tokens(same["generated_token_ids"], skip_special_tokens=True)
        spelled = " ".join(pieces) if kind == "word" else "".join(pieces).replace("▁", " ").removeprefix(" ")
        assert found["generated_text"] == spelled
        assert spelled.startswith("the dog") and len(pieces) > 2
