"""Ways to make sentences satisfy an event, compared with the exact frontier of its probability and KL.

The truth p is steered towards an event E, such as "three times *the*". The steered sentences of any way have a
distribution q, and no distribution with the same q(E) is nearer to p than the tilted truth (see
`truesource.grammar.tilting`): KL(q || p) is at least q(E) ln(q(E) / p(E)) + q(not E) ln(q(not E) / p(not E)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.printable import meter
from truesource.grammar.support.room import require_items
from truesource.grammar.tilting.rewards import Event
from truesource.grammar.tilting.tilt import TiltedGrammar, Tilting, binary_kl

AT_ONCE = 64  #: prefixes that are continued together


class BestOf(NamedTuple):
    """The best of n samples."""

    probability: float  #: q(E) = 1 - (1 - p(E))^n
    kl: float  #: KL(q || p), nats


def best_of(n: int, probability: float) -> BestOf:
    """Return probability and KL of best-of-n, which draws n sentences and selects one that satisfies the event, if any.

    Relative probabilities within E do not change, nor within its complement. Hence best-of-n of an event lies on the
    frontier; n samples are its price (Stiennon et al. 2020; the bound ln n - (n-1)/n of its KL is not tight here).

    Args:
        n: samples, 1 or more.
        probability: p(E).
    """
    reached = -math.expm1(n * math.log1p(-probability)) if probability < 1.0 else 1.0
    return BestOf(reached, binary_kl(reached, probability))


@dataclass(frozen=True, eq=False)
class FilteredSentences:
    """Sentences of independent particle filters, each one sentence that satisfies the event."""

    sentences: list[list[str]]  #: one for each filter
    log_z: FloatArray  #: (runs,) estimates of ln p(E), nats: their exponentials have mean p(E)


class Steering:
    """The truth and an event to steer it to.

    Args:
        pcfg: the truth.
        event: that sentences are to satisfy.
        lengths: condition on the number of words.

    Raises:
        InputError: as `Tilting.given`, or no sentence of E has such a length.
    """

    def __init__(self, pcfg: PCFG, event: Event, lengths: LengthRange | None = None) -> None:
        self.pcfg, self.event, self.lengths = pcfg, event, lengths
        self.tilting = Tilting(pcfg, event)
        self.given: TiltedGrammar = self.tilting.given(lengths=lengths)  #: the truth given the event
        self.log_probability = self.given.log_partition(lengths)  #: ln p(E), nats
        self.probability = math.exp(self.log_probability)  #: p(E); 0 below the smallest float
        self._columns = np.array([pcfg.word_ids[word] for word in self.given.pcfg.vocabulary] + [len(pcfg.vocabulary)])

    def satisfied(self, sentences: Sequence[Sequence[str]]) -> BoolArray:
        """Return which sentences satisfy the event, (n,); one with a word that the truth does not have does not."""
        numbers = [self.pcfg.encode(sentence) for sentence in sentences]
        reward = self.tilting.automaton.reward
        return np.array([(row >= 0).all() and reward(row.tolist()) > 0.0 for row in numbers], dtype=bool)

    def next(self, prefixes: Sequence[Sequence[str]]) -> tuple[FloatArray, BoolArray]:
        """Return distributions after prefixes of one length, (B, V+1), and whether each word can still satisfy E."""
        law, allowed = (
            np.concatenate(
                [_last(pcfg, prefixes[i : i + AT_ONCE], self.lengths) for i in range(0, len(prefixes), AT_ONCE)]
            )
            for pcfg in (self.pcfg, self.given.pcfg)
        )
        able = np.zeros(law.shape, dtype=bool)
        able[:, self._columns] = allowed > 0.0
        return law, able

    def filters(self, particles: int, runs: int, seed: int) -> FilteredSentences:
        """Sample by sequential Monte Carlo: words that rule E out are masked, and weights correct for it.

        Each particle continues by the truth's distribution of the next word without the words that rule the event out;
        its weight is the probability of the remaining words. Particles are resampled (systematically) if their
        effective number is below half. With one particle this is locally masked decoding, as in constrained decoders,
        which ignore the weights.

        Args:
            particles: of each filter.
            runs: independent filters.
            seed: of random numbers.
        """
        require_items(particles * runs, "particles", 80)
        rng = np.random.default_rng(seed)
        texts: list[list[str]] = [[] for _ in range(particles * runs)]
        log_weight, log_z = np.zeros((runs, particles)), np.zeros(runs)
        alive = np.arange(particles * runs)
        words, done = [*self.pcfg.vocabulary, ""], 0
        with meter(f"sentences of {particles} particles", runs) as bar:
            while alive.size:
                law, able = self.next([texts[i] for i in alive])
                law = np.where(able, law, 0.0)
                left = law.sum(axis=1)
                log_weight.ravel()[alive] += np.log(left)
                chosen = _sample(law / left[:, None], rng)
                ended = chosen == len(words) - 1
                for i, word in zip(alive[~ended], chosen[~ended], strict=True):
                    texts[i] = [*texts[i], words[word]]
                going = np.zeros(particles * runs, dtype=bool)
                going[alive[~ended]] = True
                texts, going = _resampled(texts, going, log_weight, log_z, rng)
                alive = np.flatnonzero(going)
                left_over = int(going.reshape(runs, particles).any(axis=1).sum())
                bar.advance(runs - left_over - done)
                done = runs - left_over
        log_z += _log_mean(log_weight)
        share = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
        selected = _sample(share / share.sum(axis=1, keepdims=True), rng)
        return FilteredSentences([texts[run * particles + i] for run, i in enumerate(selected)], log_z)


def _last(pcfg: PCFG, prefixes: Sequence[Sequence[str]], lengths: LengthRange | None) -> FloatArray:
    """Return the distribution after each prefix of n words, (B, V+1)."""
    n = len(prefixes[0])
    if n == 0:
        first = pcfg.exact.next_token([], lengths)
        return np.tile([*first.probability, first.stop], (len(prefixes), 1))
    words = np.ascontiguousarray(np.stack([pcfg.encode(prefix) for prefix in prefixes], axis=1))
    chart = pcfg.exact.charts().causal(words, lengths, first=n)
    return np.column_stack([chart.starts[-1].T @ pcfg.exact.emission, np.exp(chart.log_stop[-1])])


def _sample(law: FloatArray, rng: np.random.Generator) -> IntArray:
    """Sample a column of each row, by its probabilities."""
    below = np.cumsum(law, axis=1)
    at = (below < rng.random((len(law), 1)) * below[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(at, law.shape[1] - 1))


def _log_mean(log_weight: FloatArray) -> FloatArray:
    top = log_weight.max(axis=1)
    return np.asarray(top + np.log(np.exp(log_weight - top[:, None]).mean(axis=1)))


def _resampled(
    texts: list[list[str]], going: BoolArray, log_weight: FloatArray, log_z: FloatArray, rng: np.random.Generator
) -> tuple[list[list[str]], BoolArray]:
    """Resample particles of filters with an effective number below half; weights and ``log_z`` change in place."""
    runs, particles = log_weight.shape
    share = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    source = np.arange(runs * particles).reshape(runs, particles)
    for run in np.flatnonzero(1.0 / (share**2).sum(axis=1) < particles / 2):
        points = (np.arange(particles) + rng.random()) / particles
        source[run] = run * particles + np.minimum(np.searchsorted(np.cumsum(share[run]), points), particles - 1)
        log_z[run] += _log_mean(log_weight[[run]])[0]
        log_weight[run] = 0.0
    return [texts[i] for i in source.ravel()], going[source.ravel()]
