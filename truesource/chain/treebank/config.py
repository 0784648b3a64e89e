"""The treebank of a configuration."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass as checked

from truesource.chain.lengths import Lengths
from truesource.grammar.support.settings import Settings
from truesource.grammar.treebank.normalise import Normalisation

STRICT = ConfigDict(extra="forbid")


@checked(config=STRICT, frozen=True)
class _Normalisation(Normalisation):
    """Its fields, checked; the length range is written as text."""

    lengths: Lengths = None


class DatasetSource(Settings):
    """Trees in a column of a dataset that `datasets` can load from disk."""

    path: str
    column: str = "tree"
    split: str | None = None


class TreebankConfig(Settings):
    """Where the trees come from: exactly one of ``embedded``, ``files``, ``nltk`` and ``dataset``."""

    embedded: Literal["english"] | None = None
    sentences: int = Field(4000, ge=1)  #: trees to sample from the embedded grammar, held-out ones included
    files: str | list[str] | None = (
        None  #: Penn bracketings: file, folder, glob, or a list; relative to the configuration
    )
    nltk: str | None = None  #: a corpus that NLTK has installed
    dataset: DatasetSource | None = None
    held_out_files: str | list[str] | None = None  #: trees for held-out likelihood; default: a share of the treebank
    held_out: float = Field(0.05, ge=0.0, lt=0.9)  #: that share, taken at random
    limit: int | None = Field(None, ge=1)  #: use no more trees than this
    normalise: _Normalisation = _Normalisation()

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [name for name in ("embedded", "files", "nltk", "dataset") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of embedded, files, nltk and dataset, got {', '.join(given) or 'none'}")
        for name in ("files", "nltk", "held_out_files"):
            value = getattr(self, name)
            if value is not None and (not value or "" in [*value]):
                raise ValueError(f"{name} is empty; name a treebank there, or leave the key out")
        return self
