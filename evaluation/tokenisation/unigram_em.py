"""Scores for pieces that come without: a unigram model fitted to words by EM, or a uniform one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from truesource.evaluation.tokenisation._kernels import sums as kernels
from truesource.evaluation.tokenisation.builder import LatticeBuilder
from truesource.generator.language_model import PieceInventory
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter


def uniform_scores(inventory: PieceInventory) -> FloatArray:
    """(P,) zeros: with them Q_b is uniform over paths whatever b."""
    return np.zeros(len(inventory.pieces))


def fit_scores(
    inventory: PieceInventory,
    words: Mapping[str, int],
    *,
    iterations: int = 50,
    tolerance: float = 1e-6,
    floor: float = 1e-9,
) -> FloatArray:
    """Maximum-likelihood unigram scores of any pieces, by EM over all segmentations of words (Kudo 2018, section 3.2).

    It starts from equal probabilities. No piece falls below ``floor``, so that every path keeps a probability;
    each step is the best one under that bound, so the likelihood never falls.

    Args:
        inventory: the pieces, scored or not.
        words: how often each word stands in the text, spelt in the inventory's alphabet with the marker. Words
            that are no joining of pieces say nothing about scores and are left out.
        iterations: at most.
        tolerance: stop when the log-likelihood changes by less than this share of it.
        floor: least probability of a piece; times the number of pieces it must be below 1.

    Returns:
        (P,) log probabilities, nats; their exponentials sum to 1.

    Raises:
        InputError: no word is a joining of pieces, or a setting is out of range.
    """
    return fit_trace(inventory, words, iterations=iterations, tolerance=tolerance, floor=floor)[0]


def fit_trace(
    inventory: PieceInventory,
    words: Mapping[str, int],
    *,
    iterations: int = 50,
    tolerance: float = 1e-6,
    floor: float = 1e-9,
) -> tuple[FloatArray, list[float]]:
    """As `fit_scores`, and the log-likelihood of the words (nats) at the start and after every step."""
    n = len(inventory.pieces)
    if iterations < 1 or not tolerance >= 0.0:
        raise InputError("EM needs at least one iteration and a tolerance of 0 or more")
    if not (floor > 0.0 and floor * n < 1.0):
        raise InputError(f"the least probability of a piece must be above 0 and below 1/{n}, not {floor}")
    builder = LatticeBuilder(inventory, uniform_scores(inventory))
    present = [word for word, count in words.items() if count > 0 and word]
    kept = [word for word, fine in zip(present, builder.spells(present).tolist(), strict=True) if fine]
    if not kept:
        raise InputError("none of the words is a joining of pieces, so no scores can be fitted to them")
    lattice, bounds = builder.join(kept)
    counts = np.array([words[word] for word in kept], dtype=np.float64)
    scores = np.full(n, -np.log(n))
    trace: list[float] = []
    with meter("fitting unigram scores, by iteration", iterations) as shown:
        for _ in range(iterations):
            marginal: FloatArray
            marginal, partition = kernels.marginals(
                lattice.first, lattice.source, scores[lattice.piece], 1.0, bounds, counts
            )
            trace.append(float(counts @ partition))
            shown.advance(note=f"log-likelihood {trace[-1]:.6g}")
            if len(trace) > 1 and trace[-1] - trace[-2] < tolerance * abs(trace[-1]):
                break
            expected = np.bincount(lattice.piece, weights=marginal, minlength=n).astype(np.float64)
            scores = np.log(_bounded(expected, floor))
    return scores, trace


def _bounded(expected: FloatArray, floor: float) -> FloatArray:
    """The probabilities p >= floor, summing to 1, with the largest sum of expected * log p."""
    ascending = np.sort(expected)
    above = np.cumsum(ascending[::-1])[::-1]  # of this and all larger ones
    below = np.arange(len(expected))
    rate = above / (1.0 - floor * below)  # expected count for probability 1, with so many at the floor
    held = int(np.argmax(ascending > floor * rate))
    bounded: FloatArray = np.maximum(expected / rate[held], floor)
    return bounded
