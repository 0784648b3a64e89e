"""A folder of sentences sampled from a model, as `decoding.sample_builder` leaves it.

Reading it needs no torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import numpy as np
from pydantic import AfterValidator, Field, with_config
from typing_extensions import TypedDict

from truesource.generator.columns import as_numbers, read_columns, verify_shards
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import STRICT, Count, FileName, Positive, read_record
from truesource.lmtrain.decoding.settings import Decoding

FORMAT = "truesource samples"
FORMAT_VERSION = 1
SPLIT = "samples"  #: the one split of such a folder
_WHAT, _REMEDY = "the record of these samples", "generate the samples again"


def _decoding(settings: dict[str, str | bool | int | float | None]) -> dict[str, str | bool | int | float | None]:
    Decoding.from_record(settings)
    return settings


@with_config(STRICT)
class SamplingCall(TypedDict):
    """The call that the samples were made by."""

    sentences: Positive
    seed: Annotated[int, Field(ge=0)]
    decoding: Annotated[dict[str, str | bool | int | float | None], AfterValidator(_decoding)]
    shard_size: Positive
    rows: NotRequired[Positive]


@with_config(STRICT)
class ModelOfSamples(TypedDict):
    """The model, and the length condition of the corpus that it was trained on."""

    name: str
    digest: str
    corpus_lengths: NotRequired[str]


@with_config(STRICT)
class Counts(TypedDict):
    """Counts of a shard or of all of them."""

    sentences: Positive
    tokens: Count
    finished: Count
    finished_tokens: Count
    special: Annotated[float, Field(ge=0.0)]
    contexts: Count


@with_config(STRICT)
class SampleShardEntry(Counts):
    """Counts and digest of one file."""

    file: FileName
    bytes: Count
    sha256: str


@with_config(STRICT)
class _SamplesHead(TypedDict):
    """The head of a record, which gives its version."""

    format: Literal["truesource samples"]
    format_version: int


@with_config(STRICT)
class SamplesRecord(_SamplesHead):
    """``record.json``."""

    call: SamplingCall
    model: ModelOfSamples
    device: NotRequired[str]
    versions: NotRequired[dict[str, str]]
    license: NotRequired[str]
    language: NotRequired[str]
    counts: Counts
    shards: list[SampleShardEntry]
    digest: str


def is_sample_folder(path: str | Path) -> bool:
    """Return True if a folder has sentences drawn from a model, not a corpus or something else."""
    try:
        record: Any = read_record(Path(path) / "record.json", Any, remedy=_REMEDY)
    except InputError:
        return False
    return isinstance(record, dict) and record.get("format") == FORMAT


@dataclass(frozen=True)
class SampleFolder:
    """Sentences drawn from a model, in Parquet shards with a card and a record of the call."""

    path: Path  #: the folder
    record: Mapping[str, Any]  #: ``record.json``: the call, the model, digests, versions, counts

    @classmethod
    def load(cls, path: str | Path) -> SampleFolder:
        """Open a finished folder.

        Raises:
            InputError: it is absent, unfinished, damaged, or holds something else.
        """
        path = Path(path)
        if not is_sample_folder(path):
            raise InputError("there are no finished samples of a model here; truesource generate makes some", path)
        head = read_record(path / "record.json", _SamplesHead, what=_WHAT, remedy=_REMEDY)
        if head["format_version"] != FORMAT_VERSION:
            raise InputError(f"expecting format version {FORMAT_VERSION}, got {head['format_version']}", path)
        record = read_record(path / "record.json", SamplesRecord, what=_WHAT, remedy=_REMEDY)
        if sum(shard["sentences"] for shard in record["shards"]) != record["counts"]["sentences"]:
            raise InputError(f"{_WHAT} is damaged: its shards do not add up; {_REMEDY}", path)
        for shard in record["shards"]:
            file = path / "data" / shard["file"]
            if not file.is_file() or file.stat().st_size != shard["bytes"]:
                raise InputError("this file of the samples is missing or damaged; generate them again", file)
        return cls(path, record)

    @property
    def decoding(self) -> Decoding:
        """The way that they were drawn."""
        return Decoding.from_record(self.record["call"]["decoding"])

    @property
    def digest(self) -> str:
        """SHA-256 over the digests of all shards, hexadecimal."""
        return str(self.record["digest"])

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return int(self.record["counts"]["sentences"])

    @property
    def n_finished(self) -> int:
        """Number of sentences that the model ended itself; the others were cut after ``decoding.max_tokens`` tokens."""
        return int(self.record["counts"]["finished"])

    def verify(self) -> None:
        """Compare the digest of every shard with the record.

        Raises:
            InputError: a file has changed.
        """
        verify_shards(
            self.path, self.record["shards"], "the samples are damaged, this file has changed; generate them again"
        )

    def sentences(self, *, cut: bool = True) -> list[list[str]]:
        """Return the words of every sentence; ``cut``: also those that the model did not end."""
        result = []
        for table in self._tables("text", "finished"):
            columns = (table.column(name).to_pylist() for name in ("text", "finished"))
            result += [text.split() for text, finished in zip(*columns, strict=True) if cut or finished]
        return result

    def finished(self) -> BoolArray:
        """Mark the sentences that the model ended itself, (n,)."""
        return np.concatenate([table.column("finished").to_numpy() for table in self._tables("finished")])

    def log_probs(self) -> FloatArray:
        """Return the log probability, (n,), of each sentence under the model itself, with its end if finished, nats."""
        return np.concatenate([as_numbers(table.column("logprob")) for table in self._tables("logprob")])

    def groups(self) -> IntArray:
        """Return the number, (n,), of the beam of each sentence; sentences of one beam are not independent.

        A sentence is a group of its own unless all hypotheses of a beam were kept.
        """
        if self.decoding.keep != "all":
            return np.arange(self.n_sentences)
        return np.concatenate([as_numbers(table.column("group")) for table in self._tables("group")])

    def _tables(self, *columns: str) -> Iterator[Any]:
        for shard in self.record["shards"]:
            yield read_columns(self.path / "data" / shard["file"], list(columns), rows=shard["sentences"])
