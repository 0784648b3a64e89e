"""Settings of an architecture of one's own: those of every model, and whatever its code takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue, SerializerFunctionWrapHandler, model_serializer, model_validator

from truesource.lmtrain.config import ModelConfig


class OwnSettings(ModelConfig):
    """A model whose architecture is code that a person names.

    All keys that are no fields are settings of the code, in the same flat mapping. Nothing is imported or run to make
    these; `truesource.lmtrain.own.factory.completed` compares them with the code.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, JsonValue]

    objective: Literal["causal", "masked"] = Field(  # type: ignore[misc]
        "causal", description="Whether the code predicts a word from those before it, or from all others."
    )
    max_positions: int | None = Field(
        None, ge=3, description="Maximum number of tokens of an input, <bos> (and <eos>) included (default: any)."
    )
    code_digest: str | None = Field(
        None, description="SHA-256 of the file of the code; filled in when the code is imported."
    )
    code_base: Path | None = Field(
        None, exclude=True, description="Folder that a relative file of code starts from (default: the working folder)."
    )

    @model_validator(mode="before")
    @classmethod
    def _leave_out_settings_of_others(cls, values: dict[str, Any]) -> dict[str, Any]:
        """None is left out: a key that a built-in architecture has too is a setting of the code."""
        return values

    @model_validator(mode="after")
    def _settings_are_json(self) -> OwnSettings:
        for name, value in self.settings.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name} must be a finite number, a text, true, false, or a list of these") from error
        return self

    @model_serializer(mode="wrap")
    def _record(self, own: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return own(self)  # type: ignore[no-any-return]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the code."""
        return dict(self.__pydantic_extra__)

    @property
    def longest(self) -> int | None:
        """Maximum number of tokens of an input."""
        return self.max_positions

    @property
    def size(self) -> str:
        """The settings of the code that are numbers, such as ``hidden64-layers2``."""
        numbers = {k: v for k, v in self.settings.items() if isinstance(v, int | float) and not isinstance(v, bool)}
        return "-".join(f"{key}{value:g}" for key, value in numbers.items())

    @property
    def label(self) -> str:
        """Name in tables: that of the class or function, and its size."""
        if self.name is not None:
            return self.name
        known = self.model_copy(update={"architecture": self.architecture.rpartition(":")[2]})
        return re.sub(r"[^\w.-]+", "-", super(OwnSettings, known).label)
