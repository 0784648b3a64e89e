"""Models that expect the same in every context: word frequencies of a truth or a text, or equal ones; their bands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.generator.language_model import LogDistributions, ScoringFrame, TokenScores, assemble_scores
from truesource.generator.objectives import Objective
from truesource.grammar.sentences import takes_sentences
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.truth import word_counts

RAREST = -7  #: power of ten; rarer words are in one band of frequency


class ConstantModel:
    """A `DistributionModel` whose expectation does not depend on the context.

    Args:
        name: in tables.
        objective: causal models expect the end of the sentence too.
        vocabulary: words that it tells apart.
        weight: (V+2,) or masked (V+1,) of each word, of ``<unk>``, and of the end if causal; not negative. They are
            divided by their sum.
    """

    def __init__(
        self, name: str, objective: Objective, vocabulary: Sequence[str], weight: Sequence[float] | FloatArray
    ) -> None:
        self.name = name
        self.objective: Objective = objective
        self.vocabulary = tuple(vocabulary)
        given = np.asarray(weight, dtype=np.float64)
        if given.shape != (len(self.vocabulary) + 1 + (objective == "causal"),):
            raise ValueError(f"expecting a weight for each word, <unk> and the end if causal, got {given.shape}")
        if not (given >= 0.0).all() or not 0.0 < given.sum() < np.inf:
            raise ValueError("weights must be finite, not negative, and one of them above 0")
        with np.errstate(divide="ignore"):
            self._log_prob: FloatArray = np.log(given / given.sum())
        self._place = {word: column for column, word in enumerate(self.vocabulary)}

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Log probabilities of the positions that ``frame`` counts, nats."""
        unknown = len(self.vocabulary)
        columns = [np.array([self._place.get(word, unknown) for word in sentence]) for sentence in sentences]
        rows = [self._log_prob[column] for column in columns]
        if self.objective == "causal":
            rows = [np.append(row, self._log_prob[-1]) for row in rows]
        return assemble_scores(rows, [column == unknown for column in columns], frame)

    @takes_sentences
    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """The one distribution, at every position of sentences of one length."""
        table = np.tile(self._log_prob, (len(sentences), 1))
        for position in range(len(sentences[0]) + (self.objective == "causal")):
            yield LogDistributions(position, table)


def true_frequencies(oracle: Oracle) -> ConstantModel:
    """The exact word frequencies of a language, ends of sentences included if causal: the best model without context.

    They are expected counts in closed form, under the oracle's length condition and with its vocabulary.
    """
    counts = word_counts(oracle.language, oracle.lengths)
    ends = [1.0] * (oracle.objective == "causal")
    weight = oracle.summed(np.append(counts, ends), oracle.columns(oracle.words))
    return ConstantModel("word frequencies of the truth", oracle.objective, oracle.words, weight)


def counted_frequencies(name: str, counts: Mapping[str, int], sentences: int, objective: Objective) -> ConstantModel:
    """Word frequencies as they are in a text, with one added to each count, that of ``<unk>`` too.

    Args:
        name: in tables.
        counts: tokens of each word.
        sentences: number of them, which is the number of ends.
        objective: causal or masked.
    """
    ends = [sentences + 1] * (objective == "causal")
    return ConstantModel(name, objective, tuple(counts), [*(n + 1 for n in counts.values()), 1, *ends])


def equal_frequencies(oracle: Oracle) -> ConstantModel:
    """Return the same probability for everything that may stand anywhere."""
    size = len(oracle.words) + 1 + (oracle.objective == "causal")
    return ConstantModel("equal frequencies", oracle.objective, oracle.words, np.ones(size))


def frequency_powers(probability: FloatArray) -> FloatArray:
    """Powers of ten of some probabilities, from `RAREST` to -1: their bands of frequency."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.floor(np.log10(probability) + 1e-12), RAREST, -1))


def frequency_band(power: int) -> str:
    """Name of the band from 10 to that power on."""
    upper = "1" if power == -1 else f"1/{10 ** -(power + 1):,}"
    return f"below {upper}" if power == RAREST else f"1/{10**-power:,} to {upper}"
