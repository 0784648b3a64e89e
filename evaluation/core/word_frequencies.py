"""Models with one distribution in every context: word frequencies of a truth or a text, or uniform; their bands."""

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
        vocabulary: words that it distinguishes.
        weight: (V+2,) or masked (V+1,) of each word, of ``<unk>``, and of the end if causal; not negative. They are
            divided by their sum.
    """

    def __init__(
        self, name: str, objective: Objective, vocabulary: Sequence[str], weight: Sequence[float] | FloatArray
    ) -> None:
        self.name = name
        self.objective: Objective = objective
        self.vocabulary = tuple(vocabulary)
        weights = np.asarray(weight, dtype=np.float64)
        if weights.shape != (len(self.vocabulary) + 1 + (objective == "causal"),):
            raise ValueError(f"expecting a weight for each word, <unk> and the end if causal, got {weights.shape}")
        if not (weights >= 0.0).all() or not 0.0 < weights.sum() < np.inf:
            raise ValueError("weights must be finite, not negative, and one of them above 0")
        with np.errstate(divide="ignore"):
            self._log_prob: FloatArray = np.log(weights / weights.sum())
        self._place = {word: column for column, word in enumerate(self.vocabulary)}

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Return log probabilities of the positions that ``frame`` counts, nats."""
        unknown = len(self.vocabulary)
        columns = [np.array([self._place.get(word, unknown) for word in sentence]) for sentence in sentences]
        rows = [self._log_prob[column] for column in columns]
        if self.objective == "causal":
            rows = [np.append(row, self._log_prob[-1]) for row in rows]
        return assemble_scores(rows, [column == unknown for column in columns], frame)

    @takes_sentences
    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Yield the one distribution, at every position of sentences of one length."""
        table = np.tile(self._log_prob, (len(sentences), 1))
        for position in range(len(sentences[0]) + (self.objective == "causal")):
            yield LogDistributions(position, table)


def true_frequencies(oracle: Oracle) -> ConstantModel:
    """Return the exact word frequencies of a language, the best model without context; causal ones include the end.

    They are expected counts in closed form, under the oracle's length condition and with its vocabulary.
    """
    counts = word_counts(oracle.language, oracle.lengths)
    ends = [1.0] * (oracle.objective == "causal")
    weight = oracle.summed(np.append(counts, ends), oracle.columns(oracle.words))
    return ConstantModel("word frequencies of the truth", oracle.objective, oracle.words, weight)


def counted_frequencies(name: str, counts: Mapping[str, int], sentences: int, objective: Objective) -> ConstantModel:
    """Return the word frequencies of a text, with one added to each count, ``<unk>`` included.

    Args:
        name: in tables.
        counts: tokens of each word.
        sentences: number of them, which is the number of ends.
        objective: causal or masked.
    """
    ends = [sentences + 1] * (objective == "causal")
    return ConstantModel(name, objective, tuple(counts), [*(n + 1 for n in counts.values()), 1, *ends])


def equal_frequencies(oracle: Oracle) -> ConstantModel:
    """Return the uniform distribution over words, ``<unk>`` and, if causal, the end."""
    size = len(oracle.words) + 1 + (oracle.objective == "causal")
    return ConstantModel("equal frequencies", oracle.objective, oracle.words, np.ones(size))


def frequency_powers(probability: FloatArray) -> FloatArray:
    """Return powers of ten of some probabilities, from `RAREST` to -1: their bands of frequency."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.floor(np.log10(probability) + 1e-12), RAREST, -1))


def frequency_band(power: int) -> str:
    """Return the name of the band that begins at 10 to that power."""
    upper = "1" if power == -1 else f"1/{10 ** -(power + 1):,}"
    return f"below {upper}" if power == RAREST else f"1/{10**-power:,} to {upper}"
