"""The folder a corpus grows in, hidden beside its place: a killed run goes on from what stands there.

``.NAME.partial`` holds the shards in ``data/`` and, in ``.work/``, the call, and notes on each finished shard.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from generator.drawing import Drawing
from generator.plan import Shard
from grammar.errors import InputError
from grammar.files import write_json
from grammar.parallel import Share, Workers, run_each
from grammar.progress import meter


def place_of(path: Path) -> Path:
    """Where the corpus ``path`` grows."""
    path = path.absolute()
    return path.with_name(f".{path.name}.partial")


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[None]:
    """Keep other processes from making the same corpus; ``wait`` for them to end, or say that they are there.

    Raises:
        InputError: another run is making it, and ``wait`` is false.
    """
    from filelock import FileLock, Timeout

    path = path.absolute()
    file = path.with_name(f".{path.name}.lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file, timeout=-1 if wait else 0)
    try:
        lock.acquire()
    except Timeout:
        raise InputError("another run is making this corpus now; wait for it, or choose another path", path) from None
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        lock.release()


def prepare(partial: Path, plan: Mapping[str, Any], *, shared: bool) -> None:
    """Keep a partial folder of the same call; start an empty one otherwise.

    Raises:
        InputError: jobs share the work, and there is one of another call.
    """
    plan_file = partial / ".work" / "plan.json"
    try:
        same = json.loads(plan_file.read_text(encoding="utf-8")) == plan
    except (OSError, ValueError):
        same = False
    if not same:
        if partial.exists():
            if shared:
                raise InputError("holds parts of another corpus; delete it, or give all jobs the same call", partial)
            shutil.rmtree(partial)
        (partial / "data").mkdir(parents=True)
        write_json(plan_file, plan)


def write_missing(drawing: Drawing, shards: Sequence[Shard], workers: Workers, share: Share) -> list[dict[str, Any]]:
    """Write the shards of this job that are not there yet; give the entries of all that are, in order."""
    entries = {shard.name: drawing.finished(shard) for shard in shards}
    own = [shard for k, shard in enumerate(shards) if share.owns(k)]
    missing = [shard for shard in own if entries[shard.name] is None]
    with meter("sampling sentences", total=sum(shard.sentences for shard in own)) as progress:
        progress.advance(sum(shard.sentences for shard in own) - sum(shard.sentences for shard in missing))
        for entry in run_each(drawing.write, missing, workers):
            entries[entry["file"]] = entry
            progress.advance(entry["sentences"])
    if share.of > 1:  # others may have finished meanwhile
        entries = {s.name: entries[s.name] or drawing.finished(s) for s in shards}
    return [entry for entry in entries.values() if entry is not None]


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
