"""Sentences grouped into batches of one length that fit a memory budget, run on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from grammar.errors import InputError

T = TypeVar("T")
MAX_WIDTH = 64  #: most sentences in a batch: a rule is then one long vector operation, and charts still fit a cache


@dataclass(frozen=True)
class Batch:
    """Different sentences of one length."""

    words: NDArray[np.int32]  #: (n, W) word numbers, -1 unknown
    members: tuple[tuple[int, ...], ...]  #: for each column, the input sentences that it stands for


def batches(
    encoded: Sequence[NDArray[np.int32]], bytes_per_sentence: Callable[[int], int], budget: int
) -> Iterator[Batch]:
    """Group by length, longest first; equal sentences share a column.

    Args:
        encoded: word numbers of each sentence.
        bytes_per_sentence: memory that a sentence of n tokens needs.
        budget: bytes for one batch; a single sentence may exceed it.
    """
    places: dict[bytes, list[int]] = {}
    for i, sentence in enumerate(encoded):
        places.setdefault(sentence.tobytes(), []).append(i)
    by_length: dict[int, list[list[int]]] = {}
    for members in places.values():
        by_length.setdefault(len(encoded[members[0]]), []).append(members)
    for n in sorted(by_length, reverse=True):
        groups = by_length[n]
        width = int(np.clip(budget // max(bytes_per_sentence(n), 1), 1, MAX_WIDTH))
        for at in range(0, len(groups), width):
            some = groups[at : at + width]
            words = np.stack([encoded[m[0]] for m in some], axis=1).reshape(n, len(some))
            yield Batch(np.ascontiguousarray(words, dtype=np.int32), tuple(tuple(m) for m in some))


def run(task: Callable[[Batch], T], work: Sequence[Batch], description: str, total: int) -> Iterator[tuple[Batch, T]]:
    """Apply ``task`` to every batch in threads (kernels release the GIL); results in order."""
    from joblib import Parallel, delayed

    from grammar.progress import meter

    if len(work) == 1:
        yield work[0], task(work[0])
        return
    with meter(description, total) as progress:
        parallel = Parallel(n_jobs=threads(), prefer="threads", return_as="generator")
        for batch, result in zip(work, parallel(delayed(task)(b) for b in work), strict=True):
            progress.advance(sum(len(m) for m in batch.members))
            yield batch, result


def threads() -> int:
    """Cores this process may use; ``TRUESOURCE_THREADS`` lowers it."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("TRUESOURCE_THREADS", "")
    if asked and not (asked.isdecimal() and int(asked) > 0):
        raise InputError(f"TRUESOURCE_THREADS is {asked!r}, expecting a whole number above 0")
    return min(available, int(asked)) if asked else available
