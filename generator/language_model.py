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
