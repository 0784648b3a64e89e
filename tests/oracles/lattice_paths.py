"""Paths of lattices next to the cuts that enumeration gives."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
from enumerated_cuts import Cut, distribution
from numpy.typing import NDArray
from piece_models import AB_PIECES, MARKER
from scipy import stats

from truesource.evaluation.tokenisation.lattice import Lattice, LatticeBuilder
from truesource.evaluation.tokenisation.paths import Paths
from truesource.generator.piece_model import PieceInventory

#: `▁abababa` has 80 cuts
AB_SCORES = {piece.replace("_", MARKER): score for piece, score in AB_PIECES.items()}
EIGHTY = f"{MARKER}abababa"


class Cutter:
    """A lattice, and the pieces of its paths."""

    def __init__(self, inventory: PieceInventory, text: str) -> None:
        self.inventory = inventory
        self.lattice: Lattice = LatticeBuilder(inventory).build(text)
        assert inventory.scores is not None
        self.scores = dict(zip(inventory.pieces, inventory.scores.tolist(), strict=True))

    def cut(self, path: NDArray[np.integer]) -> Cut:
        return tuple(self.inventory.pieces[i] for i in self.lattice.piece[path].tolist())

    def cuts(self, paths: Paths) -> list[Cut]:
        return [self.cut(path) for path in paths.each()]

    def truth(self, b: float = 1.0, without: Cut | None = None) -> dict[Cut, float]:
        """Q_b by enumeration, of the other cuts if one is left out."""
        whole = distribution(self.lattice.spelling, self.scores, b)
        kept = {cut: q for cut, q in whole.items() if cut != without}
        total = math.fsum(kept.values())
        return {cut: q / total for cut, q in kept.items()}

    def counts(self, paths: Paths) -> Counter[Cut]:
        """How often each cut was drawn."""
        drawn = Counter(path.tobytes() for path in paths.each())
        return Counter({self.cut(np.frombuffer(path, dtype=np.int32)): n for path, n in drawn.items()})


def fit_p(counts: Mapping[Cut, int], truth: Mapping[Cut, float]) -> float:
    """p-value of a chi-square test; cuts expected less than 5 times are one class. 0 if an impossible cut was drawn."""
    if not set(counts) <= set(truth):
        return 0.0
    n = sum(counts.values())
    common = [cut for cut, q in truth.items() if n * q >= 5.0]
    observed = [counts.get(cut, 0) for cut in common]
    expected = [n * truth[cut] for cut in common]
    rest = n - math.fsum(expected)
    if rest > 1e-6 * n:
        observed.append(n - sum(observed))
        expected.append(rest)
    observed_sum = math.fsum(expected)
    statistic = math.fsum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    assert abs(observed_sum - n) < 1e-6 * n
    return float(stats.chi2.sf(statistic, len(expected) - 1))
