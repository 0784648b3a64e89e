"""Contexts of a model at one position of a text, and which beginnings of segmentations are worth to be followed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class States:
    """Contexts at one position, and what the segmentations that lead there have in sum."""

    context: IntArray  #: (R,)
    log_p: FloatArray  #: (R,) of the text so far, summed over the segmentations that lead here
    mean: FloatArray  #: (R,) mean log P of those segmentations, each with its share
    log_best: FloatArray  #: (R,) log P of the most likely of them
    before: IntArray  #: (R,) state that it comes from, at the source of its last arc
    arc: IntArray  #: (R,) its last arc

    def __len__(self) -> int:
        return len(self.context)

    @classmethod
    def joined(cls, parts: Sequence[States]) -> States:
        """Several sets as one, equal contexts made one."""
        if not parts:
            return cls(*(np.empty(0, dtype) for dtype in _FIELDS.values()))
        return cls(*(np.concatenate([getattr(part, field) for part in parts]) for field in _FIELDS))._merged()

    def where(self, which: BoolArray) -> States:
        """Some of them."""
        return States(*(getattr(self, field)[which] for field in _FIELDS))

    def _merged(self) -> States:
        context, group = np.unique(self.context, return_inverse=True)
        if len(context) == len(self.context):
            return self
        order = np.lexsort((-self.log_best, group))  # the best of each group first
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        top = np.maximum.reduceat(self.log_p[order], starts)
        weight = np.exp(self.log_p[order] - np.repeat(top, np.diff(np.append(starts, len(order)))))
        sums = np.add.reduceat(weight, starts)
        means = np.add.reduceat(weight * self.mean[order], starts) / sums
        first = order[starts]
        return States(
            context, top + np.log(sums), means, self.log_best[first], self.before[first], self.arc[first]
        )  # fmt: skip


_FIELDS = {
    "context": np.int64, "log_p": np.float64, "mean": np.float64, "log_best": np.float64, "before": np.int64,
    "arc": np.int64,
}  # fmt: skip


class Budget:
    """How much probability of beginnings may be left, and what was lost."""

    def __init__(self, spare: float) -> None:
        self._spare = spare  # log of all of it, nats; -inf: none
        self._left = 1.0  # of it
        self.log_dropped = -math.inf

    def lose(self, log_p: FloatArray) -> None:
        """Count beginnings that cannot be followed, whatever they would cost."""
        self.log_dropped = float(np.logaddexp.reduce(np.append(log_p, self.log_dropped)))

    def keeps(self, log_p: FloatArray, share: float) -> IntArray:
        """Numbers of the beginnings to follow; the least probable are left, to a share of what there is to spend."""
        order = np.argsort(log_p, kind="stable")
        log_p = log_p[order]
        at = int(np.searchsorted(log_p, -math.inf, side="right"))  # impossible ones cost nothing
        if self._spare > -math.inf and self._left > 0.0 and at < len(log_p):
            mass = np.logaddexp.accumulate(log_p[at:])
            more = int(np.searchsorted(mass, self._spare + math.log(self._left * share), side="right"))
            if more:
                lost = float(mass[more - 1])
                self._left -= math.exp(lost - self._spare)
                self.log_dropped = float(np.logaddexp(self.log_dropped, lost))
                at += more
        return np.sort(order[at:])
