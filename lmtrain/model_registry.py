"""The architectures that can be trained: their settings without torch, their networks when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.lmtrain.architectures.settings import DEFAULT, SETTINGS, names
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.own.settings import OwnSettings
from truesource.lmtrain.own.shared import MODEL_TYPE
from truesource.lmtrain.references import is_own

if TYPE_CHECKING:
    from truesource.lmtrain.architectures.networks import NetworkArchitecture


def settings_class(architecture: str) -> type[ModelConfig]:
    """The settings that an architecture takes, and what else is known of it without its network.

    Code of one's own (``file.py:name``, ``package.module:name``, an entry point of the group
    ``truesource.architectures``) is not imported.

    Raises:
        ValueError: there is no such architecture.
    """
    if architecture in SETTINGS:
        return SETTINGS[architecture]
    if is_own(architecture):
        return OwnSettings
    raise ValueError(
        f"unknown architecture {architecture!r}; there are {', '.join(names())}, and code of your own as file.py:name"
    )


def model_settings(architecture: str = DEFAULT, **settings: Any) -> ModelConfig:
    """Settings of a model.

    Raises:
        ValueError: there is no such architecture, it does not take a setting, or a value is wrong.
    """
    return settings_class(architecture)(architecture=architecture, **settings)


def completed(config: ModelConfig) -> ModelConfig:
    """The same settings; of code of one's own, which is imported and compared with them, with its defaults and digest.

    Raises:
        InputError: the code cannot be imported, or does not take the settings.
    """
    from truesource.lmtrain.own import factory

    return factory.completed(config) if isinstance(config, OwnSettings) else config


def network_architecture(name: str) -> NetworkArchitecture[Any]:
    """The architecture of a network; `transformers` knows all of ours from then on.

    Raises:
        ValueError: there is no such network.
    """
    if settings_class(name).counts:
        raise ValueError(f"{name} is not a network; there are {', '.join(network_names())}")
    from truesource.lmtrain.architectures.networks import NETWORKS

    return NETWORKS[name]


def network_architecture_for(config: ModelConfig) -> NetworkArchitecture[Any]:
    """The architecture of a model that is a network.

    Raises:
        ValueError: it is none.
    """
    if isinstance(config, OwnSettings):
        from truesource.lmtrain.own.architecture import own_architecture

        return own_architecture(config.objective)
    return network_architecture(config.architecture)


def network_of_type(model_type: object) -> NetworkArchitecture[Any] | None:
    """The architecture of a network whose ``config.json`` has this ``model_type``; None: it is not known here."""
    name = next((name for name in network_names() if (settings_class(name).model_type or name) == model_type), None)
    return None if name is None else network_architecture(name)


def network_of(config: Any) -> NetworkArchitecture[Any] | None:
    """The architecture of a network with a configuration of `transformers`; None: it is not known here."""
    if config.model_type == MODEL_TYPE:
        from truesource.lmtrain.own.architecture import own_architecture

        return own_architecture(config.objective)
    return network_of_type(config.model_type)


def network_names() -> list[str]:
    """The architectures that are networks."""
    return [name for name in names() if not settings_class(name).counts]


def masked_names() -> list[str]:
    """The architectures of masked models."""
    return [name for name in names() if settings_class(name).objective == "masked"]
