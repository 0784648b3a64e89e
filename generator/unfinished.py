"""The folder a corpus grows in, hidden beside its place: a killed run goes on from what stands there.

``.NAME.partial`` holds the shards in ``data/`` and, in ``.work/``, the call and one note per finished shard.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
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


def _finished(shard: Shard, partial: Path) -> dict[str, Any] | None:
    """What was recorded of a shard, if its file is still what was written."""
    try:
        entry: dict[str, Any] = json.loads((partial / ".work" / f"{shard.name}.json").read_text(encoding="utf-8"))
        return entry if digest_file(partial / "data" / shard.name) == entry["sha256"] else None
    except (OSError, ValueError, KeyError):
        return None


def _make(sampler: Sampler, spelling: Spelling, shard: Shard, partial: Path, seed: int, trees: bool) -> dict[str, Any]:
    entry = write_shard(sampler, spelling, shard, partial / "data", seed, trees=trees)
    write_json(partial / ".work" / f"{shard.name}.json", entry)
    return entry


def write_missing(
    sampler: Sampler,
    spelling: Spelling,
    shards: list[Shard],
    partial: Path,
    seed: int,
    trees: bool,
    workers: int,
) -> list[dict[str, Any]]:
    """Write the shards that are not there yet; give the entries of all, in order."""
    entries = {shard.name: _finished(shard, partial) for shard in shards}
    missing = [shard for shard in shards if entries[shard.name] is None]
    with meter("sampling sentences", total=sum(shard.sentences for shard in shards)) as progress:
        progress.advance(sum(entry["sentences"] for entry in entries.values() if entry is not None))
        for entry in _made(sampler, spelling, missing, partial, seed, trees, workers):
            entries[entry["file"]] = entry
            progress.advance(entry["sentences"])
    return [entry for entry in entries.values() if entry is not None]


def _made(
    sampler: Sampler,
    spelling: Spelling,
    shards: list[Shard],
    partial: Path,
    seed: int,
    trees: bool,
    workers: int,
) -> Iterator[dict[str, Any]]:
    if min(workers, len(shards)) <= 1:
        for shard in shards:
            yield _make(sampler, spelling, shard, partial, seed, trees)
    else:
        from joblib import Parallel, delayed

        pool = Parallel(n_jobs=workers, return_as="generator_unordered")
        yield from pool(delayed(_make)(sampler, spelling, shard, partial, seed, trees) for shard in shards)


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
