"""What is asked of a corpus, and the files it is cut into."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from truesource.generator.random_streams import random_state
from truesource.generator.transforms import Transform, parse_transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.height import capped_mean_length
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray
from truesource.grammar.support.errors import InputError

SHARD_SIZE = 50_000  #: sentences
LONG = 1000  #: tokens; `truesource sample` warns of a longer mean length where no range of lengths is asked for

Overlap = Literal["iid", "disjoint", "unique"]
#: how derivations are written: as numbers, all of each; as Penn brackets with treebank labels; not at all
Trees = Literal["ids", "text", "none"]


@dataclass(frozen=True)
class Columns:
    """What a corpus holds besides ``text``, ``n_tokens`` and ``logprob``.

    Raises:
        InputError: ``trees`` is another name.
    """

    trees: Trees = "ids"  #: the derivation of each sentence, see `truesource.generator.trees`
    string_logprob: bool = False  #: log probability of the sentence, all its derivations together; slow
    ids: bool = False  #: the words as numbers of ``symbols.json``
    split: bool = True  #: the name of the split

    def __post_init__(self) -> None:
        if self.trees not in get_args(Trees):
            raise InputError(f"trees is one of {', '.join(get_args(Trees))}, got {self.trees!r}")


@dataclass(frozen=True)
class Plan:
    """All that fixes the bytes of a corpus, besides the grammar.

    ``overlap`` says what splits may share. ``iid``: every sentence is drawn by itself, as the grammar has it. In
    ``disjoint`` splits no sentence of an earlier split occurs (within a split, sentences repeat): the first split is
    i.i.d., a later one follows ``P(. | not in the earlier ones)``. In ``unique`` ones no sentence occurs twice at all:
    the first different sentences of one i.i.d. stream, dealt to the splits at random; frequent sentences are then
    underrepresented, alike in all splits.

    Raises:
        InputError: something asked for cannot be.
    """

    splits: Mapping[str, int]  #: sentences of each
    seed: int
    lengths: LengthRange | None = None
    overlap: Overlap = "iid"
    max_height: int | None = None
    columns: Columns = field(default_factory=Columns)
    shard_size: int = SHARD_SIZE
    transform: Transform | None = None  #: order of the words in the text; trees stay those of the original sentences

    def __post_init__(self) -> None:
        if not self.splits:
            raise InputError("a corpus needs at least one split, such as train")
        for name, n in self.splits.items():
            if not re.fullmatch(r"[A-Za-z0-9_]+", name):
                raise InputError(f"a split is named with letters, digits and _, got {name!r}")
            if n < 1:
                raise InputError(f"the split {name!r} asks for {n} sentences; it needs at least one")
        if self.overlap not in get_args(Overlap):
            raise InputError(f"overlap is one of {', '.join(get_args(Overlap))}, got {self.overlap!r}")
        if self.shard_size < 1:
            raise InputError(f"the shard size is 1 or more, got {self.shard_size}")
        random_state(self.seed)

    def as_record(self) -> dict[str, Any]:
        """For ``record.json``; `from_record` reads it."""
        return {
            "splits": {name: int(n) for name, n in self.splits.items()},
            "seed": self.seed,
            "lengths": None if self.lengths is None else str(self.lengths),
            "overlap": self.overlap,
            "max_height": self.max_height,
            **asdict(self.columns),
            "shard_size": self.shard_size,
            **({} if self.transform is None else {"transform": str(self.transform)}),
        }

    @classmethod
    def from_record(cls, call: Mapping[str, Any]) -> Plan:
        """The plan that ``record.json`` tells of."""
        fields = {name: call[name] for name in ("splits", "seed", "overlap", "max_height", "shard_size")}
        lengths = None if call["lengths"] is None else LengthRange.parse(call["lengths"])
        trees, split = call["trees"], call.get("split", False)  # earlier records: true or false, and no column split
        if isinstance(trees, bool):
            trees = "ids" if trees else "none"
        columns = Columns(trees, call["string_logprob"], call["ids"], split)
        transform = parse_transform(call["transform"]) if "transform" in call else None
        return cls(lengths=lengths, columns=columns, transform=transform, **fields)


@dataclass(frozen=True)
class Shard:
    """One file of a corpus, as planned."""

    split: str
    number: int  #: 0 .. of - 1 within its split
    of: int  #: shards of its split
    sentences: int
    stream: tuple[int, int]  #: numbers of split and shard: the key of its random numbers
    #: blocks of a common stream and (b,) which sentences of each, in place of a stream of its own
    picks: tuple[tuple[int, BoolArray], ...] | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """File name, in the pattern that `datasets` knows."""
        return f"{self.split}-{self.number:05d}-of-{self.of:05d}.parquet"


def plan_shards(splits: Mapping[str, int], shard_size: int) -> list[Shard]:
    """Cut every split into shards of ``shard_size`` sentences, the last one smaller."""
    shards = []
    for i, (split, n) in enumerate(splits.items()):
        of = -(-n // shard_size)
        for k in range(of):
            shards.append(Shard(split, k, of, min(shard_size, n - k * shard_size), (i, k)))
    return shards


def sentences_for(pcfg: PCFG, tokens: int, lengths: LengthRange | None = None, max_height: int | None = None) -> int:
    """How many sentences have ``tokens`` tokens on average, by the exact mean length; at least 1.

    A fixed number of sentences keeps them independent, which stopping at a number of tokens would not.

    Raises:
        InputError: ``tokens`` is below 1, or no sentence can be made.
    """
    if tokens < 1:
        raise InputError(f"asking for {tokens} tokens; a corpus needs at least one")
    mean = mean_length(pcfg, lengths, max_height)
    if not math.isfinite(mean):
        raise InputError("sentences of this grammar have no finite mean length; give sentences, or a length range")
    return max(1, round(tokens / mean))


def mean_length(pcfg: PCFG, lengths: LengthRange | None, max_height: int | None) -> float:
    """Exact mean number of tokens of a sentence, under both conditions.

    Raises:
        InputError: no sentence meets them.
    """
    if max_height is not None:
        return capped_mean_length(pcfg, max_height, lengths)
    if lengths is None:
        return pcfg.exact.mean_length
    return float(np.arange(lengths.high + 1) @ pcfg.exact.length_pmf(lengths.high, lengths))
