"""What splits share, and what keeping them apart does to their distribution.

A split whose sentences may not be in a set S follows ``P(w) / (1 - P(S))``: every sentence's log probability rises by
``-ln(1 - P(S))``, where P is conditioned on length as the corpus is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from truesource.generator.plan import Shard
from truesource.generator.shard_writer import Drawing, Hashes, among
from truesource.grammar.support.arrays import BoolArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import write_json
from truesource.grammar.support.intervals import too_few
from truesource.grammar.support.parallel import Workers, run_each
from truesource.grammar.support.progress import meter
from truesource.grammar.support.records import read_record

EXACT_UP_TO = 20_000  #: different sentences whose probabilities are summed without being asked to

Task = tuple[Shard, BoolArray]  #: a shard, and which of its sentences occur there for the first time


def shares(hashes: Mapping[str, Hashes], reference: str) -> dict[str, dict[str, float]]:
    """How much of every other split also stands in ``reference``.

    Gives, for each split, ``types`` (share of its different sentences) and ``tokens`` (share of all its sentences),
    both 0 to 1.
    """
    known = np.unique(hashes[reference])
    found = {}
    for split, own in hashes.items():
        if split != reference:
            types = among(np.unique(own), known)
            found[split] = {"types": float(types.mean()), "tokens": float(among(own, known).mean())}
    return found


def estimated(drawn: int, kept: int) -> dict[str, Any]:
    """P(S) from ``drawn`` sentences of which ``kept`` were not in S, with the 95% interval of Wilson (1927), if any."""
    from scipy.stats import binomtest  # takes half a second to import

    test = binomtest(drawn - kept, drawn)
    found = test.proportion_ci(0.95, method="wilson")
    return {
        "probability": float(test.statistic),
        "interval": None if too_few(drawn) else [float(found.low), float(found.high)],
        "exact": False,
    }


def new_sentences(drawing: Drawing, shards: Sequence[Shard], known: Hashes) -> tuple[list[Task], Hashes]:
    """Where sentences that are not ``known`` occur for the first time, and all that are known then, sorted."""
    hashes = [drawing.hashes(shard) for shard in shards]
    joined = np.concatenate(hashes)
    first = np.zeros(len(joined), dtype=np.bool_)
    first[np.unique(joined, return_index=True)[1]] = True
    first &= ~among(joined, known)
    cuts = np.cumsum([len(part) for part in hashes])[:-1]
    tasks = list(zip(shards, np.split(first, cuts), strict=True))
    return tasks, np.union1d(known, joined)


def exact_mass(drawing: Drawing, tasks: Sequence[Task], workers: Workers) -> float:
    """P(S), given the length range, of the sentences of some tasks, each summed over all its derivations.

    What is found for a shard is kept in its folder, so a stopped run goes on.
    """
    total = sum(int(new.sum()) for _, new in tasks)
    masses: dict[str, float] = {}
    with meter("exact probability of the sentences of earlier splits", total=total) as progress:
        for name, mass, n in run_each(partial(_shard_mass, drawing), tasks, workers):
            masses[name] = mass
            progress.advance(n)
    return float(np.sum([masses[shard.name] for shard, _ in tasks]))


def _shard_mass(drawing: Drawing, task: Task) -> tuple[str, float, int]:
    shard, new = task
    file = drawing.partial / ".work" / f"{shard.name}.mass.json"
    try:
        mass = read_record(file, float, remedy="sum it again")
    except InputError:
        sampler = drawing.sampler
        derivations = drawing.draw(shard)[0].take(new)
        mass = 0.0
        if len(derivations):
            found = sampler.pcfg.exact.string_log_probs(sampler.sentences(derivations), sampler.lengths)
            mass = float(np.exp(found).sum())
        write_json(file, mass)
    return shard.name, mass, int(new.sum())
