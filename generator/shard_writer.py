"""One shard of a corpus: its sentences drawn, told apart by their hashes, and written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truesource.generator.arrow_columns import Spelling, spell
from truesource.generator.corpus_record import ShardEntry
from truesource.generator.derivations import Derivations
from truesource.generator.plan import Columns, Shard
from truesource.generator.random_streams import random_state
from truesource.generator.sampler import Sampler
from truesource.generator.transforms import Transform
from truesource.grammar.support.arrays import BoolArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file, write_json
from truesource.grammar.support.records import read_record

POOL = 0x900D  #: key of the stream that all splits of unique sentences are dealt from
MOST_DRAWS = 1000  #: times the sentences wanted, until we give up finding new ones

Hashes = NDArray[np.uint64]


def among(hashes: Hashes, known: Hashes) -> BoolArray:
    """Which of ``hashes`` (n,) are in the sorted ``known``."""
    if len(known) == 0:
        return np.zeros(len(hashes), dtype=np.bool_)
    at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    return np.asarray(known[at] == hashes)


@dataclass(frozen=True)
class Drawing:
    """What every shard of one corpus is drawn with, and the partial folder it is written to.

    The folder holds the shards in ``data/`` and, in ``.work/``, a note and the sentence hashes of each finished one.
    """

    sampler: Sampler
    spelling: Spelling
    columns: Columns
    partial: Path
    seed: int
    block: int  #: sentences of a block of the common stream
    excluded: Hashes | None = None  #: sorted; sentences that may not occur
    transform: Transform | None = None  #: order of the words in the text

    # -- sentences ----------------------------------------------------------------------------------------

    def draw(self, shard: Shard) -> tuple[Derivations, int]:
        """The derivations of a shard, and how many were drawn until none was excluded.

        Raises:
            InputError: nearly all sentences are excluded.
        """
        if shard.picks is not None:
            return Derivations.joined([self.pool(b).take(kept) for b, kept in shard.picks]), shard.sentences
        state = random_state(self.seed, *shard.stream)
        if self.excluded is None:
            return self.sampler.draw(shard.sentences, state), shard.sentences
        parts: list[Derivations] = []
        missing, drawn = shard.sentences, 0
        while missing:
            if drawn > MOST_DRAWS * shard.sentences:
                raise InputError(
                    f"of {drawn:,} sentences drawn for {shard.split}, only {shard.sentences - missing:,} do not stand"
                    " in earlier splits; make those smaller, or let splits overlap"
                )
            some = self.sampler.draw(max(missing, min(shard.sentences, 1000)), state)
            new = ~among(self.hashes_of(some), self.excluded)
            enough = np.cumsum(new) <= missing
            stop = len(new) if enough.all() else int(np.argmin(enough))
            new[stop:] = False
            parts.append(some.take(new))
            missing -= int(new.sum())
            drawn += stop
        return Derivations.joined(parts), drawn

    def pool(self, block: int) -> Derivations:
        """One block of the common stream."""
        return self.sampler.draw(self.block, random_state(self.seed, POOL, block))

    def hashes_of(self, derivations: Derivations) -> Hashes:
        """64 bits (n,) that tell the sentences apart; two of 10 million agree by chance once in 370,000 corpora."""
        from truesource.generator._kernels.text import sentence_hashes

        left, first = self.sampler.left, self.sampler.first_lexical
        return np.asarray(sentence_hashes(derivations.rules, derivations.ends, left, first))

    # -- files --------------------------------------------------------------------------------------------

    def write(self, shard: Shard) -> dict[str, Any]:
        """Draw a shard, write it and record it; gives what the record says of it.

        The file appears under its name only when complete. Its bytes depend on the plan and the shard, not on which
        worker writes it.
        """
        import pyarrow.parquet as pq

        derivations, drawn = self.draw(shard)
        table = spell(self.sampler, derivations, self.spelling, self.columns, self.transform, shard.split)
        target = self.partial / "data" / shard.name
        with _whole(self._work(shard, "hashes")) as temporary:
            temporary.write_bytes(self.hashes_of(derivations).astype("<u8").tobytes())
        plain = [name for name in table.column_names if name != "text"]
        with _whole(target) as temporary:
            pq.write_table(
                table,
                temporary,
                compression="zstd",
                write_page_checksum=True,
                use_dictionary=["split"],  # one word a file
                column_encoding={name: "BYTE_STREAM_SPLIT" for name in plain if name.endswith("logprob")},
            )
        entry = {
            "file": shard.name,
            "split": shard.split,
            "sentences": shard.sentences,
            "tokens": int(derivations.n_tokens.sum(dtype=np.int64)),
            "drawn": drawn,
            "bytes": target.stat().st_size,
            "sha256": digest_file(target),
        }
        write_json(self._work(shard, "json"), entry)
        return entry

    def finished(self, shard: Shard) -> dict[str, Any] | None:
        """What was recorded of a shard, if its file is still what was written."""
        try:
            entry = read_record(self._work(shard, "json"), ShardEntry, remedy="draw it again")
            same = digest_file(self.partial / "data" / shard.name) == entry["sha256"]
        except (OSError, InputError):
            return None
        told = entry["file"], entry["split"], entry["sentences"]
        same = same and told == (shard.name, shard.split, shard.sentences)
        return dict(entry) if same and self._work(shard, "hashes").exists() else None

    def hashes(self, shard: Shard) -> Hashes:
        """Of the sentences of a shard, in order; drawn once more where another job has not written them yet."""
        try:
            found = np.fromfile(self._work(shard, "hashes"), dtype="<u8").astype(np.uint64)
        except OSError:
            found = np.empty(0, dtype=np.uint64)
        return found if len(found) == shard.sentences else self.hashes_of(self.draw(shard)[0])

    def _work(self, shard: Shard, ending: str) -> Path:
        return self.partial / ".work" / f"{shard.name}.{ending}"


@contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """A temporary name that becomes ``target`` if the block succeeds; `OSError` travels."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
