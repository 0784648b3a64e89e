"""Sentences grouped into batches of one length that fit a memory budget, run on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import memory
from truesource.grammar.support.threads import threads

T = TypeVar("T")
BUDGET = 512 * 2**20  #: bytes of charts for one batch
FEW = 300_000  #: words times squared length below which starting threads takes longer than the work
MAX_WIDTH = 64  #: most sentences in a batch: each rule is then one long vector operation, and charts still fit a cache


class TooLongError(InputError):
    """A sentence whose chart does not fit the memory of this machine.

    Args:
        tokens: length of the sentence.
        needed: bytes of its chart.
        number: number of the sentence, from 1; None if it is the only one.
    """

    default_code = "too-long"

    def __init__(self, tokens: int, needed: int, number: int | None = None) -> None:
        which = "the sentence" if number is None else f"sentence {number}"
        super().__init__(
            f"{which} has {tokens:,} tokens: its chart needs {needed / 1e9:,.1f} GB, this machine has"
            f" {(memory() or 0) / 1e9:,.1f} GB; exclude it (bound --longest WORDS), or split it"
        )
        self.tokens, self.needed, self.number = tokens, needed, number

    def __reduce__(self) -> tuple[type[TooLongError], tuple[int, int, int | None]]:
        """Rebuild the error in another process."""
        return type(self), (self.tokens, self.needed, self.number)


class NothingLeftError(InputError):
    """No derivation of the sentence within the allowed part of a chart."""

    default_code = "nothing-left"

    def __init__(self, sentence: Sequence[str]) -> None:
        super().__init__(f"no allowed derivation of the sentence {' '.join(sentence)!r}; allow more")


def require_memory(tokens: int, needed: int, number: int | None = None) -> None:
    """Refuse a chart of ``needed`` bytes before it is allocated.

    Raises:
        TooLongError: the machine has less memory.
    """
    there = memory()
    if there is not None and needed > there:
        raise TooLongError(tokens, needed, number)


@dataclass(frozen=True)
class Batch:
    """Distinct sentences of one length."""

    words: Int32Array  #: (n, W) word numbers, -1 unknown
    members: tuple[tuple[int, ...], ...]  #: for each column, the input sentences equal to it
    ranks: Int32Array | None = None  #: (n, W) when each word becomes known, if neither left to right nor all at once

    def part(self, start: int, most: int) -> Batch:
        """Return at most ``most`` of the sentences, from number ``start`` on."""
        columns = slice(start, start + most)
        ranks = None if self.ranks is None else self.ranks[:, columns]
        return Batch(np.ascontiguousarray(self.words[:, columns]), self.members[columns], ranks)


@dataclass(frozen=True)
class Distributions:
    """The distributions at one position of W distinct sentences of one length."""

    position: int  #: words to the left
    members: tuple[tuple[int, ...], ...]  #: for each row, the input sentences equal to it
    observed: IntArray  #: (W,) observed token: word number, V for the end of the sentence, -1 unknown
    probability: FloatArray  #: (W, V+1) causal, the end of the sentence last; (W, V) masked; impossible rows are zero
    possible: BoolArray  #: (W,) whether the context is possible; rows sum to one, less infinite derivations
    whole: BoolArray  #: (W,) whether the whole sentence has positive probability (and an allowed length)
    log_observed: FloatArray  #: (W,) ln P(observed token), nats, of any size; -inf if impossible
    states: FloatArray  #: (W, S) P(this symbol produces the word | context); times `emission`: P(symbol, word)


def batches(
    encoded: Sequence[Int32Array],
    bytes_per_sentence: Callable[[int], int],
    budget: int,
    widest: int = MAX_WIDTH,
) -> Iterator[Batch]:
    """Group sentences by length, longest first; equal sentences share a column.

    Args:
        encoded: word numbers of each sentence.
        bytes_per_sentence: memory that a sentence of n tokens needs.
        budget: bytes for one batch; a single sentence may exceed it.
        widest: most sentences in a batch.

    Raises:
        TooLongError: a sentence needs more than the machine has.
    """
    places: dict[bytes, list[int]] = {}
    for i, sentence in enumerate(encoded):
        places.setdefault(sentence.tobytes(), []).append(i)
    by_length: dict[int, list[list[int]]] = {}
    for members in places.values():
        by_length.setdefault(len(encoded[members[0]]), []).append(members)
    for n in sorted(by_length, reverse=True):
        groups = by_length[n]
        require_memory(n, bytes_per_sentence(n), min(groups)[0] + 1)
        width = int(np.clip(budget // max(bytes_per_sentence(n), 1), 1, widest))
        for at in range(0, len(groups), width):
            some = groups[at : at + width]
            words = np.stack([encoded[m[0]] for m in some], axis=1).reshape(n, len(some))
            yield Batch(np.ascontiguousarray(words, dtype=np.int32), tuple(tuple(m) for m in some))


def encoded_batches(
    encode: Callable[[Sequence[str]], Int32Array],
    sentences: Sequence[Sequence[str]],
    bytes_per_sentence: Callable[[int], int],
    widest: int = MAX_WIDTH,
) -> list[Batch]:
    """Encode sentences and return them as `batches` that fit the memory budget.

    Raises:
        InputError: a sentence has no tokens.
        TooLongError: a sentence needs more memory than the machine has.
    """
    encoded = [encode(sentence) for sentence in sentences]
    for i, sentence in enumerate(encoded):
        if len(sentence) == 0:
            raise InputError(f"sentence {i + 1} has no tokens; remove it")
    return list(batches(encoded, bytes_per_sentence, BUDGET, widest))


def run(task: Callable[[Batch], T], work: Sequence[Batch], description: str, total: int) -> Iterator[tuple[Batch, T]]:
    """Apply ``task`` to every batch, in threads if there is much work (kernels release the GIL); results in order."""
    if _few(work):
        yield from in_threads(task, work)
        return
    from truesource.grammar.support.printable import meter

    with meter(description, total) as progress:
        for batch, result in in_threads(task, work):
            progress.advance(sum(len(m) for m in batch.members))
            yield batch, result


def in_threads(task: Callable[[Batch], T], work: Sequence[Batch]) -> Iterator[tuple[Batch, T]]:
    """Do what `run` does, without a meter of progress."""
    if _few(work):
        yield from ((batch, task(batch)) for batch in work)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=threads(), prefer="threads", return_as="generator")
    yield from zip(work, parallel(delayed(task)(batch) for batch in work), strict=True)


def _few(work: Sequence[Batch]) -> bool:
    """Return True if starting threads would take longer than the work."""
    return len(work) == 1 or sum(batch.words.size * len(batch.words) ** 2 for batch in work) < FEW
