"""Cuts of a text scored by a model, each distinct one once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.tokenisation.estimate import Document
from evaluation.tokenisation.estimators.weights import log_sum
from generator.piece_model import Floats, Ints, TokenisedModel
from grammar.errors import InputError


@dataclass(frozen=True)
class ScoredCuts:
    """Log P of some cuts."""

    log_p: Floats  #: (k,) of each cut given, nats; -inf where the model gives it probability zero
    log_lower: float  #: log of the sum of P over the distinct ones: certainly at most log P(D), nats
    steps: int  #: tokens that the model was run at: of each distinct cut, the token before it, and padding
    distinct: int  #: how many different cuts there are


def score_cuts(model: TokenisedModel, document: Document, cuts: Sequence[NDArray[np.integer]]) -> ScoredCuts:
    """Score cuts in one call of the model.

    Args:
        model: of the pieces in the lattice.
        document: with the lattice of its cuts.
        cuts: arc numbers of each; equal ones are scored once.

    Raises:
        InputError: a cut is longer than the model's window, or the model gives a probability that is no number.
    """
    tokens = model.pieces.inventory.ids[document.lattice.piece]
    numbers: dict[bytes, int] = {}
    rows: list[Ints] = []
    which = np.empty(len(cuts), dtype=np.int64)
    for i, cut in enumerate(cuts):
        row = tokens[cut]
        which[i] = numbers.setdefault(row.tobytes(), len(rows))
        if which[i] == len(rows):
            rows.append(row)
    most = max(len(row) for row in rows) + model.around[0]
    if model.longest is not None and most > model.longest:
        raise InputError(
            f"the window of {model.name} is too short: a cut of a text has {most} tokens, the model reads"
            f" {model.longest}; divide the text"
        )
    log_p = np.asarray(model.log_probs(rows), dtype=np.float64)
    check_numbers(log_p)
    return ScoredCuts(log_p[which], log_sum(log_p), model.token_steps(rows), len(rows))


def check_numbers(log_p: Floats) -> None:
    """Whether log probabilities are numbers; -inf is one.

    Raises:
        InputError: one is not.
    """
    if np.isnan(log_p).any() or (log_p == np.inf).any():
        raise InputError("the model gives a probability that is not a number: its weights are damaged, or it overflows")
