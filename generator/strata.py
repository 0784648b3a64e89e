"""Corpora in which the number of sentences with an event is no chance: as many of each split as are expected.

A grammar that `truesource.grammar.tilting` tilted to P(E) = m / n makes corpora of n sentences with m of E, give or
take the square root of m. Given that there are exactly m, each place is as likely as any other to have one; sentences
with and without E then have the distributions that they have in the grammar, independently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.generator.plan import Plan, Shard
from truesource.generator.sampler import Derivations, TruthSampler
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tilting.rewards import RewardAutomaton, event_of
from truesource.grammar.tilting.tilt import Tilting
from truesource.grammar.truth import Truth

_STREAM = 0x57A7  #: key of the random numbers that say where sentences of the event stand


@dataclass(frozen=True, eq=False)
class Strata:
    """The event of a tilted grammar, and how many sentences of each shard have it."""

    event: RewardAutomaton
    counts: Mapping[tuple[int, int], int]  #: by stream of the shard
    seed: int

    @classmethod
    def of(cls, truth: Truth, plan: Plan, shards: Sequence[Shard]) -> Strata:
        """As many in each split as are expected, rounded; spread over its shards as if each sentence were drawn.

        Raises:
            InputError: the truth is no grammar that was tilted by an event.
        """
        tilt = truth.meta.get("tilt", {})
        if not isinstance(truth, PCFG) or not (tilt.get("kind") == "probability" or tilt.get("holds")):
            raise InputError(
                "a stratified corpus needs a grammar with an event; make one with truesource tilt --probability"
            )
        event = event_of(tilt["reward"])
        probability = Tilting(truth, event).event_probability(plan.lengths)
        counts: dict[tuple[int, int], int] = {}
        for number, (split, sentences) in enumerate(plan.splits.items()):
            own = [shard for shard in shards if shard.split == split]
            rng = _random(plan.seed, number)
            spread = rng.multivariate_hypergeometric([s.sentences for s in own], round(sentences * probability))
            counts |= {shard.stream: count for shard, count in zip(own, spread.tolist(), strict=True)}
        return cls(event.automaton(truth), counts, plan.seed)

    def holds(self, sampler: TruthSampler, drawn: Derivations) -> BoolArray:
        """Return which sentences have the event, (n,)."""
        words = sampler.left[drawn.rules[drawn.rules >= sampler.first_lexical]]
        begins = np.cumsum(drawn.n_tokens, dtype=np.int64) - drawn.n_tokens
        state = np.full(len(drawn), self.event.start, dtype=np.int32)
        for place in range(int(drawn.n_tokens.max(initial=0))):
            going = np.flatnonzero(drawn.n_tokens > place)
            state[going] = self.event.step[state[going], words[begins[going] + place]]
        return np.asarray(self.event.end[state] > 0.0)

    def order(self, shard: Shard) -> IntArray:
        """Return places for the sentences of a shard of which those with the event come first, (n,): a random order."""
        return _random(self.seed, *shard.stream).permutation(shard.sentences)


def _random(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(_STREAM, *key))))
