"""All ways to cut a string into pieces, one by one: the truth for everything that sums over a lattice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from truesource.generator.piece_model import PieceInventory, PieceKind

Cut = tuple[str, ...]


def cuts(text: str, pieces: Iterable[str]) -> list[Cut]:
    """Every sequence of pieces that spells the text, in lexical order of its pieces."""
    known = sorted(set(pieces))

    def go(at: int) -> list[Cut]:
        if at == len(text):
            return [()]
        return [(p, *rest) for p in known if text.startswith(p, at) for rest in go(at + len(p))]

    return go(0)


def score(cut: Sequence[str], scores: Mapping[str, float]) -> float:
    """Sum of the scores of the pieces, nats."""
    return math.fsum(scores[p] for p in cut)


def log_sum(values: Iterable[float]) -> float:
    """ln sum exp; -inf for no values."""
    values = list(values)
    top = max(values, default=-math.inf)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(v - top) for v in values))


def log_partition(text: str, scores: Mapping[str, float], b: float = 1.0) -> float:
    """ln Z_b."""
    return log_sum(b * score(cut, scores) for cut in cuts(text, scores))


def distribution(text: str, scores: Mapping[str, float], b: float = 1.0) -> dict[Cut, float]:
    """Q_b of every cut."""
    total = log_partition(text, scores, b)
    return {cut: math.exp(b * score(cut, scores) - total) for cut in cuts(text, scores)}


def entropy(text: str, scores: Mapping[str, float], b: float = 1.0) -> float:
    """- sum Q_b ln Q_b, nats."""
    total = log_partition(text, scores, b)
    return math.fsum(q * (total - b * score(cut, scores)) for cut, q in distribution(text, scores, b).items())


def log_collision(text: str, scores: Mapping[str, float], b: float = 1.0) -> float:
    """ln sum Q_b^2."""
    total = log_partition(text, scores, b)
    return log_sum(2.0 * (b * score(cut, scores) - total) for cut in cuts(text, scores))


def marginals(text: str, scores: Mapping[str, float], b: float = 1.0) -> dict[tuple[int, str], float]:
    """Probability that a piece stands at a position, by (start, piece)."""
    found: dict[tuple[int, str], list[float]] = {}
    for cut, q in distribution(text, scores, b).items():
        at = 0
        for p in cut:
            found.setdefault((at, p), []).append(q)
            at += len(p)
    return {place: math.fsum(qs) for place, qs in found.items()}


def inventory(
    scores: Mapping[str, float] | Sequence[str],
    *,
    kind: PieceKind = "unigram",
    marker: str = "▁",
    marker_ends: bool = False,
) -> PieceInventory:
    """Pieces in the order given, numbered from 10; without scores where none are given."""
    pieces = tuple(scores)
    values = np.array([scores[p] for p in pieces], dtype=np.float64) if isinstance(scores, Mapping) else None
    return PieceInventory(kind, pieces, np.arange(10, 10 + len(pieces)), values, marker, marker_ends)
