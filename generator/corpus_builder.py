"""Making a corpus folder: every shard drawn and written once, in processes, on a cluster, or by several jobs."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from truesource.generator.arrow_columns import Spelling
from truesource.generator.card import corpus_card
from truesource.generator.corpus_record import FORMAT, FORMAT_VERSION
from truesource.generator.dedup_splits import deal
from truesource.generator.plan import Plan, Shard, mean_length, plan_shards
from truesource.generator.resumable import Entries, make_folder, place_of, settle, write_missing
from truesource.generator.sampler import Sampler
from truesource.generator.shard_writer import Drawing, Hashes
from truesource.generator.split_overlap import EXACT_UP_TO, estimated, exact_mass, new_sentences, shares
from truesource.generator.transforms import Transform
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json, write_json, write_text
from truesource.grammar.support.hub_card import ARTIFICIAL, checked_license
from truesource.grammar.support.parallel import Share, Workers


def make_corpus(
    source: PCFG | Sampler,
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
    """Draw the shards of ``plan`` into the folder ``path``; those that stand in its partial folder are kept.

    Args:
        source: the grammar, or a sampler under the conditions of ``plan``.
        plan: what is asked for.
        path: folder to make.
        workers: who draws.
        share: of a job that draws only some of the shards; the last job to end makes the folder. None: all.
        force: replace a corpus that stands at ``path``.
        exact_correction: of disjoint splits, sum the probability of what they exclude however long it takes.
        keep: a corpus of this very call that stands at ``path`` is left as it is, as it is between jobs.
        license: of the corpus, for its card, an SPDX identifier; None: that of the grammar, where it has one.

    Returns:
        Whether the folder is complete; False while shards of other jobs are missing.

    Raises:
        InputError: a bad ``license``, an occupied ``path``, a range without sentences, a full disk, another run at
            work on it.
    """
    if path.name in ("", ".."):
        raise InputError("name the folder to make", path)
    sampler = Sampler(source, plan.lengths, max_height=plan.max_height) if isinstance(source, PCFG) else source
    pcfg = sampler.pcfg
    drawing = Drawing(
        sampler,
        Spelling.of(pcfg),
        plan.columns,
        place_of(path),
        plan.seed,
        plan.shard_size,
        transform=plan.transform,
    )
    record = _call_record(sampler, plan)
    about = _about(pcfg, license)
    making = cache(lambda: _Making(drawing, plan, workers, exact_correction))  # once the partial folder is there
    return make_folder(
        path,
        record,
        what="corpus",
        share=share,
        force=force,
        write=lambda share: making().write(share),
        finish=lambda entries: _finish(making(), entries, {**record, **about}, path),
        keep=keep,
    )


class _Making:
    """The shards of a plan, split after split, with what is known of sentences that may not come again."""

    def __init__(self, drawing: Drawing, plan: Plan, workers: Workers, exact_correction: bool) -> None:
        self.drawing, self.plan, self.workers = drawing, plan, workers
        self.exact_correction = exact_correction
        #: for the record: of the whole corpus, and of each split
        self.found: dict[str, Any] = {}
        self.corrections: dict[str, Any] = {}
        shards = plan_shards(plan.splits, plan.shard_size)
        if plan.overlap == "unique":
            shards, self.found["unique"] = deal(drawing, shards, workers)
        self.shards = shards

    def write(self, share: Share) -> Entries | None:
        """Write the shards of a job; the entries of all, or None while some are missing."""
        if self.plan.overlap != "disjoint":
            entries = write_missing(self.drawing, self.shards, self.workers, share)
            return entries if len(entries) == len(self.shards) else None
        done: Entries = []
        known: Hashes = np.empty(0, dtype=np.uint64)
        mass: float | None = 0.0
        complete = True
        for split, group in groupby(self.shards, lambda shard: shard.split):
            shards = list(group)
            drawing = replace(self.drawing, excluded=known if len(known) else None)
            entries = write_missing(drawing, shards, self.workers, share)
            complete &= len(entries) == len(shards)
            done += entries
            if complete and len(known):
                self.corrections[split] = self._correction(entries, mass)
            if split != self.shards[-1].split:
                tasks, known = new_sentences(drawing, shards, known)
                if complete and mass is not None:
                    mass = self._more_mass(drawing, tasks, known, mass)
        return done if complete else None

    def _more_mass(self, drawing: Drawing, tasks: Sequence[Any], known: Hashes, mass: float) -> float | None:
        wanted = self.exact_correction or len(known) <= EXACT_UP_TO
        if not wanted or self.plan.max_height is not None:
            return None
        return mass + exact_mass(drawing, tasks, self.workers)

    @staticmethod
    def _correction(entries: Entries, mass: float | None) -> dict[str, Any]:
        kept = sum(entry["sentences"] for entry in entries)
        drawn = sum(entry["drawn"] for entry in entries)
        exact: dict[str, Any] = {"probability": mass, "interval": None, "exact": True}
        found = estimated(drawn, kept) if mass is None else exact
        excluded = min(found["probability"], 1.0 - 1e-15)
        return {**found, "drawn": drawn, "log_correction": -math.log1p(-excluded)}


def _finish(making: _Making, entries: Entries, record: dict[str, Any], path: Path) -> None:
    """Write the record and the card; move the folder to its place."""
    partial, pcfg, plan = making.drawing.partial, making.drawing.sampler.pcfg, making.plan
    full = {**record, **_conditions(making.drawing.sampler, plan), **making.found}
    full.update(_summary(making, entries))
    write_json(partial / "symbols.json", making.drawing.spelling.key(pcfg, ids=plan.columns.ids))
    pcfg.save(partial / "grammar.npz", force=True)
    write_json(partial / "record.json", full)
    write_text(partial / "README.md", corpus_card(path.name, full))
    settle(partial, path, {entry["file"] for entry in entries})


def _about(pcfg: PCFG, license: str | None) -> dict[str, str]:  # noqa: A002
    """Licence and language of a corpus, as far as they are known."""
    found = {}
    if license is not None:
        found["license"] = checked_license(license)
    elif isinstance(pcfg.meta.get("license"), str):
        found["license"] = pcfg.meta["license"]
    if "language" in pcfg.meta:  # one of `truesource.grammar.languages`
        found["language"] = ARTIFICIAL
    return found


def _call_record(sampler: Sampler, plan: Plan) -> dict[str, Any]:
    pcfg = sampler.pcfg
    packages = {name: metadata.version(name) for name in ("truesource", "numpy", "pyarrow")}
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "call": {**plan.as_record(), "start": pcfg.symbols[pcfg.start]},
        "grammar": {"digest": pcfg.digest, "sizes": pcfg.sizes()},
        "drawn_by": type(sampler).__name__,
        "versions": {**packages, "python": platform.python_version()},
    }


def _conditions(sampler: Sampler, plan: Plan) -> dict[str, Any]:
    """What the conditions on length and height have to do with the grammar, exactly."""
    lengths = plan.lengths
    condition = None
    if lengths is not None:
        mass = sampler.log_mass
        condition = {"low": lengths.low, "high": lengths.high, "probability": math.exp(mass), "log_probability": mass}
    cap = None
    if plan.max_height is not None:
        cap = {
            "max_height": plan.max_height,
            "probability": math.exp(sampler.log_height_mass),
            "log_probability": sampler.log_height_mass,
            "mean_tokens": mean_length(sampler.pcfg, lengths, plan.max_height),
            "mean_tokens_without": mean_length(sampler.pcfg, lengths, None),
        }
    return {**_transform_record(plan.transform), "condition": condition, "height_cap": cap}


def _transform_record(transform: Transform | None) -> dict[str, Any]:
    """What is exact of a transformed text; nothing of others."""
    if transform is None:
        return {}
    exact = ["sentence", "masked token", *(["causal token"] if transform.has_grammar else [])]
    return {"transform": {"spec": str(transform), "exact": exact, "trees": "original order"}}


def _summary(making: _Making, entries: Entries) -> dict[str, Any]:
    """Counts, overlap and digests for the record."""
    splits = list(making.plan.splits)
    reference = "train" if "train" in splits else splits[0]
    of_split: dict[str, list[Shard]] = {split: [] for split in splits}
    for shard in making.shards:
        of_split[shard.split].append(shard)
    hashes = {s: np.concatenate([making.drawing.hashes(shard) for shard in of_split[s]]) for s in splits}
    overlap = shares(hashes, reference)
    counts: dict[str, Any] = {}
    for split in splits:
        own = [entry for entry in entries if entry["split"] == split]
        counts[split] = {
            "sentences": sum(entry["sentences"] for entry in own),
            "tokens": sum(entry["tokens"] for entry in own),
            "different": len(np.unique(hashes[split])),
            "overlap": overlap.get(split),
            "excluded": making.corrections.get(split),
        }
    digest = digest_json([[entry["file"], entry["sha256"]] for entry in entries])
    return {"splits": counts, "overlap_with": reference, "shards": entries, "digest": digest}
