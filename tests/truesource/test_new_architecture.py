"""A new architecture is a row of two tables, and a module where `transformers` lacks its network."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import Field
from transformers import AutoConfig, AutoModelForCausalLM

from truesource.generator.language_model import ScoringFrame
from truesource.lmtrain import architectures
from truesource.lmtrain.architectures.networks import NETWORKS, NetworkArchitecture
from truesource.lmtrain.architectures.settings import SETTINGS, NetworkSettings, names
from truesource.lmtrain.models import load_model
from truesource.lmtrain.training import train
from truesource.run.experiment import load_config

pytestmark = pytest.mark.long


class BigramSettings(NetworkSettings):
    architecture: Literal["bigram"] = "bigram"
    gain: float = Field(1.0, gt=0.0)


NETWORK = """
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

class BigramConfig(PreTrainedConfig):
    model_type = "bigram"
    vocab_size: int = 0
    hidden_size: int = 8
    gain: float = 1.0

class BigramForCausalLM(PreTrainedModel):
    config_class = BigramConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, **_):
        return CausalLMOutputWithPast(logits=self.lm_head(self.config.gain * self.embed_tokens(input_ids)))
"""
RUN = """
name: toy
treebank: {embedded: english}
models:
  - name: pairs
    preset: tiny
    model: {architecture: bigram, dim: 8, gain: 2.0}
    training: {max_steps: 150, learning_rate: 0.1, eval_every: 50}
"""
TEXT = [["a", "b"], ["a", "b", "a", "b"]] * 20


@pytest.fixture
def bigram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import_module("truesource.cli.train")  # its help names the architectures of this moment
    folder = tmp_path / "architectures"
    folder.mkdir()
    (folder / "bigram.py").write_text(NETWORK)
    monkeypatch.setattr(architectures, "__path__", [*architectures.__path__, str(folder)])
    network = import_module(f"{architectures.__name__}.bigram")

    def build(settings: Any, vocabulary: Any) -> Any:
        size = {"vocab_size": len(vocabulary), "hidden_size": settings.dim, "gain": settings.gain}
        return network.BigramForCausalLM(network.BigramConfig(**size))

    AutoConfig.register("bigram", network.BigramConfig, exist_ok=True)
    AutoModelForCausalLM.register(network.BigramConfig, network.BigramForCausalLM, exist_ok=True)
    monkeypatch.setitem(SETTINGS, "bigram", BigramSettings)
    row = NetworkArchitecture(BigramSettings, "lm_head", build, lambda config: None)
    monkeypatch.setitem(NETWORKS, "bigram", row)
    yield
    del sys.modules[network.__name__]


@pytest.mark.usefixtures("bigram")
def test_a_new_architecture_is_named_in_yaml_trained_and_scored(tmp_path: Path, command: Any) -> None:
    assert "bigram" in names()
    (tmp_path / "run.yaml").write_text(RUN)
    shape, training = load_config(tmp_path / "run.yaml").models[0].resolve()
    assert (shape.label, shape.size, shape.model_dump()["gain"]) == ("pairs", "2x8", 2.0)
    made = train(TEXT, shape, training, tmp_path / "m", seed=1)
    scores = load_model(tmp_path / "m", device="cpu").score([["a", "b"]], ScoringFrame())
    assert np.exp(scores.log_prob) == pytest.approx([1.0, 1.0, 2 / 3], abs=0.1)
    assert scores.log_prob == pytest.approx(made.score([["a", "b"]], ScoringFrame()).log_prob, abs=1e-6)
    card = (tmp_path / "m" / "README.md").read_text()
    assert "trust_remote_code=True" in card
    assert (tmp_path / "m" / "modeling_bigram.py").read_text().endswith(NETWORK)

    (tmp_path / "text.txt").write_text("a b\n" * 30)
    options = ["--model", "bigram", "--set", "model.gain=3.0", "--set", "training.max_steps=2"]
    done = command("train", tmp_path / "text.txt", "-o", tmp_path / "again", *options)
    assert (done.code, done.err) == (0, "")
    assert load_model(tmp_path / "again", device="cpu").model.config.gain == 3.0
    refused = command("train", tmp_path / "text.txt", "-o", tmp_path / "no", "--model", "bigram", "--set=model.gain=0")
    assert refused.code == 2
    assert "gain" in refused.err
