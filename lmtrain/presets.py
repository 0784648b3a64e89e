"""Settings that go together and are known to work, for every architecture at two sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.model_registry import MASKED, TAKES


class Preset(NamedTuple):
    """A model and its training that go together."""

    model: ModelConfig
    training: TrainConfig | None  #: None: the model is counted, not trained


#: where the models of the demo differ from each other; causal ones otherwise start from weights of dim ** -0.5
_TINY: dict[str, dict[str, Any]] = {
    "gpt2": {"heads": 4},
    "opt": {"heads": 4},
    "llama": {"heads": 4, "ffn_dim": 344},
    "adaptive": {"heads": 4},
    "lstm": {},
    "gated_cnn": {"layers": 6, "kernel_size": 4},
    "bert": {"heads": 4, "local_start": True},
    "roberta": {"heads": 4, "local_start": True},
    "deberta": {"heads": 4, "local_start": True},
}

_PAPER: dict[str, dict[str, Any]] = {
    "gpt2": {"heads": 8, "ffn_dim": 1024, "max_positions": 1024},
    "opt": {"heads": 8, "ffn_dim": 256, "max_positions": 512, "tie_words": False},
    "llama": {"heads": 8, "ffn_dim": 683, "tie_words": True},
    "adaptive": {"heads": 8, "ffn_dim": 1024},
    "lstm": {"layers": 3, "dim": 512},
    "gated_cnn": {"dim": 256, "kernel_size": 4},
    "bert": {"heads": 8, "ffn_dim": 256, "max_positions": 512},
    "roberta": {"heads": 8, "ffn_dim": 256},
    "deberta": {"heads": 8, "ffn_dim": 256, "max_positions": 512},
}


def _tiny(architecture: str) -> Preset:
    if architecture == "ngram":
        return Preset(ModelConfig(architecture="ngram", order=3), None)
    shape = {"layers": 2, "dim": 128, "dropout": 0.0, **_TINY[architecture]}
    if architecture in MASKED:
        training = TrainConfig(
            epochs=1.0, learning_rate=2e-3, weight_decay=0.05, mask_probability=0.5, mask_probability_end=0.2
        )
        return Preset(ModelConfig(architecture=architecture, **shape), training)
    training = TrainConfig(epochs=1.0, learning_rate=3e-3, warmup_steps=100, weight_decay=0.05)
    return Preset(ModelConfig(architecture=architecture, init_std=0.088, **shape), training)


def _paper(architecture: str) -> Preset:
    if architecture == "ngram":
        return Preset(ModelConfig(architecture="ngram", order=3, smoothing="mle"), None)
    return Preset(
        ModelConfig(architecture=architecture, **{"layers": 8, "dim": 256, "min_count": 5, **_PAPER[architecture]}),
        TrainConfig(
            epochs=1.0,
            batch_sentences=512,
            learning_rate=5e-4,
            warmup_steps=0,
            weight_decay=0.1,
            clip=0.5,
            mask_probability=0.15,
            eval_every=500,
            checkpoint_every=1000,
        ),
    )


PRESETS: dict[str, Callable[[str], Preset]] = {"tiny": _tiny, "paper": _paper}


def preset(name: str, architecture: str = "gpt2") -> Preset:
    """A model and a training to start from.

    Args:
        name: ``tiny``: the models of the demo, two layers (the gated CNN six) of width 128, for minutes on a CPU.
            ``paper``: the models of Jumelet and Zuidema (2023), 8 layers, 8 heads, width 256, feed-forward layers
            of 256 (masked models and OPT) or 1024 (GPT-2), words of 5 occurrences, one epoch, learning rate 5e-4 on
            a cosine, weight decay 0.1, clip 0.5, batches of 512 sentences (``batch_sentences`` 64 and ``accumulation``
            8 are the same in less memory). Positions are as many as give the published numbers of parameters. Llama
            and the models of Meister and Cotterell (2021), an LSTM of 3 layers, a gated CNN and a transformer with
            adaptive softmax, are of about that size: Llama has GPT-2's feed-forward weights in three matrices; the
            LSTM is 512 wide, since three narrow layers hold little; a position of the gated CNN sees 25 tokens, a
            whole sentence of the published corpora. Masked models start from small random weights, as published; on
            corpora much smaller than the published one set ``local_start``. The n-gram model is a trigram model in
            both, smoothed and, as published, unsmoothed.
        architecture: a name in `truesource.lmtrain.model_registry.TAKES`.

    Raises:
        ValueError: there is no such preset or no such architecture.
    """
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; there are {', '.join(PRESETS)}")
    if architecture not in TAKES:
        raise ValueError(f"unknown architecture {architecture!r}; there are {', '.join(TAKES)}")
    return PRESETS[name](architecture)
