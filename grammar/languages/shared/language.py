"""What a language of known truth is: settings, a grammar, and what to cite."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema

from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.settings import Settings

LARGEST = 2_000_000  #: rules of a language; one of so many takes up to 3 GiB while it is built


def _split(value: Any) -> Any:
    return value.split("+") if isinstance(value, str) else (value,) if isinstance(value, int) else value


def _joined(value: tuple[Any, ...]) -> str:
    return "+".join(map(str, value))


_WRITTEN: dict[str, Any] = {
    "anyOf": [
        {"type": "integer"},
        {"type": "string", "pattern": r"^\d+(\+\d+)*$"},
        {"type": "array", "items": {"type": "integer"}},
    ]
}
#: whole numbers, in text joined by ``+``, such as ``2+3``; a number alone is one of them
Numbers = Annotated[tuple[int, ...], BeforeValidator(_split), PlainSerializer(_joined), WithJsonSchema(_WRITTEN)]


class LanguageSettings(Settings):
    """Parameters of a language. Every one has a default, a range and a description."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)

    @abstractmethod
    def n_rules(self) -> int:
        """Number of rules of the grammar, or more; computed before any memory is taken."""


@dataclass(frozen=True, kw_only=True)
class Language:
    """A family of languages, one for each choice of its settings."""

    title: str  #: what it is, in one line without a full stop
    tests: str  #: what people study with it, in one line
    citation: str  #: publication that it is from
    settings: type[LanguageSettings]
    build: Callable[[Any], GrammarRules]  #: the grammar of settings; symbols and probabilities are all its own
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  #: names for some settings, such as cfg3b
