"""What every language model offers, the truth included, and the scores it gives.

The protocol stands here because this is the lowest package that both model training and evaluation see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from generator.frame import ScoringFrame

Objective = Literal["causal", "masked"]


@dataclass(frozen=True)
class TokenScores:
    """Log probability of every scored position of some sentences, in sentence order, then position order.

    A sentence to which the model gives probability zero (or whose score is undefined) has no rows here:
    its number stands in ``impossible``, so that no infinity travels. ``log_prob`` is finite throughout.
    """

    log_prob: NDArray[np.float64]  #: (T,) nats
    sentence: NDArray[np.int32]  #: (T,) number of the sentence in the input
    position: NDArray[np.int32]  #: (T,) 0 to n; n is the end of the sentence
    impossible: NDArray[np.int32]  #: numbers of sentences without rows
    n_sentences: int  #: how many sentences were given
    frame: ScoringFrame

    def __post_init__(self) -> None:
        if not self.log_prob.shape == self.sentence.shape == self.position.shape:
            raise ValueError("log_prob, sentence and position need one entry per scored position each")
        if not np.isfinite(self.log_prob).all():
            raise ValueError("a log probability is not finite; sentences of probability zero go to `impossible`")


class LanguageModel(Protocol):
    """Anything that assigns probabilities to the tokens of sentences."""

    @property
    def name(self) -> str:
        """What the model is called in tables."""

    @property
    def objective(self) -> Objective:
        """Whether tokens are predicted from the left context or from all others."""

    @property
    def vocabulary(self) -> tuple[str, ...] | None:
        """The words it tells apart; all others are ``<unk>`` to it. None: every word of the language."""

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Log probabilities of the positions that ``frame`` counts."""


def assemble_scores(
    rows: Sequence[NDArray[np.float64]], unknown: Sequence[NDArray[np.bool_]], frame: ScoringFrame
) -> TokenScores:
    """Select the positions that a frame counts from per-sentence log probabilities.

    Args:
        rows: for each sentence of n tokens, (n,) for a masked model or (n+1,) with the end of the sentence.
        unknown: for each sentence, (n,) true where the model reads ``<unk>``.
        frame: which positions count.

    A sentence with any entry that is not finite (counted or not) goes to ``impossible`` as a whole.
    """
    kept: list[NDArray[np.float64]] = []
    numbers: list[NDArray[np.int32]] = []
    positions: list[NDArray[np.int32]] = []
    impossible = []
    for i, (row, unk) in enumerate(zip(rows, unknown, strict=True)):
        if not np.isfinite(row).all():
            impossible.append(i)
            continue
        count = np.ones(len(row), dtype=bool)
        if len(row) > len(unk):
            count[len(unk) :] = frame.eos
        if not frame.first:
            count[0] = False
        if frame.unk == "skip":
            count[: len(unk)] &= ~unk
        at = np.flatnonzero(count).astype(np.int32)
        kept.append(row[at])
        positions.append(at)
        numbers.append(np.full(len(at), i, dtype=np.int32))
    return TokenScores(
        np.concatenate(kept) if kept else np.empty(0),
        np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int32),
        np.concatenate(positions) if positions else np.empty(0, dtype=np.int32),
        np.array(impossible, dtype=np.int32),
        len(rows),
        frame,
    )
