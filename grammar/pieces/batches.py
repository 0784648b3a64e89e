"""Batches of sentences of pieces that share the work on their words.

Sentences with equally many pieces have unequal numbers of words, so what is computed from their words would be computed
in narrow batches. A group is of several batches; all its next pieces are computed at once, when the first is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from truesource.grammar.inference.batch import BUDGET, Batch, encoded_batches
from truesource.grammar.support.arrays import Int32Array

if TYPE_CHECKING:
    from truesource.grammar.pieces.tables import PieceTables

WIDEST = 256  #: most sentences in a group, except for one batch


class PieceGroup:
    """Sentences of pieces whose distributions are computed together, and kept until each was used.

    Args:
        sentences: piece numbers of each, -1 unknown.
    """

    def __init__(self, sentences: Sequence[Int32Array]) -> None:
        self.sentences = tuple(sentences)
        self._lock = Lock()
        self._of: tuple[object, ...] = ()
        self._tables: PieceTables | None = None
        self._left = 0

    def tables(self, of: tuple[object, ...], fill: Callable[[], PieceTables], used: int) -> PieceTables:
        """Return the distributions, computed by ``fill`` if they are of other settings than ``of`` or all were used.

        Args:
            of: what they depend on in addition to the sentences.
            fill: computes them.
            used: number of sentences whose distributions the caller uses.
        """
        with self._lock:
            if self._tables is None or self._of != of:
                self._tables, self._of, self._left = fill(), of, len(self.sentences)
            result = self._tables
            self._left -= used
            if self._left <= 0:
                self._tables = None
        return result


@dataclass(frozen=True)
class PieceBatch(Batch):
    """Distinct sentences of equally many pieces, and the group that they are of."""

    group: PieceGroup = field(kw_only=True)
    column: int = field(kw_only=True)  #: of the first sentence in the group

    def part(self, start: int, most: int) -> PieceBatch:
        """Return at most ``most`` of the sentences, from number ``start`` on."""
        some = super().part(start, most)
        return PieceBatch(some.words, some.members, group=self.group, column=self.column + start)


def piece_batches(
    encode: Callable[[Sequence[str]], Int32Array], sentences: Sequence[Sequence[str]], pieces: int
) -> list[PieceBatch]:
    """Return sentences in batches, most pieces first; neighbours are one group, whose tables fit the memory budget.

    Args:
        encode: returns the numbers of pieces.
        sentences: of pieces.
        pieces: number of different pieces.

    Raises:
        InputError: a sentence has no pieces.
    """
    row = 8 * (pieces + 1)
    result = []
    work = encoded_batches(encode, sentences, lambda n: row * (n + 1), WIDEST)
    for some in _groups(work, row):
        group = PieceGroup([column for batch in some for column in batch.words.T])
        column = 0
        for batch in some:
            result.append(PieceBatch(batch.words, batch.members, group=group, column=column))
            column += len(batch.members)
    return result


def _groups(work: Sequence[Batch], row: int) -> Iterator[list[Batch]]:
    """Divide batches, most pieces first, into groups."""
    some: list[Batch] = []
    width = 0
    for batch in work:
        wider = width + len(batch.members)
        if some and (wider > WIDEST or row * (len(some[0].words) + 1) * wider > BUDGET):
            yield some
            some, wider = [], len(batch.members)
        some.append(batch)
        width = wider
    if some:
        yield some
