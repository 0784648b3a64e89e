"""Segmentations of a text scored by a model, each distinct one once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation.estimators.estimate import Document
from truesource.evaluation.tokenisation.estimators.weights import log_sum
from truesource.evaluation.tokenisation.window import check_window, most_pieces
from truesource.generator.language_model import TokenisedModel
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError


@dataclass(frozen=True)
class ScoredSegmentations:
    """Log P of some segmentations."""

    log_p: FloatArray  #: (k,) of each segmentation given, nats; -inf where its probability is zero, or it does not fit
    log_lower: float  #: log of the sum of P over the distinct ones: certainly at most log P(D), nats
    steps: int  #: tokens that the model was run at: of each distinct segmentation, the token before it, and padding
    distinct: int  #: how many different segmentations the model read


def score_segmentations(
    model: TokenisedModel, document: Document, segmentations: Sequence[NDArray[np.integer]]
) -> ScoredSegmentations:
    """Score segmentations in one call of the model; those that do not fit its window have probability zero.

    Args:
        model: of the pieces in the lattice.
        document: with the lattice of its segmentations.
        segmentations: arc numbers of each; equal ones are scored once.

    Raises:
        InputError: the canonical tokenisation does not fit the window, or the model gives a probability that is no
            number.
    """
    check_window(model, document)
    tokens = model.pieces.inventory.ids[document.lattice.piece]
    numbers: dict[bytes, int] = {}
    rows: list[IntArray] = []
    which = np.empty(len(segmentations), dtype=np.int64)
    for i, arcs in enumerate(segmentations):
        row = tokens[arcs]
        which[i] = numbers.setdefault(row.tobytes(), len(rows))
        if which[i] == len(rows):
            rows.append(row)
    most = most_pieces(model)
    fits = np.array([most is None or len(row) <= most for row in rows])
    read = [row for row, fit in zip(rows, fits.tolist(), strict=True) if fit]
    log_p = np.full(len(rows), -np.inf)
    if read:
        log_p[fits] = model.log_probs(read)
    check_numbers(log_p)
    return ScoredSegmentations(log_p[which], log_sum(log_p), model.token_steps(read) if read else 0, len(read))


def check_numbers(log_p: FloatArray) -> None:
    """Whether log probabilities are numbers; -inf is one.

    Raises:
        InputError: one is not.
    """
    if np.isnan(log_p).any() or (log_p == np.inf).any():
        raise InputError("the model gives a probability that is not a number: its weights are damaged, or it overflows")
