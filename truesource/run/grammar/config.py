"""The grammar of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, GetJsonSchemaHandler, field_validator, model_validator
from pydantic.dataclasses import dataclass as checked
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.support.settings import Settings, none_as_null
from truesource.grammar.treebank.binarise import Binarisation
from truesource.run.named_grammar import LANGUAGE, reference_of, with_languages

STRICT = ConfigDict(extra="forbid")


@checked(config=STRICT, frozen=True)
class _SplitMerge(SplitMerge):
    """Split-merge settings with validation."""

    @model_validator(mode="before")
    @classmethod
    def _none_is_a_value(cls, values: Any) -> Any:
        return none_as_null(vars(cls)["__pydantic_fields__"], values)


@checked(config=STRICT, frozen=True)
class _Binarisation(Binarisation):
    """Binarisation settings with validation."""

    @model_validator(mode="before")
    @classmethod
    def _none_is_a_value(cls, values: Any) -> Any:
        return none_as_null(vars(cls)["__pydantic_fields__"], values)


class TiltConfig(Settings):
    """The probability of an event, in sentences of the lengths of the corpus."""

    event: str = Field(description="A count such as that=1, or a regular expression over words.")
    probability: float = Field(gt=0, lt=1, description="Probability of the event; nothing else changes.")

    @field_validator("event")
    @classmethod
    def _is_an_event(cls, text: str) -> str:
        from truesource.grammar.tilting.rewards import event_of

        return event_of(text).spec


class GrammarConfig(Settings):
    """The grammar of a run: induced from the treebank, read from ``file``, or defined by a ``language``."""

    method: Literal["split_merge", "relative_frequency", "file", "language"] = Field(
        "split_merge", description="Estimator of rules from the treebank; file or language: use an existing grammar."
    )
    file: str | None = Field(
        None, description="Grammar file in a format that truesource convert reads, relative to the configuration."
    )
    language: str | None = Field(
        None,
        description="Name of a language (truesource language lists all); its settings are keys next to this one, or as"
        " in dyck:k=2.",
    )
    variant: str | None = Field(
        None, description="A change of that grammar, as in truesource vary: mirror=all, or zipf=1.2,temperature=0.8."
    )
    tilt: TiltConfig | None = Field(None, description="Another probability of an event, as in truesource tilt.")
    binarise: _Binarisation = Field(
        _Binarisation(), description="How nodes with more than two children become binary rules."
    )
    split_merge: _SplitMerge = Field(_SplitMerge(), description="Settings of the method split_merge.")

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON Schema, with the settings of each language."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        place = handler.resolve_ref_schema(schema)
        mapping = dict(place)
        place.clear()
        place.update(with_languages(mapping, handler))
        return schema

    @model_validator(mode="before")
    @classmethod
    def _gather_language(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or values.get(LANGUAGE) is None:
            return values
        fields = {key: value for key, value in values.items() if key in cls.model_fields}
        named = {key: value for key, value in values.items() if key == LANGUAGE or key not in fields}
        return {"method": LANGUAGE, **fields, LANGUAGE: reference_of(named)}

    @field_validator("variant")
    @classmethod
    def _is_a_change(cls, text: str | None) -> str | None:
        if text is not None:
            from truesource.grammar.variants import parse_variant

            parse_variant(text)
        return text

    @model_validator(mode="after")
    def _names_go_with_method(self) -> Self:
        if (self.method == LANGUAGE) != (self.language is not None):
            raise ValueError("method: language and a language go together; remove one, or add the other")
        if (self.method == "file") != (self.file is not None):
            raise ValueError("method: file and a file name go together")
        return self
