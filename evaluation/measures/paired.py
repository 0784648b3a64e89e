"""Scores of a model and of the oracle on exactly the same positions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from generator.language_model import TokenScores
from grammar.errors import InputError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Paired:
    """Log probabilities of model and oracle, position by position, sentence by sentence."""

    model: FloatArray  #: (T,) nats
    oracle: FloatArray  #: (T,) nats
    sentence: NDArray[np.int32]  #: (T,) numbers of the sentences in the input, ascending
    position: NDArray[np.int32]  #: (T,)
    excluded: NDArray[np.int32]  #: sentences that either side gives probability zero
    n_sentences: int  #: sentences given, the excluded ones too

    @property
    def tokens(self) -> int:
        """Scored positions."""
        return len(self.model)

    def sums(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Per sentence kept: summed model and oracle log probability, and scored positions, (N,) each."""
        _, row = np.unique(self.sentence, return_inverse=True)
        counts = np.bincount(row).astype(np.float64)
        model, oracle = (np.bincount(row, side).astype(np.float64) for side in (self.model, self.oracle))
        return model, oracle, counts


class NothingToCompareError(InputError):
    """No sentence is possible for both sides; ``n_sentences`` were given."""

    def __init__(self, message: str, n_sentences: int) -> None:
        super().__init__(message)
        self.n_sentences = n_sentences


def at_positions_of(scores: TokenScores, other: TokenScores) -> TokenScores:
    """Only the scores at positions that ``other`` scores too."""
    mine, theirs = (x.sentence.astype(np.int64) << 32 | x.position for x in (scores, other))
    kept = np.isin(mine, theirs)
    return replace(
        scores, log_prob=scores.log_prob[kept], sentence=scores.sentence[kept], position=scores.position[kept]
    )


def pair(model: TokenScores, oracle: TokenScores) -> Paired:
    """Match positions; sentences impossible for either side leave both.

    Raises:
        InputError: the two do not score the same sentences in the same frame.
        NothingToCompareError: nothing is left.
    """
    if model.n_sentences != oracle.n_sentences or model.frame != oracle.frame:
        raise InputError("model and oracle were scored on different sentences or frames; score them together")
    excluded = np.union1d(model.impossible, oracle.impossible).astype(np.int32)
    kept = [~np.isin(side.sentence, excluded) for side in (model, oracle)]
    sentence, position = model.sentence[kept[0]], model.position[kept[0]]
    if not (np.array_equal(sentence, oracle.sentence[kept[1]]) and np.array_equal(position, oracle.position[kept[1]])):
        raise InputError("model and oracle count different positions; give the oracle the model's vocabulary")
    if len(sentence) == 0:
        impossible = "are impossible for the model or the oracle"
        reason = impossible if len(excluded) == model.n_sentences else f"have no position that counts, or {impossible}"
        raise NothingToCompareError(
            f"no position is left to compare: all {model.n_sentences} sentences {reason}", model.n_sentences
        )
    return Paired(model.log_prob[kept[0]], oracle.log_prob[kept[1]], sentence, position, excluded, model.n_sentences)
