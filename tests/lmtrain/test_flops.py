"""FLOPs of training against hand counts, parameters against their definitions, and a ready tokeniser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from truesource.generator.columns import CodedSentences
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.data import causal_batch
from truesource.lmtrain.flops import count_flops, count_parameters, training_cost
from truesource.lmtrain.model_registry import model_settings, network_architecture, network_names, settings_class
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.training import train
from truesource.lmtrain.word_vocabulary import WordVocabulary

WORDS = [f"w{i}" for i in range(40)]
VOCABULARY = 45


def sentences(n: int, lengths: tuple[int, int] = (4, 9)) -> list[list[str]]:
    rng = np.random.default_rng(0)
    return [[WORDS[i] for i in rng.integers(0, 40, rng.integers(*lengths))] for _ in range(n)] + [WORDS]


class OneLayer(nn.Module):
    """Word vectors and one linear layer without bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, input_ids: Tensor) -> object:
        class Output:
            logits = self.head(self.words(input_ids))

        return Output


def batch(rows: int, length: int) -> dict[str, Tensor]:
    vocabulary = WordVocabulary(build_tokenizer([WORDS]))
    return causal_batch([np.arange(5, 4 + length)] * rows, vocabulary)


def test_one_linear_layer_is_counted_by_hand() -> None:
    """T x d x V multiply-adds forward, twice that backward (both inputs need a gradient), two FLOPs each."""
    network = OneLayer(8)
    assert count_flops(network, "head", batch(3, 7)) == 3 * 2 * (3 * 7) * 8 * VOCABULARY
    parameters = count_parameters(network)
    assert parameters.total == 2 * 8 * VOCABULARY
    assert parameters.without_embeddings == parameters.multiplied == 8 * VOCABULARY


def gpt2(layers: int, dim: int, heads: int = 2, dropout: float = 0.1) -> nn.Module:
    config = model_settings(layers=layers, dim=dim, heads=heads, max_positions=64, dropout=dropout)
    network: nn.Module = network_architecture("gpt2").build(config, WordVocabulary(build_tokenizer([WORDS])))
    return network


@pytest.mark.parametrize(("layers", "dim", "rows", "length"), [(1, 8, 2, 5), (3, 16, 4, 11)])
def test_a_transformer_is_counted_by_hand(layers: int, dim: int, rows: int, length: int) -> None:
    """A layer has 12 d^2 weights in products and attends over length^2 positions, twice; forward and backward are 3."""
    tokens = rows * length
    products = layers * 12 * dim**2 * tokens + dim * VOCABULARY * tokens
    attention = layers * 2 * rows * length**2 * dim
    assert count_flops(gpt2(layers, dim), "lm_head", batch(rows, length)) == 3 * 2 * (products + attention)


def test_the_rule_of_six_n_d_holds_without_embeddings() -> None:
    """Of a transformer wide for its sentences, within 3%; the output matrix, tied to the embedding, taken off."""
    network, rows, length = gpt2(2, 128), 4, 8
    found = count_flops(network, "lm_head", batch(rows, length))
    tokens = rows * length
    without = found - 6 * 128 * VOCABULARY * tokens
    assert without / (6 * count_parameters(network).without_embeddings * tokens) == pytest.approx(1.0, abs=0.03)
    assert found / (6 * count_parameters(network).multiplied * tokens) == pytest.approx(1.0, abs=0.03)


def test_parameters_are_those_of_transformers() -> None:
    network = gpt2(2, 16)
    parameters = count_parameters(network)
    assert parameters.total == network.num_parameters()  # type: ignore[operator]
    assert parameters.total - parameters.without_embeddings == (VOCABULARY + 64) * 16
    assert parameters.multiplied - parameters.without_embeddings == VOCABULARY * 16


def test_counting_leaves_the_model_as_it_was() -> None:
    network = gpt2(1, 8).eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.random.get_rng_state()
    enabled = torch.backends.mkldnn.enabled  # type: ignore[attr-defined]
    count_flops(network, "lm_head", batch(2, 5))
    assert not network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.backends.mkldnn.enabled == enabled  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", network_names())
def test_the_cost_of_every_architecture(name: str) -> None:
    """At least 6 N D but for padding that is no target; a recurrent net must not come out empty."""
    text = sentences(60)
    takes = {
        key: value
        for key, value in {"heads": 2, "max_positions": 64}.items()
        if key in settings_class(name).model_fields
    }
    config = model_settings(architecture=name, layers=1, dim=16, **takes)
    tokenizer = build_tokenizer(text, objective=settings_class(name).objective)
    training = TrainConfig(max_steps=7, batch_tokens=60, accumulation=2)
    cost = training_cost(config, training, CodedSentences.of(text), tokenizer, seed=1)
    assert cost.steps == 7
    assert cost.flops == 7 * cost.flops_per_step
    assert 0.7 < cost.flops / cost.rule < 2.6
    again = training_cost(config, training, CodedSentences.of(text), tokenizer, seed=1)
    assert again == cost


@pytest.mark.long
def test_tokens_seen_are_those_of_the_training(tmp_path: Path) -> None:
    text = sentences(30)
    shape = model_settings(layers=1, dim=8, heads=2, max_positions=64)
    training = TrainConfig(max_steps=4, batch_tokens=60, eval_every=4)
    trained = train(text, shape, training, tmp_path / "model", seed=1)
    cost = training_cost(shape, training, CodedSentences.of(text), trained.tokenizer, seed=1)
    last = (tmp_path / "model" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert f'"tokens": {cost.tokens},' in last


@pytest.mark.long
def test_a_ready_tokeniser_is_taken_as_it_is(tmp_path: Path) -> None:
    """A train split of few words, a tokeniser of many: the model has all of them, and its record says which."""
    tokenizer = build_tokenizer([WORDS])
    shape = model_settings(layers=1, dim=8, heads=2, max_positions=16)
    training = TrainConfig(max_steps=2, eval_every=2)
    text = [["w1", "w2"], ["w3"]]
    trained = train(text, shape, training, tmp_path / "model", seed=1, tokenizer=tokenizer)
    assert trained.vocabulary is not None and set(trained.vocabulary) == set(WORDS)
    own = train(text, shape, training, tmp_path / "own", seed=1)
    assert own.vocabulary is not None and set(own.vocabulary) == {"w1", "w2", "w3"}
    assert "tokenizer_digest" in (tmp_path / "model" / "training.json").read_text(encoding="utf-8")
    assert "tokenizer_digest" not in (tmp_path / "own" / "training.json").read_text(encoding="utf-8")
    counted = train(text, model_settings(architecture="ngram"), None, tmp_path / "n", seed=1, tokenizer=tokenizer)
    assert counted.vocabulary is not None and set(counted.vocabulary) == set(WORDS)
