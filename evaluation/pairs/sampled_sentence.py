"""A sentence drawn from the grammar, with what its posterior says; and a changed one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Words
from truesource.generator.sampler import Sampler
from truesource.grammar.inference.posterior import Posterior, posterior
from truesource.grammar.support.arrays import FloatArray, IntArray, random_state

_STREAM = 0x9A125  #: keeps these sentences apart from a corpus drawn with the same seed
_CHUNK = 64  #: sentences drawn at once


@dataclass(frozen=True)
class PairChange:
    """The other sentence of a pair, and facts about both: ``x_drawn`` is of the drawn one, ``x_changed`` of this."""

    words: Words
    positions: tuple[int, ...]
    strata: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, float | None] = field(default_factory=dict)


def outside_of(lexicon: Lexicon, sentences: Sequence[Words]) -> list[FloatArray]:
    """`SampledSentence.outside` of each sentence; those of one length are computed together."""
    charts = lexicon.pcfg.exact.charts()
    found: list[FloatArray] = [np.empty(0)] * len(sentences)
    for batch in charts.batches(sentences, outside=True):
        leaves = charts.leaves(batch.words).weights
        for column, members in enumerate(batch.members):
            for i in members:
                found[i] = np.ascontiguousarray(leaves[:, :, column])
    return found


@dataclass(frozen=True, eq=False)
class SampledSentence:
    """One sentence of the grammar; what is computed of it is kept."""

    lexicon: Lexicon
    words: Words
    computed: FloatArray | None = field(default=None, repr=False)  #: `outside`, where it was computed with others

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def posterior(self) -> Posterior:
        """Exact, over derivations."""
        return posterior(self.lexicon.pcfg, self.words)

    def tag(self, position: int, sure: float) -> str | None:
        """The tag of a word where its posterior reaches ``sure`` (above 0.5); None elsewhere."""
        best = int(self._best[position])
        return self.posterior.labels[best] if self.posterior.tags[position, best] >= sure else None

    @cached_property
    def _best(self) -> IntArray:
        return np.asarray(self.posterior.tags.argmax(axis=1))

    @cached_property
    def outside(self) -> FloatArray:
        """Weight of every symbol as the one that makes the word, whatever the word, (n, S), scaled by position."""
        return outside_of(self.lexicon, [self.words])[0] if self.computed is None else self.computed

    def log_odds(self, position: int) -> FloatArray:
        """Ln P(this sentence) / P(it with another word at ``position``), every word at once, (V,) nats; inf at zero.

        ``P(w_1..v..w_n) = sum_A o_A P(A -> v)`` with the outside weights of the preterminals at the position.
        """
        joint = np.asarray(self.lexicon.pcfg.exact.emission.T @ self.outside[position])
        own = joint[self.lexicon.pcfg.word_ids[self.words[position]]]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(own) - np.log(joint))

    def with_word(self, position: int, word: str) -> Words:
        """The sentence with another word at ``position``."""
        return (*self.words[:position], word, *self.words[position + 1 :])


def sampled_sentences(
    lexicon: Lexicon, most: int, seed: int, outside: Callable[[], bool] = lambda: True
) -> Iterator[SampledSentence]:
    """Sentences of a grammar, under the lengths of its lexicon, reproducible from one seed.

    Args:
        lexicon: of the grammar.
        most: sentences, at most.
        seed: of them.
        outside: whether `SampledSentence.outside` is needed of most of the sentences that come next.
    """
    sampler = Sampler(lexicon.pcfg, lexicon.lengths)
    for chunk in range(-(-most // _CHUNK)):
        size = min(_CHUNK, most - chunk * _CHUNK)
        drawn = sampler.draw(size, random_state(seed, _STREAM, chunk))
        words: list[Words] = [tuple(sentence) for sentence in sampler.sentences(drawn)]
        computed = outside_of(lexicon, words) if outside() else [None] * size
        for sentence, weights in zip(words, computed, strict=True):
            yield SampledSentence(lexicon, sentence, weights)
