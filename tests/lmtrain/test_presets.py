"""Settings: which an architecture takes, and presets with the published numbers of parameters."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from truesource.lmtrain.model_registry import PRESETS, model_settings, network_architecture, network_names, preset


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"architecture": "gpt2", "kv_heads": 2}, "gpt2 takes no kv_heads; leave it out"),
        ({"architecture": "gpt2", "local_start": True}, "gpt2 takes no local_start"),
        ({"architecture": "gpt2", "tie_words": True}, "gpt2 takes no tie_words"),
        ({"architecture": "lstm", "heads": 4}, "lstm takes no heads; leave it out"),
        ({"architecture": "lstm", "max_positions": 64}, "lstm takes no max_positions"),
        ({"architecture": "gated_cnn", "ffn_dim": 64}, "gated_cnn takes no ffn_dim"),
        ({"architecture": "lstm", "kernel_size": 3}, "lstm takes no kernel_size"),
        ({"architecture": "llama", "cutoffs": [8]}, "llama takes no cutoffs"),
        ({"architecture": "roberta", "variant": "v2"}, "roberta takes no variant"),
        ({"architecture": "ngram", "layers": 3}, "ngram takes no layers"),
        ({"architecture": "elman"}, "unknown architecture 'elman'; there are adaptive, bert"),
        ({"architecture": "llama", "heads": 4, "kv_heads": 3}, "heads 4 is not a multiple of kv_heads 3"),
        ({"architecture": "llama", "dim": 12, "heads": 4}, "an even number of dim / heads, not 12/4"),
        ({"architecture": "bert", "dim": 30}, "dim 30 is not a multiple of heads 4"),
        ({"architecture": "deberta", "variant": "v3", "local_start": True}, "does not go with variant v3"),
        ({"architecture": "adaptive", "cutoffs": []}, "cutoffs must be rising"),
        ({"architecture": "adaptive", "cutoffs": [9, 9]}, "cutoffs must be rising"),
        ({"architecture": "adaptive", "cutoffs": [0, 9]}, "cutoffs must be rising"),
        ({"architecture": "gated_cnn", "kernel_size": 1}, "kernel_size"),
    ],
)
def test_settings_that_do_not_fit_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_settings(**settings)


@pytest.mark.parametrize("kind", PRESETS)
@pytest.mark.parametrize("name", network_names())
def test_presets_are_for_every_architecture(kind: str, name: str) -> None:
    assert preset(kind, name).model.architecture == name


class Published:
    """The vocabulary of the published models: 23,921 words and five special tokens."""

    pad, unk, bos, eos, mask = range(5)

    def __len__(self) -> int:
        return 23_921 + 5


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("bert", 9.51),
        ("roberta", 9.41),
        ("deberta", 10.69),
        ("gpt2", 12.70),
        ("opt", 15.55),  # published: 15.6, which no number of positions that models have gives
        ("llama", 12.42),
        ("adaptive", 13.72),
        ("lstm", 18.58),
        ("gated_cnn", 10.35),
    ],
)
def test_parameters_of_the_paper_preset(name: str, millions: float) -> None:
    config = preset("paper", name).model
    with torch.device("meta"):
        network = network_architecture(name).build(config, Published())  # type: ignore[arg-type]
    assert network.num_parameters() / 1e6 == pytest.approx(millions, abs=0.01)


def test_the_demo_keeps_its_settings() -> None:
    """The results of the demo in the README were got with these."""
    gpt2, bert = preset("tiny", "gpt2"), preset("tiny", "bert")
    common = {"layers": 2, "heads": 4, "dim": 128, "dropout": 0.0}
    assert gpt2.model == model_settings(architecture="gpt2", init_std=0.088, **common)  # type: ignore[arg-type]
    assert bert.model == model_settings(architecture="bert", local_start=True, **common)  # type: ignore[arg-type]
    assert (gpt2.training.learning_rate, gpt2.training.warmup_steps, gpt2.training.weight_decay) == (3e-3, 100, 0.05)
    assert (bert.training.learning_rate, bert.training.warmup_steps, bert.training.weight_decay) == (2e-3, 50, 0.05)
    assert (bert.training.mask_probability, bert.training.mask_probability_end) == (0.5, 0.2)
    assert gpt2.training.batch_tokens == bert.training.batch_tokens == 1024


def test_unknown_presets_are_refused_with_the_list() -> None:
    with pytest.raises(ValueError, match="unknown preset 'huge'; there are tiny, paper"):
        preset("huge", "gpt2")
    with pytest.raises(ValueError, match="unknown architecture 'elman'; there are adaptive, bert"):
        preset("tiny", "elman")
