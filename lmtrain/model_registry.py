"""The architectures that can be trained, by name: settings and presets without torch, networks when asked for."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import did_you_mean
from truesource.lmtrain.architectures.settings import DEFAULT, SETTINGS, names
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.own.settings import OwnSettings, find
from truesource.lmtrain.own.shared import MODEL_TYPE
from truesource.lmtrain.references import is_own

if TYPE_CHECKING:
    from truesource.generator.objectives import Objective
    from truesource.lmtrain.architectures.networks import NetworkArchitecture


#: shape of the networks, which the ``presets`` of each architecture change
_SHAPES: dict[str, dict[str, float]] = {
    "tiny": {"layers": 2, "dim": 128, "dropout": 0.0},
    "paper": {"layers": 8, "dim": 256, "min_count": 5},
}
#: causal models of the demo start from weights of dim ** -0.5
_INITIAL: dict[tuple[str, Objective], dict[str, float]] = {("tiny", "causal"): {"init_std": 0.088}}
_PAPER = TrainConfig(
    epochs=1.0,
    batch_sentences=512,
    learning_rate=5e-4,
    warmup_steps=0,
    weight_decay=0.1,
    clip=0.5,
    mask_probability=0.15,
    eval_every=500,
    checkpoint_every=1000,
)
_TRAINING: dict[str, dict[Objective, TrainConfig]] = {
    "tiny": {
        "causal": TrainConfig(epochs=1.0, learning_rate=3e-3, warmup_steps=100, weight_decay=0.05),
        "masked": TrainConfig(
            epochs=1.0, learning_rate=2e-3, weight_decay=0.05, mask_probability=0.5, mask_probability_end=0.2
        ),
        "any-order": TrainConfig(epochs=1.0, learning_rate=2e-3, weight_decay=0.05),
    },
    "paper": {"causal": _PAPER, "masked": _PAPER, "any-order": _PAPER},
}
PRESETS = tuple(_SHAPES)


def settings_class(architecture: str) -> type[ModelConfig]:
    """Return the class of an architecture's settings, which also tells what is known without its network.

    Custom code (``file.py:name``, ``package.module:name``, an entry point of the group
    ``truesource.architectures``) is not imported.

    Raises:
        InputError: there is no such architecture.
    """
    if not isinstance(architecture, str):
        raise InputError(
            f"expecting the name of an architecture, such as 'gpt2', got {reprlib.repr(architecture)}",
            code="bad-setting",
        )
    if architecture in SETTINGS:
        return SETTINGS[architecture]
    if is_own(architecture):
        return OwnSettings
    raise InputError(
        f"unknown architecture {architecture!r}; there are {', '.join(names())}, and code of your own as"
        f" file.py:name{did_you_mean(architecture, names())}",
        code="bad-setting",
    )


def model_settings(architecture: str = DEFAULT, **settings: Any) -> ModelConfig:
    """Return the settings of a model.

    Raises:
        InputError: there is no such architecture, it does not take a setting, or a value is wrong.
    """
    return settings_class(architecture)(architecture=architecture, **settings)


def completed(config: ModelConfig) -> ModelConfig:
    """Complete the settings of custom code by its defaults and digest: it is imported and compared with them.

    Raises:
        InputError: the code cannot be imported, or does not take the settings.
    """
    return find(config).completed(config) if isinstance(config, OwnSettings) else config


def network_architecture(name: str) -> NetworkArchitecture[Any]:
    """Return the architecture of a network; `transformers` knows all of ours from then on.

    Raises:
        ValueError: there is no such network.
    """
    if settings_class(name).counts:
        raise ValueError(f"{name} is not a network; there are {', '.join(network_names())}")
    from truesource.lmtrain.architectures.networks import NETWORKS

    return NETWORKS[name]


def network_architecture_for(config: ModelConfig) -> NetworkArchitecture[Any]:
    """Return the architecture of a model that is a network.

    Raises:
        ValueError: it is not a network.
    """
    if isinstance(config, OwnSettings):
        from truesource.lmtrain.own.architecture import own_architecture

        return own_architecture(config.objective)
    return network_architecture(config.architecture)


def _network_of_type(model_type: object, objective: object) -> NetworkArchitecture[Any] | None:
    """Return the architecture of a network whose ``config.json`` has this ``model_type``; None: it is not known here.

    Of two with one type, such as BERT and diffusion, ``objective`` of the configuration decides, or else the first.
    """
    named = [name for name in network_names() if (settings_class(name).model_type or name) == model_type]
    of_objective = [name for name in named if settings_class(name).objective == objective]
    return network_architecture((of_objective or named)[0]) if named else None


def network_of(config: Any) -> NetworkArchitecture[Any] | None:
    """Return the architecture of a network with a configuration of `transformers`; None: it is not known here."""
    if config.model_type == MODEL_TYPE:
        from truesource.lmtrain.own.architecture import own_architecture

        return own_architecture(config.objective)
    return _network_of_type(config.model_type, getattr(config, "objective", None))


def network_names() -> list[str]:
    """Return the architectures that are networks."""
    return [name for name in names() if not settings_class(name).counts]


def masked_names() -> list[str]:
    """Return the architectures of masked models, any-order models among them."""
    return [name for name in names() if settings_class(name).objective != "causal"]


class Preset(NamedTuple):
    """A model and its training that go together."""

    model: ModelConfig
    training: TrainConfig | None  #: None: the model is counted, not trained


def preset(name: str, architecture: str = DEFAULT, *, objective: Objective = "causal") -> Preset:
    """Return a model and a training to start from.

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
        architecture: a name of `truesource.lmtrain.architectures.settings.names`, or custom code, which has no shape
            here.
        objective: of custom code; other architectures fix theirs.

    Raises:
        InputError: there is no such preset or no such architecture.
    """
    if name not in PRESETS:
        raise InputError(f"unknown preset {name!r}; there are {', '.join(PRESETS)}", code="bad-setting")
    settings = settings_class(architecture)
    if issubclass(settings, OwnSettings):  # of any shape
        return Preset(model_settings(architecture, objective=objective), _TRAINING[name][objective])
    shape_of_preset = settings.presets.get(name, {})
    if settings.counts:
        return Preset(model_settings(architecture, **shape_of_preset), None)
    shape = {**_SHAPES[name], **_INITIAL.get((name, settings.objective), {}), **shape_of_preset}
    return Preset(model_settings(architecture, **shape), _TRAINING[name][settings.objective])


def with_code(model: ModelConfig, base: Path | None) -> ModelConfig:
    """Return the settings; for custom code, with its defaults and the digest of its file, relative to ``base``.

    Raises:
        InputError: the code cannot be imported, or does not take the settings.
    """
    from truesource.lmtrain.model_registry import completed
    from truesource.lmtrain.own.settings import OwnSettings

    return completed(model.model_copy(update={"code_base": base})) if isinstance(model, OwnSettings) else model
