"""Splits in which no sentence occurs twice: which sentences of a common stream go where."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from generator.drawing import MOST_DRAWS, POOL, Drawing, Hashes
from generator.plan import Shard
from grammar.errors import InputError
from grammar.parallel import Workers, run_each
from grammar.progress import meter


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


def _picks(places: NDArray[np.int64], block: int) -> tuple[tuple[int, NDArray[np.bool_]], ...]:
    picks = []
    for b in np.unique(places // block).tolist():
        kept = np.zeros(block, dtype=np.bool_)
        kept[places[places // block == b] - b * block] = True
        picks.append((b, kept))
    return tuple(picks)


def _first_occurrences(drawing: Drawing, wanted: int, workers: Workers) -> NDArray[np.int64]:
    """Places in the common stream of its first ``wanted`` different sentences, ascending, (wanted,)."""
    blocks: dict[int, Hashes] = {}
    different = 0
    with meter("finding different sentences", total=wanted) as progress:
        while different < wanted:
            have = len(blocks)
            share = different / (have * drawing.block) if have else 1.0
            more = -(-(wanted - different) // max(1, int(share * drawing.block)))
            blocks.update(run_each(partial(_hash_block, drawing), range(have, have + more), workers))
            stream = np.concatenate([blocks[b] for b in range(len(blocks))])
            first = np.sort(np.unique(stream, return_index=True)[1])
            progress.advance(min(len(first), wanted) - min(different, wanted))
            different = len(first)
            if different < wanted and len(stream) > MOST_DRAWS * wanted:
                raise InputError(
                    f"only {different:,} different sentences in {len(stream):,} draws, {wanted:,} were asked for; ask"
                    " for fewer, or let sentences repeat"
                )
    return np.asarray(first[:wanted], dtype=np.int64)


def _hash_block(drawing: Drawing, block: int) -> tuple[int, Hashes]:
    return block, drawing.hashes_of(drawing.pool(block))
