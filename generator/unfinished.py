"""The folder a corpus grows in, hidden beside its place: a killed run goes on from what stands there.

``.NAME.partial`` holds the shards in ``data/`` and, in ``.work/``, the call and one note per finished shard.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.sampler import Sampler
from generator.shards import Shard, write_shard
from generator.spelling import Spelling
from grammar.files import digest_file, write_json
from grammar.progress import meter


def prepare(partial: Path, plan: Mapping[str, Any]) -> None:
    """Keep a partial folder of the same call; start an empty one otherwise."""
    plan_file = partial / ".work" / "plan.json"
    try:
        same = json.loads(plan_file.read_text(encoding="utf-8")) == plan
    except (OSError, ValueError):
        same = False
    if not same:
        if partial.exists():
            shutil.rmtree(partial)
        (partial / "data").mkdir(parents=True)
        write_json(plan_file, plan)


@dataclass(frozen=True)
class Drawing:
    """What every shard of one corpus is drawn with, and the partial folder it is written to."""

    sampler: Sampler
    spelling: Spelling
    partial: Path
    seed: int
    trees: bool

    def finished(self, shard: Shard) -> dict[str, Any] | None:
        """What was recorded of a shard, if its file is still what was written."""
        try:
            entry: dict[str, Any] = json.loads(self._note(shard).read_text(encoding="utf-8"))
            return entry if digest_file(self.partial / "data" / shard.name) == entry["sha256"] else None
        except (OSError, ValueError, KeyError):
            return None

    def write(self, shard: Shard) -> dict[str, Any]:
        """Draw a shard, write it and record it."""
        entry = write_shard(self.sampler, self.spelling, shard, self.partial / "data", self.seed, trees=self.trees)
        write_json(self._note(shard), entry)
        return entry

    def _note(self, shard: Shard) -> Path:
        return self.partial / ".work" / f"{shard.name}.json"


def write_missing(drawing: Drawing, shards: list[Shard], workers: int) -> list[dict[str, Any]]:
    """Write the shards that are not there yet; give the entries of all, in order."""
    entries = {shard.name: drawing.finished(shard) for shard in shards}
    missing = [shard for shard in shards if entries[shard.name] is None]
    with meter("sampling sentences", total=sum(shard.sentences for shard in shards)) as progress:
        progress.advance(sum(entry["sentences"] for entry in entries.values() if entry is not None))
        for entry in _written(drawing, missing, workers):
            entries[entry["file"]] = entry
            progress.advance(entry["sentences"])
    return [entry for entry in entries.values() if entry is not None]


def _written(drawing: Drawing, shards: list[Shard], workers: int) -> Iterator[dict[str, Any]]:
    if min(workers, len(shards)) <= 1:
        yield from map(drawing.write, shards)
    else:
        from joblib import Parallel, delayed

        pool = Parallel(n_jobs=workers, return_as="generator_unordered")
        yield from pool(delayed(drawing.write)(shard) for shard in shards)


def settle(partial: Path, path: Path, files: set[str]) -> None:
    """Clear the traces of work and move the finished folder to its place."""
    for file in (partial / "data").iterdir():
        if file.name not in files:
            file.unlink()
    shutil.rmtree(partial / ".work")
    if path.exists():
        retired = path.with_name(f".{path.name}.retired")
        if retired.exists():
            shutil.rmtree(retired)
        path.replace(retired)
        try:
            partial.replace(path)
        except BaseException:
            if not path.exists():
                retired.replace(path)
            raise
        shutil.rmtree(retired)
    else:
        partial.replace(path)
