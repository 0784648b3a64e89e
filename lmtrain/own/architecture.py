"""An architecture of one's own, as training and scoring take one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from truesource.generator.language_model import Objective
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.base import NetworkArchitecture
from truesource.lmtrain.device import torch_device
from truesource.lmtrain.own.checks import check_longest, check_memory, check_reading, check_training
from truesource.lmtrain.own.factory import Factory, find
from truesource.lmtrain.own.hub_network import OwnConfig, random_tokens
from truesource.lmtrain.own.network import HEAD, OwnNetwork
from truesource.lmtrain.own.settings import OwnSettings
from truesource.lmtrain.random_states import kept_random_states
from truesource.lmtrain.tokenizer import SPECIALS, Encoder

_WORDS = 6  #: of the vocabulary that a network is tried with before there is one


@dataclass(frozen=True)
class OwnArchitecture(NetworkArchitecture[OwnSettings]):
    """The code of a person, and what it predicts from."""

    predicts: Objective = "causal"

    @property
    def objective(self) -> Objective:
        """What it predicts from."""
        return self.predicts


def own_architecture(predicts: Objective) -> OwnArchitecture:
    """The architecture of all networks of one's own that have an objective."""
    return OwnArchitecture(OwnSettings, HEAD, build, longest=_longest, predicts=predicts)


def build(settings: OwnSettings, vocabulary: Encoder) -> OwnNetwork:
    """A network with the initial weights of its code, tried on random tokens, on the GPU if there is one.

    Raises:
        InputError: the code cannot be imported or fails, or the network cannot be trained; see
            `truesource.lmtrain.own.checks`.
    """
    special = {"pad_token_id": vocabulary.pad, "bos_token_id": vocabulary.bos, "eos_token_id": vocabulary.eos}
    return _tried(find(settings), settings, len(vocabulary), special)


def try_out(settings: OwnSettings) -> None:
    """Build a network with a small vocabulary, and throw it away; all that `build` refuses is refused.

    Raises:
        InputError: as `build`.
    """
    with kept_random_states():
        special = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
        _tried(find(settings), settings, len(SPECIALS) + _WORDS, special)


def network_of_code(factory: Factory, settings: OwnSettings, size: int, special: dict[str, Any]) -> OwnNetwork:
    """What the code makes, as a network on the GPU if there is one.

    Args:
        factory: the code.
        settings: of the model.
        size: number of tokens.
        special: numbers of the special tokens, as in `OwnConfig`.

    Raises:
        InputError: the code raises, or returns no `torch.nn.Module` (code ``not-module``), or one without parameters
            to train (``no-parameters``).
    """
    settings = factory.completed(settings)
    module = factory.code.call(size, **factory.arguments(settings))
    if not isinstance(module, nn.Module):
        raise InputError(
            f"{factory.code.name} returns a {type(module).__name__}; it must return a torch.nn.Module",
            factory.code.source,
            code="not-module",
        )
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise InputError(f"{factory.code.name} has no parameters to train", factory.code.source, code="no-parameters")
    config = OwnConfig(
        vocab_size=size,
        code=settings.architecture,
        code_digest=settings.code_digest,
        code_settings=settings.settings,
        objective=settings.objective,
        max_positions=settings.max_positions,
        **special,
    )
    network = OwnNetwork(config, module, factory.code)
    moved: OwnNetwork = network.to(torch_device())
    if any(isinstance(parameter, UninitializedParameter) for parameter in module.parameters()):
        moved.eval()(input_ids=random_tokens(size, 1, 2).to(moved.device))  # lazy modules get their shapes
        moved.train()
    return moved


def _tried(factory: Factory, settings: OwnSettings, size: int, special: dict[str, Any]) -> OwnNetwork:
    def make() -> OwnNetwork:
        return network_of_code(factory, settings, size, special)

    network = make()
    with kept_random_states():
        torch.manual_seed(1)  # other weights than those of the first
        check_reading(network)
        check_longest(network)
        check_memory(network)
        check_training(network, make())
    network.train()
    return network


def _longest(config: OwnConfig) -> int | None:
    return config.max_positions
