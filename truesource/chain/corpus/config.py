"""The corpus of a configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from truesource.chain.lengths import Lengths
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.settings import Settings


class CorpusConfig(Settings):
    """What is sampled."""

    lengths: Lengths = LengthRange(6, 25)
    splits: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")], Annotated[int, Field(ge=1)]] = {
        "train": 40_000, "dev": 1000, "test": 1000, "eval": 1000
    }  # fmt: skip
    trees: bool = True
    shard_size: int = Field(50_000, ge=1)
    workers: int = Field(1, ge=1)
