"""Minimum description length of labels given vectors, by online coding (Voita and Titov 2020)."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from truesource.evaluation.measures.bootstrap import Interval
from truesource.evaluation.probing.measures import cross_entropies, mean_intervals
from truesource.evaluation.probing.splits import ProbingSplit
from truesource.evaluation.probing.trainer import ProbeTrainer, Vectors
from truesource.grammar.support.arrays import FloatArray, IntArray

#: shares of the train part after which a new probe is trained
PORTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)


class CodeLength(NamedTuple):
    """Length of the code of the labels of the train part."""

    bits: Interval  #: bits a label
    uniform: float  #: bits a label of a code that gives all labels the same length, log2 of their number
    compression: float  #: ``uniform / bits``


def online_code(
    x: Vectors, targets: FloatArray, split: ProbingSplit, trainer: ProbeTrainer, *, seed: int
) -> CodeLength:
    """Bits to send the labels of the train part, in blocks, to someone who has the vectors.

    Groups (sentences) come in random order, and blocks end where groups do. The first block is sent by a uniform code;
    then a probe is trained on all that was sent, and codes the next block. Soft targets are sent as labels drawn from
    them: the length is the expected one. On the dev part each probe is stopped and its weight decay chosen; its labels
    are not sent.

    Args:
        x: (T, D) vectors of all items.
        targets: (T, C) probability of each label.
        split: of the items.
        trainer: of probes.
        seed: of the order, and of the interval's resampling.
    """
    order, ends = blocks(split.group[split.train], np.random.default_rng([seed, 4]))
    items = split.train[order]
    uniform = math.log2(targets.shape[1])
    bits = np.full(len(items), uniform)
    dev = split.dev
    for start, end in itertools.pairwise(ends):
        sent, block = items[:start], items[start:end]
        probe = trainer(x[sent], targets[sent], x[dev], targets[dev])
        bits[start:end] = cross_entropies(probe.log_probs(x[block]), targets[block]) / math.log(2.0)
    found = mean_intervals({"bits": bits}, split.group[items], seed)["bits"]
    return CodeLength(found, uniform, uniform / found.value)


def blocks(group: IntArray, rng: np.random.Generator) -> tuple[IntArray, list[int]]:
    """Items ordered by a random order of their groups, (N,), and how many are sent after each block."""
    _, number, sizes = np.unique(group, return_inverse=True, return_counts=True)
    place = rng.permutation(len(sizes))
    order = np.argsort(place[number], kind="stable")
    sums = np.cumsum(sizes[np.argsort(place)])
    ends = [int(sums[np.searchsorted(sums, math.ceil(share * len(group)))]) for share in PORTIONS]
    return order, sorted(set(ends))
