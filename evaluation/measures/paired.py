"""Scores of a model and of the oracle on exactly the same positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from truesource.generator.language_model import TokenScores
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.truth import Truth


@dataclass(frozen=True, kw_only=True)
class Paired:
    """Log probabilities of model and oracle, position by position, sentence by sentence."""

    model: FloatArray  #: (T,) nats
    oracle: FloatArray  #: (T,) nats
    sentence: Int32Array  #: (T,) numbers of the sentences in the input, ascending
    position: Int32Array  #: (T,)
    impossible_model: Int32Array  #: sentences that the model gives probability zero
    impossible_oracle: Int32Array  #: sentences that the oracle gives probability zero
    n_sentences: int  #: number of sentences, excluded ones too

    @property
    def excluded(self) -> Int32Array:
        """Sentences that either side gives probability zero, ascending."""
        return np.union1d(self.impossible_model, self.impossible_oracle).astype(np.int32)

    @property
    def tokens(self) -> int:
        """Scored positions."""
        return len(self.model)

    def sums(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sum the log probabilities of model and oracle, and scored positions, by scored sentence, (N,) each."""
        _, row = np.unique(self.sentence, return_inverse=True)
        counts = np.bincount(row).astype(np.float64)
        model, oracle = (np.bincount(row, side).astype(np.float64) for side in (self.model, self.oracle))
        return model, oracle, counts

    def table(self) -> FloatArray:
        """Return sums by sentence: ln P - ln Q, -ln P, and scored positions, (3, N); zeros for excluded sentences."""
        table = np.zeros((3, self.n_sentences))
        model, oracle, counts = self.sums()
        table[:, np.unique(self.sentence)] = oracle - model, -oracle, counts
        return table


class NothingToCompareError(NothingToMeasureError):
    """No position is left to compare.

    ``n_sentences`` were given; ``impossible_model`` and ``impossible_oracle`` of them have probability zero on that
    side.
    """

    def __init__(self, message: str, n_sentences: int, impossible_model: int, impossible_oracle: int) -> None:
        super().__init__(message, "no-common-sentence")
        self.n_sentences = n_sentences
        self.impossible_model = impossible_model
        self.impossible_oracle = impossible_oracle


def at_positions_of(scores: TokenScores, other: TokenScores) -> TokenScores:
    """Return the scores at positions that ``other`` scores too."""
    mine, theirs = (x.sentence.astype(np.int64) << 32 | x.position for x in (scores, other))
    both = np.isin(mine, theirs)
    return replace(
        scores, log_prob=scores.log_prob[both], sentence=scores.sentence[both], position=scores.position[both]
    )


def pair(model: TokenScores, oracle: TokenScores, unknown: Sequence[str] = ()) -> Paired:
    """Match positions; exclude sentences that are impossible for either side.

    Args:
        model: scores of the model.
        oracle: scores of the oracle, of the same sentences in the same frame.
        unknown: words that the oracle's grammar lacks, for the message when nothing is left.

    Raises:
        InputError: the two do not score the same sentences in the same frame.
        NothingToCompareError: nothing is left.
    """
    if model.n_sentences != oracle.n_sentences or model.frame != oracle.frame:
        raise InputError("model and oracle were scored on different sentences or frames; score them together")
    excluded = np.union1d(model.impossible, oracle.impossible)
    mask = [~np.isin(side.sentence, excluded) for side in (model, oracle)]
    sentence, position = model.sentence[mask[0]], model.position[mask[0]]
    if not (np.array_equal(sentence, oracle.sentence[mask[1]]) and np.array_equal(position, oracle.position[mask[1]])):
        raise InputError("model and oracle count different positions; give the oracle the model's vocabulary")
    if len(sentence) == 0:
        n, by_model, by_oracle = model.n_sentences, len(model.impossible), len(oracle.impossible)
        reason = f"of {n} sentences, the oracle cannot make {by_oracle} and the model cannot make {by_model}"
        if len(excluded) < n:
            reason += ", and the others have no position that counts"
        if len(unknown):
            reason += f"; {words_missing(unknown)}"
        raise NothingToCompareError(f"no position is left to compare: {reason}", n, by_model, by_oracle)
    return Paired(
        model=model.log_prob[mask[0]],
        oracle=oracle.log_prob[mask[1]],
        sentence=sentence,
        position=position,
        impossible_model=model.impossible,
        impossible_oracle=oracle.impossible,
        n_sentences=model.n_sentences,
    )


def unknown_words(language: Truth, sentences: Iterable[Sequence[str]]) -> list[str]:
    """Return the words of ``sentences`` that a grammar lacks, each once, in the order of their first occurrence."""
    vocabulary = language.word_ids
    return list(dict.fromkeys(word for sentence in sentences for word in sentence if word not in vocabulary))


def words_missing(unknown: Sequence[str], most: int = 5) -> str:
    """Return ``the grammar lacks the word 'unicorn'``, or ``the grammar lacks 7 words: 'a', 'b', ...``."""
    if len(unknown) == 1:
        return f"the grammar lacks the word {unknown[0]!r}"
    examples = ", ".join(repr(word) for word in unknown[:most])
    return f"the grammar lacks {len(unknown):,} words: {examples}{', ...' if len(unknown) > most else ''}"
