"""Parquet shards of a corpus: one sample, one file, its own seed; a kill leaves no half file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from generator.sampler import Sampler, random_state
from generator.spelling import Spelling, spell
from grammar.errors import InputError
from grammar.files import digest_file

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Shard:
    """One file of a corpus, as planned."""

    split: str
    number: int  #: 0 .. of - 1 within its split
    of: int  #: shards of its split
    sentences: int
    stream: tuple[int, int]  #: numbers of split and shard: the key of its random numbers

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


def write_shard(
    sampler: Sampler, spelling: Spelling, shard: Shard, folder: Path, seed: int, *, trees: bool
) -> dict[str, Any]:
    """Sample one shard and write it into ``folder``; gives what the record says of it.

    The file appears under its name only when complete. Its bytes depend on the grammar, the range, the
    seed and the shard, not on which worker writes it.
    """
    import pyarrow.parquet as pq

    derivations = sampler.draw(shard.sentences, random_state(seed, *shard.stream))
    table = spell(sampler, derivations, spelling, trees=trees)
    target = folder / shard.name
    temporary = folder / f".{shard.name}.{os.getpid()}"
    try:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return {
        "file": shard.name,
        "split": shard.split,
        "sentences": shard.sentences,
        "tokens": int(derivations.n_tokens.sum(dtype=np.int64)),
        "bytes": target.stat().st_size,
        "sha256": digest_file(target),
    }


def read_columns(path: Path, columns: list[str]) -> pyarrow.Table:
    """Some columns of one shard, checksums compared.

    Raises:
        InputError: the file is missing, damaged, or has not these columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, columns=columns, page_checksum_verification=True, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"cannot read this part of the corpus: {reason}; sample it again", path) from error


def overlap(folder: Path, shards: Mapping[str, list[str]], reference: str) -> dict[str, dict[str, float]]:
    """How much of every other split also stands in ``reference``.

    Gives, for each split, ``types`` (share of its different sentences) and ``tokens`` (share of all its
    sentences), both 0 to 1. Memory: the different sentences of one split and one shard of the reference.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    def texts(split: str) -> Iterator[pyarrow.ChunkedArray]:
        for name in shards[split]:
            yield read_columns(folder / name, ["text"]).column("text")

    counted = {}
    for split in shards:
        if split != reference:
            chunks = [chunk for column in texts(split) for chunk in column.chunks]
            counts = pc.value_counts(pa.chunked_array(chunks, type=pa.string()))
            counted[split] = counts.field("values"), counts.field("counts").to_numpy()
    found = {split: np.zeros(len(counts), dtype=bool) for split, (_, counts) in counted.items()}
    for column in texts(reference):
        for split, (values, _) in counted.items():
            found[split] |= pc.is_in(values, value_set=column).to_numpy(zero_copy_only=False)
    return {
        split: {
            "types": float(found[split].mean()),
            "tokens": float(counts[found[split]].sum() / counts.sum()),
        }
        for split, (_, counts) in counted.items()
    }
