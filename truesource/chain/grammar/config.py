"""The grammar of a configuration."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import ConfigDict, model_validator
from pydantic.dataclasses import dataclass as checked

from truesource.grammar.estimate.split_merge.config import SplitMerge
from truesource.grammar.settings import Settings
from truesource.grammar.treebank.binarise import Binarisation

STRICT = ConfigDict(extra="forbid")


@checked(config=STRICT, frozen=True)
class _SplitMerge(SplitMerge):
    """Its fields, checked."""


@checked(config=STRICT, frozen=True)
class _Binarisation(Binarisation):
    """Its fields, checked."""


class GrammarConfig(Settings):
    """How the grammar is made: induced from the treebank, or read from ``file``."""

    method: Literal["split_merge", "relative_frequency", "file"] = "split_merge"
    file: str | None = None  #: a grammar in any format `truesource convert` reads; relative to the configuration
    binarise: _Binarisation = _Binarisation()
    split_merge: _SplitMerge = _SplitMerge()

    @model_validator(mode="after")
    def _file_goes_with_method(self) -> Self:
        if (self.method == "file") != (self.file is not None):
            raise ValueError("method: file and a file name go together")
        return self
