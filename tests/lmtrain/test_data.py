"""Batches hold what they say, and every sentence once an epoch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.data import (
    TrainingBatches,
    by_length,
    causal_batch,
    dev_batches,
    masked_batch,
    one_mask_batch,
    random_masks,
)
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.word_vocabulary import WordVocabulary

WORDS = [f"w{i}" for i in range(20)]
VOCABULARY = WordVocabulary(build_tokenizer([WORDS]))
V = VOCABULARY


def rows(lengths: list[int], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(5, 25, size=n) for n in lengths]


def test_causal_batch_predicts_each_word_and_the_end() -> None:
    batch = causal_batch([np.array([5, 6, 7]), np.array([8])], V)
    assert batch["input_ids"].tolist() == [[V.bos, 5, 6, 7], [V.bos, 8, V.eos, V.eos]]
    assert batch["positions"].tolist() == [0, 1, 2, 3, 4, 5]
    assert batch["targets"].tolist() == [5, 6, 7, V.eos, 8, V.eos]
    assert "attention_mask" not in batch


def test_masked_batch_hides_what_it_asks_for() -> None:
    hidden = np.array([[False, True, True], [True, False, False]])
    batch = masked_batch([np.array([5, 6, 7]), np.array([8])], hidden, V)
    assert batch["input_ids"].tolist() == [
        [V.bos, 5, V.mask, V.mask, V.eos],
        [V.bos, V.mask, V.eos, V.pad, V.pad],
    ]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert batch["positions"].tolist() == [2, 3, 6]
    assert batch["targets"].tolist() == [6, 7, 8]


def test_equal_lengths_need_no_attention_mask() -> None:
    batch = one_mask_batch([np.array([5, 6]), np.array([7, 8])], np.array([1, 0]), V)
    assert "attention_mask" not in batch
    assert batch["targets"].tolist() == [6, 7]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=30), st.floats(0.01, 1.0), st.integers(0, 1000))
def test_random_masks_hide_words_only_and_at_least_one(lengths: list[int], probability: float, seed: int) -> None:
    hidden = random_masks(rows(lengths), probability, np.random.default_rng(seed))
    assert hidden.any(axis=1).all()
    for row, length in zip(hidden, lengths, strict=True):
        assert not row[length:].any()


def test_random_masks_hide_the_share_asked_for() -> None:
    hidden = random_masks(rows([20] * 2000), 0.3, np.random.default_rng(0))
    assert hidden.mean() == pytest.approx(0.3, abs=0.01)  # 40,000 words: standard error 0.0023


@given(st.lists(st.integers(1, 40), max_size=60), st.integers(1, 200))
def test_by_length_is_a_partition_within_the_budget(lengths: list[int], budget: int) -> None:
    array = np.array(lengths, dtype=np.int64)
    pieces = list(by_length(array, budget))
    assert sorted(np.concatenate(pieces).tolist() if pieces else []) == list(range(len(lengths)))
    for piece in pieces:
        assert len(piece) == 1 or len(piece) * array[piece].max() <= budget


@pytest.mark.long
@settings(max_examples=20)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=80), st.integers(0, 99), st.sampled_from(["causal", "masked"]))
def test_an_epoch_holds_every_sentence_once(lengths: list[int], seed: int, objective: str) -> None:
    config = TrainConfig(epochs=2, batch_tokens=40)
    data = rows(lengths)
    batches = TrainingBatches(data, V, objective, config, seed=seed)  # type: ignore[arg-type]
    seen: list[list[int]] = []
    tokens = 0
    for i in range(len(batches)):
        batch = batches[i]
        tokens += sum(len(row) for row in sentences_of(batch)) + len(batch["input_ids"])
        seen += sentences_of(batch)
        assert batch["input_ids"].numel() <= max(40, 14)
        assert batches.progress(i + 1)[1] == tokens
    expected = [row.tolist() for row in data] * 2
    if objective == "causal":
        assert sorted(seen) == sorted(expected)
    else:
        assert sorted(map(len, seen)) == sorted(map(len, expected))
    assert batches.progress(len(batches))[0] == pytest.approx(2.0)


def sentences_of(batch: dict) -> list[list[int]]:
    ids = [row[1:] for row in batch["input_ids"].tolist()]
    return [row[: row.index(V.eos)] if V.eos in row else row for row in ids]


def test_a_batch_depends_on_its_number_and_the_seed_alone() -> None:
    config = TrainConfig(max_steps=50, batch_tokens=64)
    data = rows([3, 5, 8, 2, 9, 7] * 10)
    one, two = (TrainingBatches(data, V, "masked", config, seed=4) for _ in range(2))
    other = TrainingBatches(data, V, "masked", config, seed=5)
    forwards = [one[i]["input_ids"].tolist() for i in range(50)]
    backwards = [two[i]["input_ids"].tolist() for i in reversed(range(50))]
    assert forwards == backwards[::-1]
    assert forwards != [other[i]["input_ids"].tolist() for i in range(50)]


def test_half_an_epoch_and_accumulation() -> None:
    data = rows([4] * 400)
    steps = TrainingBatches(data, V, "causal", TrainConfig(epochs=1, batch_tokens=50), seed=0).n_steps
    assert steps == 40  # 10 sentences of 5 tokens a batch
    half = TrainingBatches(data, V, "causal", TrainConfig(epochs=0.5, batch_tokens=50, accumulation=2), seed=0)
    assert (half.n_steps, len(half)) == (10, 20)


def test_batches_of_equal_numbers_of_sentences() -> None:
    data = rows([2, 9, 4, 7, 3] * 83)  # 415 sentences
    batches = TrainingBatches(data, V, "causal", TrainConfig(epochs=1, batch_sentences=20), seed=0)
    sizes = sorted(len(batches[i]["input_ids"]) for i in range(len(batches)))
    assert sizes == [15] + [20] * 20
    seen = [sentence for i in range(len(batches)) for sentence in sentences_of(batches[i])]
    assert sorted(seen) == sorted(row.tolist() for row in data)
    widths = [batches[i]["input_ids"].shape[1] for i in range(len(batches))]
    assert len(set(widths)) == 5  # sentences of about one length stand together
    assert (
        TrainingBatches(data, V, "causal", TrainConfig(epochs=2, batch_sentences=20, accumulation=3), seed=0).n_steps
        == 14
    )


def test_dev_batches_of_a_masked_model_mask_each_word_at_most_once() -> None:
    data = [np.array([5 + i, 6 + i]) for i in range(8)]
    batches = dev_batches(data, V, "masked", limit=100, budget=20)
    hidden = sorted(int(t) for batch in batches for t in batch["targets"])
    assert hidden == sorted(int(w) for row in data for w in row)
    assert len([t for b in dev_batches(data, V, "masked", limit=5, budget=20) for t in b["targets"]]) == 5


def test_the_share_of_masks_moves_to_its_end() -> None:
    data = rows([20] * 200)
    config = TrainConfig(max_steps=100, batch_tokens=2000, mask_probability=0.6, mask_probability_end=0.1)
    batches = TrainingBatches(data, V, "masked", config, seed=0)
    shares = [
        float((batches[i]["input_ids"] == V.mask).sum()) / (20 * len(batches[i]["input_ids"])) for i in (0, 50, 99)
    ]
    assert shares == pytest.approx([0.6, 0.35, 0.1], abs=0.05)  # about 1,800 words: standard error 0.012
