"""The most likely segmentation of a text under a model: branch and bound from the best of a beam (Geh et al. 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.tokenisation.estimators.blocks import arc_ends
from truesource.evaluation.tokenisation.estimators.estimate import Document
from truesource.evaluation.tokenisation.estimators.rows import extend
from truesource.evaluation.tokenisation.estimators.segmentations import check_numbers
from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.evaluation.tokenisation.settings import EstimatorSettings
from truesource.evaluation.tokenisation.window import reader
from truesource.generator.language_model import IncrementalScorer, TokenisedModel
from truesource.grammar.support.arrays import IntArray

BATCH = 64  #: beginnings that go on at once


@dataclass(frozen=True)
class MostLikelySegmentation:
    """A segmentation of a text."""

    arcs: IntArray  #: of the document's lattice
    log_p: float  #: nats; -inf where the model gives probability zero to all segmentations found
    proven: bool  #: whether no segmentation that fits the model's window is more likely
    steps: int  #: token-steps of the model


@dataclass(frozen=True)
class _Beginning:
    """A segmentation of the beginning of a text; its last piece may not have been read yet."""

    log_p: float  #: of the pieces so far, the last included
    arcs: tuple[int, ...]
    context: int  #: before the last piece


def most_likely_segmentation(
    model: TokenisedModel, document: Document, settings: EstimatorSettings
) -> MostLikelySegmentation:
    """The segmentation of the largest P, proven so if at most ``settings.most_prefixes`` prefixes must be followed.

    A beam of ``settings.particles`` segmentations, character after character, and the canonical tokenisation give a
    first answer. Then every beginning whose P is larger than that of the answer goes on, depth first; a beginning
    cannot become more likely, so when none is left the answer is proven. How many there are grows exponentially with
    the text.

    Raises:
        InputError: the model's window is too short for the canonical tokenisation.
    """
    scorer = reader(model, document)
    search = _Search(scorer, document.lattice, model.pieces.inventory.ids[document.lattice.piece])
    search.follow(document.best)
    search.beam(settings.particles)
    proven = search.bound(settings.most_prefixes)
    return MostLikelySegmentation(np.array(search.arcs, dtype=np.int64), search.log_p, proven, scorer.steps)


class _Search:
    """The best segmentation found so far, and ways to find better ones."""

    def __init__(self, scorer: IncrementalScorer, lattice: Lattice, tokens: IntArray) -> None:
        self.arcs: tuple[int, ...] = ()
        self.log_p = -math.inf
        self._scorer, self._tokens, self._n = scorer, tokens, lattice.n
        self._stop = arc_ends(lattice).tolist()
        by_source = np.argsort(lattice.source, kind="stable")
        self._leaving = np.split(by_source, np.searchsorted(lattice.source[by_source], np.arange(1, lattice.n + 1)))
        self._start = scorer.begin()

    def follow(self, arcs: IntArray) -> None:
        """Score one segmentation."""
        context = np.array([self._start])
        log_p = 0.0
        for arc in arcs.tolist():
            token = self._tokens[[arc]]
            log_p += float(self._scorer.log_prob(context, token)[0])
            context = extend(self._scorer, context, token)
        self._offer([_Beginning(log_p, tuple(arcs.tolist()), -1)], context)

    def beam(self, width: int) -> None:
        """Go through the text by the ``width`` likeliest segmentations of each beginning."""
        waiting: list[list[_Beginning]] = [[] for _ in range(self._n + 1)]
        waiting[0].append(_Beginning(0.0, (), self._start))
        for position in range(self._n + 1):
            some = sorted(waiting[position], key=lambda x: -x.log_p)[:width]
            waiting[position] = []
            for new in self._go_on(some):
                waiting[self._stop[new.arcs[-1]]].append(new)
            self._keep([x for later in waiting for x in later])

    def bound(self, most: int) -> bool:
        """Follow every prefix that may lead to a better segmentation; false when there are more than ``most``."""
        open_ = [_Beginning(0.0, (), self._start)]
        seen: dict[tuple[int, int], float] = {}  # the best way to each context and position
        while open_:
            some = [open_.pop() for _ in range(min(BATCH, len(open_)))]
            some = [x for x in some if x.log_p > self.log_p]
            most -= len(some)
            if most < 0:
                return False
            found = self._go_on(some, seen)
            open_ = [x for x in open_ if x.log_p > self.log_p]
            open_ += sorted((x for x in found if x.log_p > self.log_p), key=lambda x: (self._reach(x), x.log_p))
            self._keep(open_)
        return True

    def _go_on(self, some: list[_Beginning], seen: dict[tuple[int, int], float] | None = None) -> list[_Beginning]:
        """All ways to go on by one piece; segmentations that are at the end of the text are offered instead."""
        if not some:
            return []
        read = [x for x in some if x.arcs]
        context = np.full(len(some), self._start)
        context[[bool(x.arcs) for x in some]] = extend(
            self._scorer, np.array([x.context for x in read], dtype=np.int64), self._tokens[[x.arcs[-1] for x in read]]
        )
        ended = np.array([self._reach(x) == self._n for x in some])
        self._offer([x for x, end in zip(some, ended, strict=True) if end], context[ended])
        alive = []
        for x, at in zip(some, context.tolist(), strict=True):
            key = (at, self._reach(x))
            if key[1] < self._n and (seen is None or x.log_p > seen.get(key, -math.inf)):
                alive.append((x, at))
                if seen is not None:
                    seen[key] = x.log_p
        if not alive:
            return []
        arcs = [self._leaving[self._reach(x)] for x, _ in alive]
        before = np.repeat([at for _, at in alive], [len(leaving) for leaving in arcs])
        log_p = self._scorer.log_prob(before, self._tokens[np.concatenate(arcs)])
        check_numbers(log_p)
        steps = np.split(log_p, np.cumsum([len(leaving) for leaving in arcs])[:-1])
        return [
            _Beginning(x.log_p + step, (*x.arcs, arc), at)
            for (x, at), leaving, more in zip(alive, arcs, steps, strict=True)
            for arc, step in zip(leaving.tolist(), more.tolist(), strict=True)
            if step > -math.inf
        ]

    def _offer(self, cuts: list[_Beginning], context: IntArray) -> None:
        """Whole segmentations and the contexts after them."""
        if not cuts:
            return
        ends = self._scorer.log_end(context)
        check_numbers(ends)
        for cut, end in zip(cuts, ends.tolist(), strict=True):
            if cut.log_p + end > self.log_p or not self.arcs:
                self.arcs, self.log_p = cut.arcs, cut.log_p + end

    def _reach(self, x: _Beginning) -> int:
        return int(self._stop[x.arcs[-1]]) if x.arcs else 0

    def _keep(self, needed: list[_Beginning]) -> None:
        self._scorer.keep(np.unique([self._start, *(x.context for x in needed)]))
