"""Build a folder of shards, such as a corpus: in processes, on a cluster, or by several jobs.

Every shard is written once, and a killed run resumes after its finished shards. ``.NAME.partial`` holds the shards in
``data/`` and, in ``.work/``, the call, and notes on each finished shard.
"""

from __future__ import annotations

import math
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from typing_extensions import TypedDict

from truesource.generator.abilities import offers, require
from truesource.generator.corpus_card import corpus_card
from truesource.generator.corpus_record import (
    FORMAT,
    FORMAT_VERSION,
    GRAMMAR,
    CorpusCall,
    CorpusRecord,
    ExclusionRecord,
    ShardEntry,
    SplitRecord,
    UniqueRecord,
    call_of,
)
from truesource.generator.plan import Plan, Shard, mean_length, plan_shards, require_room, require_text_room
from truesource.generator.process_sampler import sampler_of
from truesource.generator.sampler import TruthSampler
from truesource.generator.shard_writer import (
    EXACT_UP_TO,
    Hashes,
    ShardSampler,
    Spelling,
    deal,
    estimated,
    exact_mass,
    new_sentences,
    shares,
)
from truesource.generator.strata import Strata
from truesource.grammar.process import Process
from truesource.grammar.support.atomic_files import (
    remove_leftovers,
    remove_leftovers_in,
    replace_path,
    write_json,
    write_text,
)
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json, refuse_occupied
from truesource.grammar.support.hub_card import ARTIFICIAL, checked_license
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.parallel import Share, Workers, run_each
from truesource.grammar.support.printable import meter
from truesource.grammar.support.records import holds, read_record
from truesource.grammar.truth import Truth


class WrittenShard(TypedDict):
    """The entries that the records of all kinds of shards have."""

    file: str
    sentences: int


E = TypeVar("E", bound=WrittenShard)
E_co = TypeVar("E_co", bound=WrittenShard, covariant=True)


class Writer(Protocol[E_co]):
    """A writer of the shards of one folder, each to ``data/`` of its partial folder."""

    def finished(self, shard: Shard) -> E_co | None:
        """Return the record of a shard, if its file is unchanged since it was written."""

    def write(self, shard: Shard) -> E_co:
        """Create a shard, write it and record it; return its record."""


def place_of(path: Path) -> Path:
    """Return the partial folder of ``path``."""
    path = path.absolute()
    return path.with_name(f".{path.name}.partial")


@contextmanager
def writing(path: Path, what: str) -> Iterator[None]:
    """Turn an error of a disk that is not writable into one sentence about ``what`` at ``path``.

    Raises:
        InputError: in place of an `OSError` inside.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(
            f"cannot write the {what}: {reason}; existing files are untouched,"
            f" and the same call resumes from {place_of(path).name}",
            path,
            code="unwritable",
        ) from error


def is_made(path: Path, record: Mapping[str, object]) -> bool:
    """Return True if the result of this call is at ``path``."""
    try:
        there = read_record(path / "record.json", dict[str, object], remedy="regenerate it")
    except InputError:
        return False
    return all(there.get(name) == value for name, value in record.items())


def prepare(partial: Path, plan: Mapping[str, object], *, what: str, keep_other: bool) -> None:
    """Keep a partial folder of the same call; otherwise start with an empty one.

    Args:
        partial: the folder.
        plan: plan of the call.
        what: name of the result, for messages.
        keep_other: refuse a partial folder of another call instead of deleting it, as jobs that share the work must.

    Raises:
        InputError: there is one of another call, and ``keep_other`` is true.
    """
    plan_file = partial / ".work" / "plan.json"
    if not holds(plan_file, plan):
        if partial.exists():
            if keep_other and plan_file.exists():  # without it, nothing was begun
                keys = differing_keys(plan_file, plan)
                differ = f" ({', '.join(keys)} differ)" if keys else ""
                raise InputError(
                    f"it holds parts of another {what}{differ}; delete it, or repeat the call that began it",
                    partial,
                    code="exists",
                )
            shutil.rmtree(partial)
        (partial / "data").mkdir(parents=True)
        write_json(plan_file, plan)


def differing_keys(file: Path, plan: Mapping[str, object]) -> list[str]:
    """Return keys of a plan, or of a call's record, whose value differs in a file; none of a damaged file."""
    try:
        there = read_record(file, dict[str, object], remedy="regenerate it")
    except InputError:
        return []
    return [key for key in plan if there.get(key) != plan[key]]


def make_folder(
    path: Path,
    record: Mapping[str, object],
    *,
    what: str,
    share: Share | None,
    force: bool,
    write: Callable[[Share], list[E] | None],
    finish: Callable[[list[E]], None],
    keep: bool = False,
    keep_other: bool = False,
) -> bool:
    """Build the folder ``path`` in its partial folder, which keeps the shards of an earlier call with this record.

    Args:
        path: folder to create.
        record: record of the call.
        what: name of the result, for messages, such as ``corpus``.
        share: share of a job that writes only some of the shards; the last job completes the folder. None: all.
        force: replace an existing folder at ``path``.
        write: writes the missing shards of a job; returns the entries of all, or None while some are missing.
        finish: given the entries of all shards, writes the rest into the partial folder and settles it (`settle`).
        keep: leave an existing result of this call at ``path`` unchanged, as between jobs.
        keep_other: refuse a partial folder of another call instead of deleting it, as jobs always do.

    Returns:
        Whether the folder is complete; False while shards of other jobs are missing.

    Raises:
        InputError: ``path`` is occupied, the disk is full, or another run is at work on it.
    """

    def complete() -> None:
        entries = write(Share())
        assert entries is not None  # all shards belong to this job
        finish(entries)

    with writing(path, what):
        with exclusive(path, wait=share is not None):
            remove_leftovers(path)
            if (keep or share is not None) and is_made(path, record):
                return True
            refuse_occupied(path, force, what, "record.json")
            partial = place_of(path)
            if is_made(partial, record) and not (partial / ".work" / "plan.json").exists():  # killed before the move
                _move(partial, path)
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
    drawing: Writer[E], shards: Sequence[Shard], workers: Workers, share: Share, *, doing: str = "sampling sentences"
) -> list[E]:
    """Write the missing shards of this job; return the entries of all existing ones, in order.

    Args:
        drawing: writer of a shard.
        shards: shards of all jobs.
        workers: processes or cluster.
        share: share of this job.
        doing: name of the work next to its progress.
    """
    entries = {shard.name: drawing.finished(shard) for shard in shards}
    shards_of_job = [shard for k, shard in enumerate(shards) if share.owns(k)]
    missing = [shard for shard in shards_of_job if entries[shard.name] is None]
    written = len(shards_of_job) - len(missing)
    with meter(doing, total=sum(shard.sentences for shard in shards_of_job)) as progress:
        progress.skip(sum(shard.sentences for shard in shards_of_job) - sum(shard.sentences for shard in missing))
        for entry in run_each(drawing.write, missing, workers):
            entries[entry["file"]] = entry
            written += 1
            progress.advance(entry["sentences"], f"shard {written:,} of {len(shards_of_job):,}")
    if share.of > 1:  # others may have finished meanwhile
        entries = {s.name: entries[s.name] or drawing.finished(s) for s in shards}
    return [entry for entry in entries.values() if entry is not None]


def settle(partial: Path, path: Path, files: set[str]) -> None:
    """Remove the traces of work and move the finished folder to its path."""
    for file in (partial / "data").iterdir():
        if file.name not in files:
            file.unlink()
    (partial / ".work" / "plan.json").unlink()
    _move(partial, path)


def _move(partial: Path, path: Path) -> None:
    if (partial / ".work").exists():
        shutil.rmtree(partial / ".work")
    remove_leftovers_in(partial, deep=True)
    replace_path(partial, path)


def make_corpus(
    source: Truth | TruthSampler,
    plan: Plan,
    path: Path,
    *,
    workers: Workers,
    share: Share | None = None,
    force: bool = False,
    exact_correction: bool = False,
    keep: bool = False,
    license: str | None = None,  # noqa: A002
) -> bool:
    """Sample the shards of ``plan`` into the folder ``path``; existing ones in its partial folder are kept.

    Args:
        source: the grammar or process, or a sampler under the conditions of ``plan``.
        plan: the request.
        path: folder to create.
        workers: processes or cluster.
        share: share of a job that samples only some of the shards; the last job completes the folder. None: all.
        force: replace an existing corpus at ``path``.
        exact_correction: for disjoint splits, sum the probability of excluded sentences however long it takes.
        keep: leave an existing corpus of this call at ``path`` unchanged, as between jobs.
        license: licence of the corpus, for its card, an SPDX identifier; None: the licence of the grammar, if any.

    Returns:
        Whether the folder is complete; False while shards of other jobs are missing.

    Raises:
        InputError: an invalid ``license``, an occupied ``path``, a range without sentences, a full disk, another run at
            work on it; or ``plan`` needs trees, a highest tree, or another order of words from a process.
    """
    if path.name in ("", ".."):
        raise InputError("this path has no name; use a folder name", path)
    require_room(plan.splits, plan.shard_size, path)
    if isinstance(source, TruthSampler):
        sampler = source
    else:
        sampler = sampler_of(source, plan.lengths, max_height=plan.max_height)
    truth = sampler.truth
    plan = _without_trees(truth, plan)
    require_text_room(truth, plan, path)
    drawing = ShardSampler(
        sampler, Spelling.of(truth), plan.columns, place_of(path), plan.seed, plan.shard_size, transform=plan.transform
    )
    record = _call_record(sampler, plan)
    described = _described(record, truth, license)
    making = cache(lambda: _CorpusInProgress(drawing, plan, workers, exact_correction))  # after the partial folder
    return make_folder(
        path,
        record,
        what="corpus",
        share=share,
        force=force,
        write=lambda share: making().write(share),
        finish=lambda entries: _finish(making(), entries, described, path),
        keep=keep,
    )


def _without_trees(truth: Truth, plan: Plan) -> Plan:
    """Return the plan of a corpus of a truth: without trees for a process."""
    if offers(truth, "parses"):
        return plan
    if plan.transform is not None:
        require(truth, "parses", "another order of words (transform)")
    if plan.columns.trees == "text":
        require(truth, "parses", "a corpus with bracketed trees")
    return replace(plan, columns=replace(plan.columns, trees="none"))


class _CorpusInProgress:
    """The shards of a plan, split after split, and the sentences that must not recur."""

    def __init__(self, drawing: ShardSampler, plan: Plan, workers: Workers, exact_correction: bool) -> None:
        self.drawing, self.plan, self.workers = drawing, plan, workers
        self.exact_correction = exact_correction
        self.unique: UniqueRecord | None = None
        self.corrections: dict[str, ExclusionRecord] = {}  #: of the splits that exclude earlier ones
        shards = plan_shards(plan.splits, plan.shard_size)
        if plan.overlap == "unique":
            shards, self.unique = deal(drawing, shards, workers)
        elif plan.stratified:
            self.drawing = replace(drawing, strata=Strata.of(drawing.sampler.truth, plan, shards))
        self.shards = shards

    def write(self, share: Share) -> list[ShardEntry] | None:
        """Write the shards of a job; return the entries of all, or None while some are missing."""
        if self.plan.overlap != "disjoint":
            entries = write_missing(self.drawing, self.shards, self.workers, share)
            return entries if len(entries) == len(self.shards) else None
        done: list[ShardEntry] = []
        earlier: Hashes = np.empty(0, dtype=np.uint64)
        mass: float | None = 0.0
        complete = True
        for split, group in groupby(self.shards, lambda shard: shard.split):
            shards = list(group)
            drawing = replace(self.drawing, excluded=earlier if len(earlier) else None)
            entries = write_missing(drawing, shards, self.workers, share)
            complete &= len(entries) == len(shards)
            done += entries
            if complete and len(earlier):
                self.corrections[split] = self._correction(entries, mass)
            if split != self.shards[-1].split:
                tasks, earlier = new_sentences(drawing, shards, earlier)
                sum_exactly = (self.exact_correction or len(earlier) <= EXACT_UP_TO) and self.plan.max_height is None
                if complete and mass is not None:
                    mass = mass + exact_mass(drawing, tasks, self.workers) if sum_exactly else None
        return done if complete else None

    @staticmethod
    def _correction(entries: Sequence[ShardEntry], mass: float | None) -> ExclusionRecord:
        allowed = sum(entry["sentences"] for entry in entries)
        sampled = sum(entry["drawn"] for entry in entries)
        probability, interval = estimated(sampled, allowed) if mass is None else (mass, None)
        return {
            "probability": probability,
            "interval": interval,
            "exact": mass is not None,
            "drawn": sampled,
            "log_correction": -math.log1p(-min(probability, 1.0 - 1e-15)),
        }


def _finish(making: _CorpusInProgress, entries: list[ShardEntry], record: CorpusCall, path: Path) -> None:
    """Write the record and the card; move the folder to its place."""
    partial, truth, plan = making.drawing.partial, making.drawing.sampler.truth, making.plan
    _add_conditions(record, making.drawing.sampler, plan)
    if making.unique is not None:
        record["unique"] = making.unique
    symbols = making.drawing.spelling.key(truth, ids=plan.columns.ids)
    counts, reference = _counts(making, entries)
    full: CorpusRecord = {
        **record,
        "splits": counts,
        "overlap_with": reference,
        "shards": entries,
        "digest": digest_json([[entry["file"], entry["sha256"]] for entry in entries]),
        "symbols_digest": digest_json(symbols),
    }
    write_json(partial / "symbols.json", symbols)
    if not isinstance(truth, Process) or truth.has_file:
        truth.save(partial / GRAMMAR, force=True)
    write_json(partial / "record.json", full)
    write_text(partial / "README.md", corpus_card(path.name, full))
    settle(partial, path, {entry["file"] for entry in entries})


def _described(call: CorpusCall, truth: Truth, license: str | None) -> CorpusCall:  # noqa: A002
    """Return the record of a call with the licence and language of the corpus, as far as known."""
    result: CorpusCall = {**call}
    if license is not None:
        result["license"] = checked_license(license)
    elif isinstance(truth.meta.get("license"), str):
        result["license"] = truth.meta["license"]
    if "language" in truth.meta:  # one of `truesource.grammar.languages`
        result["language"] = ARTIFICIAL
    return result


def _call_record(sampler: TruthSampler, plan: Plan) -> CorpusCall:
    truth = sampler.truth
    packages = {name: metadata.version(name) for name in ("truesource", "numpy", "pyarrow")}
    record: CorpusCall = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "call": call_of(plan),
        "grammar": {"digest": truth.digest, "sizes": truth.sizes()},
        "drawn_by": type(sampler).__name__,
        "versions": {**packages, "python": platform.python_version()},
    }
    if isinstance(truth, Process):
        record["grammar"]["process"] = truth.name
    else:
        pcfg = require(truth, "parses", "a start symbol")
        record["call"]["start"] = pcfg.symbols[pcfg.start]
    return record


def _add_conditions(record: CorpusCall, sampler: TruthSampler, plan: Plan) -> None:
    """Add the transform, and exact numbers on the conditions on length and height under the grammar."""
    lengths = plan.lengths
    if plan.transform is not None:  # what is exact for the transformed text
        of_grammar = plan.transform.has_grammar
        record["transform"] = {
            "spec": str(plan.transform),
            "exact": ["sentence", "masked token", "causal token"] if of_grammar else ["sentence", "masked token"],
            "trees": "original order",
        }
    record["condition"] = record["height_cap"] = None
    if lengths is not None:
        low, high, mass = lengths.low, lengths.high, sampler.log_mass
        record["condition"] = {"low": low, "high": high, "probability": math.exp(mass), "log_probability": mass}
    if plan.max_height is not None:
        record["height_cap"] = {
            "max_height": plan.max_height,
            "probability": math.exp(sampler.log_height_mass),
            "log_probability": sampler.log_height_mass,
            "mean_tokens": mean_length(sampler.truth, lengths, plan.max_height),
            "mean_tokens_without": mean_length(sampler.truth, lengths, None),
        }


def _counts(making: _CorpusInProgress, entries: Sequence[ShardEntry]) -> tuple[dict[str, SplitRecord], str]:
    """Return the counts of the splits, and the split that the others are compared with."""
    splits = list(making.plan.splits)
    reference = "train" if "train" in splits else splits[0]
    of_split: dict[str, list[Shard]] = {split: [] for split in splits}
    for shard in making.shards:
        of_split[shard.split].append(shard)
    hashes = {s: np.concatenate([making.drawing.hashes(shard) for shard in of_split[s]]) for s in splits}
    overlap = shares(hashes, reference)
    counts: dict[str, SplitRecord] = {}
    for split in splits:
        entries_of = [entry for entry in entries if entry["split"] == split]
        counts[split] = {
            "sentences": sum(entry["sentences"] for entry in entries_of),
            "tokens": sum(entry["tokens"] for entry in entries_of),
            "different": len(np.unique(hashes[split])),
            "overlap": overlap.get(split),
            "excluded": making.corrections.get(split),
        }
        if making.drawing.strata is not None:
            counts[split]["with_event"] = sum(making.drawing.strata.counts[shard.stream] for shard in of_split[split])
    return counts, reference
