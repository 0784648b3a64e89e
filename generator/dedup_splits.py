"""Splits in which no sentence occurs twice: which sentences of a common stream go where."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from truesource.generator.plan import Shard
from truesource.generator.shard_writer import MOST_DRAWS, POOL, Drawing, Hashes, among
from truesource.grammar.support.arrays import BoolArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.parallel import Workers, run_each
from truesource.grammar.support.progress import meter

AT_ONCE = 2**24  #: draws whose hashes are held at once


def deal(drawing: Drawing, shards: list[Shard], workers: Workers) -> tuple[list[Shard], dict[str, Any]]:
    """Give each shard its sentences: the first different ones of a stream, in random splits, in the stream's order.

    Returns:
        The shards with ``picks``, and for the record how many sentences were drawn and how many were repetitions.

    Raises:
        InputError: the language has too few sentences.
    """
    wanted = sum(shard.sentences for shard in shards)
    first = _first_occurrences(drawing, wanted, workers)
    splits = list(dict.fromkeys(shard.split for shard in shards))
    sizes = [sum(shard.sentences for shard in shards if shard.split == split) for split in splits]
    of = np.repeat(np.arange(len(splits)), sizes)
    np.random.Generator(np.random.PCG64(np.random.SeedSequence(drawing.seed, spawn_key=(POOL,)))).shuffle(of)
    dealt = []
    for i, split in enumerate(splits):
        places = first[of == i]
        start = 0
        for shard in (shard for shard in shards if shard.split == split):
            dealt.append(replace(shard, picks=_picks(places[start : start + shard.sentences], drawing.block)))
            start += shard.sentences
    drawn = int(first[-1]) + 1
    return dealt, {"drawn": drawn, "repeated": drawn - wanted}


def _picks(places: IntArray, block: int) -> tuple[tuple[int, BoolArray], ...]:
    picks = []
    for b in np.unique(places // block).tolist():
        kept = np.zeros(block, dtype=np.bool_)
        kept[places[places // block == b] - b * block] = True
        picks.append((b, kept))
    return tuple(picks)


def _first_occurrences(drawing: Drawing, wanted: int, workers: Workers) -> IntArray:
    """Places in the common stream of its first ``wanted`` different sentences, ascending, (wanted,).

    What is found does not depend on how many blocks are drawn at once. Raises as `deal`.
    """
    known: Hashes = np.empty(0, dtype=np.uint64)  # sorted
    places: list[IntArray] = []
    have, most = 0, -(-MOST_DRAWS * wanted // drawing.block)  # blocks drawn, and at most
    more = -(-wanted // drawing.block)
    with meter("finding different sentences", total=wanted) as progress:
        while True:
            more = min(more, most - have, max(1, AT_ONCE // drawing.block))
            blocks = dict(run_each(partial(_hash_block, drawing), range(have, have + more), workers))
            stream = np.concatenate([blocks[b] for b in range(have, have + more)])
            found, at = np.unique(stream, return_index=True)
            fresh = ~among(found, known)
            progress.advance(min(len(known) + int(fresh.sum()), wanted) - min(len(known), wanted))
            known = np.sort(np.concatenate([known, found[fresh]]))
            places.append(np.sort(at[fresh]) + have * drawing.block)
            have += more
            missing, new = wanted - len(known), len(places[-1])
            if missing <= 0:
                return np.concatenate(places)[:wanted].astype(np.int64)
            # new sentences only become rarer; ten standard errors above the last rate
            at_best = (new + 10.0 * math.sqrt(new + 10.0)) / more * (most - have)
            if missing > at_best:
                raise InputError(
                    f"only {len(known):,} different sentences in {have * drawing.block:,} draws, {wanted:,} were asked"
                    " for; ask for fewer, or let sentences repeat"
                )
            more = min(2 * have, -(-missing * more // max(1, new)))


def _hash_block(drawing: Drawing, block: int) -> tuple[int, Hashes]:
    return block, drawing.hashes_of(drawing.pool(block))
