"""The grammar of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ConfigDict, model_validator
from pydantic.dataclasses import dataclass as checked

from truesource.grammar.estimate.split_merge.config import SplitMerge
from truesource.grammar.support.settings import Settings
from truesource.grammar.treebank.binarise import Binarisation
from truesource.run.named_grammar import LANGUAGE, reference_of

STRICT = ConfigDict(extra="forbid")


@checked(config=STRICT, frozen=True)
class _SplitMerge(SplitMerge):
    """Its fields, checked."""


@checked(config=STRICT, frozen=True)
class _Binarisation(Binarisation):
    """Its fields, checked."""


class GrammarConfig(Settings):
    """How the grammar is made: induced from the treebank, read from ``file``, or that of a ``language``."""

    method: Literal["split_merge", "relative_frequency", "file", "language"] = "split_merge"
    file: str | None = None  #: a grammar in any format `truesource convert` reads; relative to the configuration
    language: str | None = None  #: of `truesource languages`, with its settings as keys beside it or as a reference
    binarise: _Binarisation = _Binarisation()
    split_merge: _SplitMerge = _SplitMerge()

    @model_validator(mode="before")
    @classmethod
    def _gather_language(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or values.get(LANGUAGE) is None:
            return values
        own = {key: value for key, value in values.items() if key in cls.model_fields}
        named = {key: value for key, value in values.items() if key == LANGUAGE or key not in own}
        return {"method": LANGUAGE, **own, LANGUAGE: reference_of(named)}

    @model_validator(mode="after")
    def _names_go_with_method(self) -> Self:
        if (self.method == LANGUAGE) != (self.language is not None):
            raise ValueError("method: language and a language go together; remove one, or add the other")
        if (self.method == "file") != (self.file is not None):
            raise ValueError("method: file and a file name go together")
        return self
