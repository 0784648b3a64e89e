"""Training on what is expected at each position, in place of what occurred."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.data import ExpectedTokens
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.training import train
from truesource.lmtrain.word_vocabulary import WordVocabulary

pytestmark = pytest.mark.usefixtures("one_thread")
TEXT = [["a"], ["a", "b"], ["b", "c", "a"], ["c", "c"]] * 5
SHAPE = model_settings("lstm", layers=1, dim=8, dropout=0.0)
STEPS = TrainConfig(max_steps=6, batch_tokens=20, eval_every=2, warmup_steps=1)


def one_hot(size: int, vocabulary: WordVocabulary) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """All probability on what occurs."""
    tokens = [number for row in vocabulary.encode(TEXT) for number in (*row.tolist(), vocabulary.eos)]
    return np.eye(size, dtype=np.float32)[tokens]


@pytest.mark.long
def test_certain_expectations_are_the_tokens_themselves(tmp_path: Path) -> None:
    """The same weights, to rounding: positions of all batches are those of their sentences."""
    tokenizer = build_tokenizer(TEXT)
    vocabulary = WordVocabulary(tokenizer)
    table = one_hot(len(vocabulary), vocabulary)
    plain = train(TEXT, SHAPE, STEPS, tmp_path / "plain", seed=1, tokenizer=tokenizer)
    expected = ExpectedTokens(table, "certain")
    soft = train(TEXT, SHAPE, STEPS, tmp_path / "soft", seed=1, tokenizer=tokenizer, expected=expected)
    for one, other in zip(plain.model.parameters(), soft.model.parameters(), strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), atol=2e-6)
    uniform = ExpectedTokens(np.full_like(table, 1 / table.shape[1]), "uniform")
    other = train(TEXT, SHAPE, STEPS, tmp_path / "other", seed=1, tokenizer=tokenizer, expected=uniform)
    gap = [
        np.abs(a.detach().numpy() - b.detach().numpy()).max()
        for a, b in zip(plain.model.parameters(), other.model.parameters(), strict=True)
    ]
    assert max(gap) > 1e-4
    assert '"expected_digest": "certain"' in (tmp_path / "soft" / "training.json").read_text("utf-8")


def test_what_cannot_be_trained_on_expectations_is_refused(tmp_path: Path) -> None:
    tokenizer = build_tokenizer(TEXT)
    size = len(WordVocabulary(tokenizer))
    table = one_hot(size, WordVocabulary(tokenizer))
    short = ExpectedTokens(table[1:], "short")
    with pytest.raises(InputError, match="the text needs one"):
        train(TEXT, SHAPE, STEPS, tmp_path / "m", seed=1, tokenizer=tokenizer, expected=short)
    whole = ExpectedTokens(table, "whole")
    masked = model_settings("bert", layers=1, dim=8, max_positions=8)
    with pytest.raises(InputError, match="only causal models") as refused:
        train(
            TEXT,
            masked,
            STEPS,
            tmp_path / "m",
            seed=1,
            tokenizer=build_tokenizer(TEXT, objective="masked"),
            expected=whole,
        )
    assert refused.value.code == "masked"
    with pytest.raises(InputError, match="single tokens"):
        train(
            TEXT,
            model_settings("adaptive", layers=1, dim=8, max_positions=8),
            STEPS,
            tmp_path / "m",
            seed=1,
            tokenizer=tokenizer,
            expected=whole,
        )
    with pytest.raises(InputError, match="neither callbacks"):
        train(TEXT, model_settings("ngram"), None, tmp_path / "m", seed=1, tokenizer=tokenizer, expected=whole)
