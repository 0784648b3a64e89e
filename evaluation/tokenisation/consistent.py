"""Paths that segment all tokens of one word in the same way (Cao & Rimell 2021, their consistent tokenisation).

Q_cons(T) is the product of Q_b(t) over the different words of a text, not over its tokens: so it sums to 1 over the
consistent paths. What is estimated with it is the sum of P over those, at most P(D). They are the paths of a lattice
over the different words written one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.evaluation.tokenisation.marginal import count_paths
from truesource.evaluation.tokenisation.n_best import n_best
from truesource.evaluation.tokenisation.paths import DistinctPaths, Paths
from truesource.evaluation.tokenisation.sampling import sample
from truesource.evaluation.tokenisation.without_replacement import Method, sample_distinct
from truesource.generator.language_model import PieceInventory
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError


class ConsistentPaths:
    """The consistent paths of one lattice.

    A word reaches from a marker, or run of markers, to the next (where markers end words, to its end); one at the
    beginning of a text that has no marker is a word of its own.

    Args:
        lattice: of a whole text.
        inventory: its pieces, for their marker.

    Raises:
        InputError: a piece joins two words.
    """

    def __init__(self, lattice: Lattice, inventory: PieceInventory) -> None:
        bounds = _word_bounds(lattice.spelling, inventory)
        ends = np.repeat(np.arange(lattice.n + 1), np.diff(lattice.first))
        within = np.searchsorted(bounds, lattice.source, side="right") == np.searchsorted(bounds, ends, side="left")
        if not within.all():
            piece = inventory.pieces[int(lattice.piece[int(np.argmin(within))])]
            raise InputError(f"the piece {piece!r} joins two words, so that words are not segmented one by one")
        spelling = lattice.spelling
        spelt = [spelling[a:b] for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
        numbers: dict[str, int] = {}
        self._word: IntArray = np.array([numbers.setdefault(word, len(numbers)) for word in spelt], dtype=np.int64)
        #: the different words, in order of their first tokens
        self.words = tuple(numbers)
        self._arc = lattice.first[bounds[:-1] + 1]  # (W,) first arc of each token
        tokens = np.unique(self._word, return_index=True)[1]  # where each word stands first
        arcs = _ranges(self._arc[tokens], np.append(self._arc, len(lattice.source))[tokens + 1])
        lengths = np.diff(bounds)[tokens]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        at = _ranges(bounds[tokens] + 1, bounds[tokens + 1] + 1)  # (n,) position after each character
        first = np.concatenate([[0, 0], np.cumsum(np.diff(lattice.first)[at])])
        moved = np.repeat(starts[:-1] - bounds[tokens], first[starts[1:] + 1] - first[starts[:-1] + 1])
        #: over the different words, one after the other
        self.lattice = Lattice(
            "".join(self.words),
            first,
            (lattice.source[arcs] + moved).astype(np.int32),
            lattice.piece[arcs],
            lattice.score[arcs],
        )
        self._first_arc = first[starts[:-1] + 1]  # (types,) first arc of each word in the lattice above
        self._tokens = tokens

    def count(self) -> int:
        """How many consistent paths there are."""
        return count_paths(self.lattice)

    def sample(self, k: int, *, b: float = 1.0, seed: int, avoid: NDArray[Any] | None = None) -> Paths:
        """As `truesource.evaluation.tokenisation.sampling.sample`; paths of the whole text, with log Q_cons."""
        return self.expanded(sample(self.lattice, k, b=b, seed=seed, avoid=self._reduced(avoid)))

    def sample_distinct(
        self,
        k: int,
        *,
        b: float = 1.0,
        seed: int,
        avoid: NDArray[Any] | None = None,
        method: Method | None = None,
    ) -> DistinctPaths:
        """As `evaluation.tokenisation.without_replacement.sample_distinct`; of the whole text, with log Q_cons."""
        found = sample_distinct(self.lattice, k, b=b, seed=seed, avoid=self._reduced(avoid), method=method)
        return DistinctPaths(self.expanded(found.paths), found.log_inclusion, found.kappa, found.method)

    def n_best(self, k: int) -> Paths:
        """As `truesource.evaluation.tokenisation.n_best.n_best`; paths of the whole text, by descending log Q_cons."""
        return self.expanded(n_best(self.lattice, k))

    def expanded(self, paths: Paths) -> Paths:
        """Paths of the lattice of different words as paths of the whole text."""
        k, words = len(paths), len(self.words)
        of = np.searchsorted(self._first_arc, paths.arcs, side="right") - 1
        new = np.ones(len(of), dtype=np.bool_)
        new[1:] = of[1:] != of[:-1]
        new[paths.bounds[:-1]] = True
        low = np.flatnonzero(new)
        high = np.append(low[1:], len(of))
        low, high = (edge.reshape(k, words)[:, self._word] for edge in (low, high))
        sizes = high - low
        moved = np.repeat(np.tile(self._arc - self._first_arc[self._word], k), sizes.ravel())
        arcs = paths.arcs[_ranges(low.ravel(), high.ravel())] + moved
        bounds = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])
        return Paths(arcs.astype(np.int32), bounds, paths.log_q)

    def reduced(self, path: NDArray[Any]) -> IntArray:
        """A consistent path of the whole text as one of the lattice of different words.

        Raises:
            InputError: the path segments one word in two ways.
        """
        arcs = np.asarray(path, dtype=np.int64)
        token = np.searchsorted(self._arc, arcs, side="right") - 1
        firsts = self._tokens[self._word[token]] == token
        moved = (self._first_arc[self._word] - self._arc)[token]
        found: IntArray = (arcs + moved)[firsts]
        whole = self.expanded(Paths.of([found], np.zeros(1))).arcs
        if not np.array_equal(whole, arcs):
            raise InputError("the path to avoid segments a word in two ways")
        return found

    def _reduced(self, avoid: NDArray[Any] | None) -> IntArray | None:
        return None if avoid is None else self.reduced(avoid)


def _word_bounds(spelling: str, inventory: PieceInventory) -> IntArray:
    """Where words start, and the length of the text (W+1,)."""
    marked = np.array([c == inventory.marker for c in spelling], dtype=np.bool_)
    before, after = marked[:-1], marked[1:]
    inner = np.flatnonzero(before & ~after if inventory.marker_ends else ~before & after) + 1
    return np.concatenate([[0], inner, [len(spelling)]]).astype(np.int64)


def _ranges(low: IntArray, high: IntArray) -> IntArray:
    """The numbers from each of ``low`` to below its ``high``, one range after the other."""
    sizes = high - low
    ends = np.cumsum(sizes)
    found: IntArray = np.repeat(low - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)
    return found
