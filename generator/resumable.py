"""Making a folder of shards, alone or together with other jobs: a killed run goes on from what it finished.

``.NAME.partial`` holds the shards in ``data/`` and, in ``.work/``, the call, and notes on each finished shard.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from truesource.generator.plan import Shard
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import refuse_existing, remove_leftovers, remove_leftovers_in, replace, write_json
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.parallel import Share, Workers, run_each
from truesource.grammar.support.progress import meter
from truesource.grammar.support.records import holds, read_record

Entries = list[dict[str, Any]]


class Writer(Protocol):
    """Writes the shards of one folder, each to ``data/`` of its partial folder."""

    def finished(self, shard: Shard) -> dict[str, Any] | None:
        """What was recorded of a shard, if its file is still what was written."""

    def write(self, shard: Shard) -> dict[str, Any]:
        """Make a shard, write it and record it; gives ``file``, ``sentences`` and what else the record says of it."""


def place_of(path: Path) -> Path:
    """The partial folder of ``path``."""
    path = path.absolute()
    return path.with_name(f".{path.name}.partial")


@contextmanager
def writing(path: Path, what: str) -> Iterator[None]:
    """Turn a disk that cannot be written to into one sentence about ``what`` is made at ``path``.

    Raises:
        InputError: in place of an `OSError` inside.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(
            f"cannot write the {what}: {reason}; what stood there is untouched,"
            f" and the same call goes on from {place_of(path).name}",
            path,
            code="unwritable",
        ) from error


def refuse_occupied(path: Path, force: bool, what: str) -> None:
    """Stop before a folder that must not be replaced: not empty without ``force``, or not made here at all.

    Raises:
        InputError: there is one; ``what`` says in a word what would replace it.
    """
    refuse_existing(path, force)
    ours = path.is_dir() and not path.is_symlink() and ((path / "record.json").is_file() or not any(path.iterdir()))
    if path.exists() and not ours:
        raise InputError(f"this is not a {what} and will not be replaced; choose another path", path, code="exists")


def is_made(path: Path, record: Mapping[str, Any]) -> bool:
    """Whether the result of this very call stands at ``path``."""
    try:
        there = read_record(path / "record.json", dict[str, Any], remedy="make it again")
    except InputError:
        return False
    return all(there.get(name) == value for name, value in record.items())


def prepare(partial: Path, plan: Mapping[str, Any], *, what: str, keep_other: bool) -> None:
    """Keep a partial folder of the same call; start an empty one otherwise.

    Args:
        partial: the folder.
        plan: of the call.
        what: is made, for messages.
        keep_other: refuse what another call has begun, rather than throw it away, as jobs that share the work must.

    Raises:
        InputError: there is one of another call, and ``keep_other`` is true.
    """
    plan_file = partial / ".work" / "plan.json"
    if not holds(plan_file, plan):
        if partial.exists():
            if keep_other and plan_file.exists():  # without, nothing was begun
                raise InputError(
                    f"holds parts of another {what}{_of_another(plan_file, plan)}; delete it, or repeat the call that"
                    " began it",
                    partial,
                    code="exists",
                )
            shutil.rmtree(partial)
        (partial / "data").mkdir(parents=True)
        write_json(plan_file, plan)


def _of_another(file: Path, plan: Mapping[str, Any]) -> str:
    keys = differing_keys(file, plan)
    return f" ({', '.join(keys)} differ)" if keys else ""


def differing_keys(file: Path, plan: Mapping[str, Any]) -> list[str]:
    """The keys of a plan, or of the record of a call, that have another value in a file; none of a damaged file."""
    try:
        there = read_record(file, dict[str, Any], remedy="make it again")
    except InputError:
        return []
    return [key for key in plan if there.get(key) != plan[key]]


def make_folder(
    path: Path,
    record: Mapping[str, Any],
    *,
    what: str,
    share: Share | None,
    force: bool,
    write: Callable[[Share], Entries | None],
    finish: Callable[[Entries], None],
    keep: bool = False,
    keep_other: bool = False,
) -> bool:
    """Make the folder ``path`` in its partial folder, where the shards of an earlier call with this record are kept.

    Args:
        path: folder to make.
        record: of the call.
        what: is made, for messages, such as ``corpus``.
        share: of a job that writes only some of the shards; the last job to end makes the folder. None: all.
        force: replace what stands at ``path``.
        write: writes the missing shards of a job; gives the entries of all, or None while some are missing.
        finish: given the entries of all shards, writes the rest into the partial folder and settles it (`settle`).
        keep: a folder of this very call that stands at ``path`` is left as it is, as it is between jobs.
        keep_other: refuse what another call has begun, rather than throw it away, as jobs always do.

    Returns:
        Whether the folder is complete; False while shards of other jobs are missing.

    Raises:
        InputError: ``path`` is occupied, the disk is full, or another run is at work on it.
    """

    def complete() -> None:
        entries = write(Share())
        assert entries is not None  # all shards are of this job
        finish(entries)

    with writing(path, what):
        with exclusive(path, wait=share is not None):
            remove_leftovers(path)
            if (keep or share is not None) and is_made(path, record):
                return True
            refuse_occupied(path, force, what)
            if _is_settled(place_of(path), record):
                _move(place_of(path), path)
                return True
            prepare(place_of(path), record, what=what, keep_other=keep_other or share is not None)
            if share is None:
                complete()
                return True
        if write(share) is None:
            return False
        with exclusive(path, wait=True):
            if not is_made(path, record):
                complete()
        return True


def write_missing(
    drawing: Writer, shards: Sequence[Shard], workers: Workers, share: Share, *, doing: str = "sampling sentences"
) -> Entries:
    """Write the shards of this job that are not there yet; give the entries of all that are, in order.

    Args:
        drawing: writes one.
        shards: of all jobs.
        workers: who writes.
        share: of this job.
        doing: names the work beside its progress.
    """
    entries = {shard.name: drawing.finished(shard) for shard in shards}
    own = [shard for k, shard in enumerate(shards) if share.owns(k)]
    missing = [shard for shard in own if entries[shard.name] is None]
    made = len(own) - len(missing)
    with meter(doing, total=sum(shard.sentences for shard in own)) as progress:
        progress.skip(sum(shard.sentences for shard in own) - sum(shard.sentences for shard in missing))
        for entry in run_each(drawing.write, missing, workers):
            entries[entry["file"]] = entry
            made += 1
            progress.advance(entry["sentences"], f"shard {made:,} of {len(own):,}")
    if share.of > 1:  # others may have finished meanwhile
        entries = {s.name: entries[s.name] or drawing.finished(s) for s in shards}
    return [entry for entry in entries.values() if entry is not None]


def settle(partial: Path, path: Path, files: set[str]) -> None:
    """Clear the traces of work and move the finished folder to its place."""
    for file in (partial / "data").iterdir():
        if file.name not in files:
            file.unlink()
    (partial / ".work" / "plan.json").unlink()
    _move(partial, path)


def _is_settled(partial: Path, record: Mapping[str, Any]) -> bool:
    """Whether an earlier process of this call was stopped when it had made everything, and was about to move it."""
    return is_made(partial, record) and not (partial / ".work" / "plan.json").exists()


def _move(partial: Path, path: Path) -> None:
    if (partial / ".work").exists():
        shutil.rmtree(partial / ".work")
    remove_leftovers_in(partial, deep=True)
    replace(partial, path)
