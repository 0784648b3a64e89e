"""The architectures that can be trained: their settings without torch, their networks when asked for."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

from truesource.lmtrain import architectures
from truesource.lmtrain.architectures import DEFAULT, names
from truesource.lmtrain.config import ModelConfig

if TYPE_CHECKING:
    from truesource.lmtrain.architectures.base import AnyArchitecture, NetworkArchitecture


@cache
def settings_class(architecture: str) -> type[ModelConfig]:
    """The settings that an architecture takes, and what else is known of it without its network.

    Raises:
        ValueError: there is no such architecture.
    """
    if architecture not in names():
        raise ValueError(f"unknown architecture {architecture!r}; there are {', '.join(names())}")
    found: type[ModelConfig] = importlib.import_module(f"{architectures.__name__}.{architecture}.settings").SETTINGS
    return found


def model_settings(architecture: str = DEFAULT, **settings: Any) -> ModelConfig:
    """Settings of a model.

    Raises:
        ValueError: there is no such architecture, it does not take a setting, or a value is wrong.
    """
    return settings_class(architecture)(architecture=architecture, **settings)


@cache
def architecture(name: str) -> AnyArchitecture:
    """An architecture with its network; `transformers` knows it from then on.

    Raises:
        ValueError: there is no such architecture.
    """
    settings_class(name)
    found: AnyArchitecture = importlib.import_module(f"{architectures.__name__}.{name}.model").ARCHITECTURE
    return found


def network_architecture(name: str) -> NetworkArchitecture[Any]:
    """The same of a network.

    Raises:
        ValueError: there is no such network.
    """
    from truesource.lmtrain.architectures.base import NetworkArchitecture

    found = architecture(name)
    if not isinstance(found, NetworkArchitecture):
        raise ValueError(f"{name} is not a network; there are {', '.join(network_names())}")
    return found


def architecture_of(model_type: object) -> AnyArchitecture | None:
    """The architecture whose ``config.json`` has this ``model_type``; None: it is not known here."""
    name = _name_of(model_type)
    return None if name is None else architecture(name)


def network_of(model_type: object) -> NetworkArchitecture[Any] | None:
    """The same of a network."""
    name = _name_of(model_type)
    return None if name is None or settings_class(name).counts else network_architecture(name)


def network_names() -> list[str]:
    """The architectures that are networks."""
    return [name for name in names() if not settings_class(name).counts]


def masked_names() -> list[str]:
    """The architectures of masked models."""
    return [name for name in names() if settings_class(name).objective == "masked"]


def _name_of(model_type: object) -> str | None:
    return next((name for name in names() if (settings_class(name).model_type or name) == model_type), None)
