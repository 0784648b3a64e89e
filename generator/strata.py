"""Stratified corpora: the number of sentences of each split with an event is its expected number.

A grammar that `truesource.grammar.tilting` tilted to P(E) = m / n gives corpora of n sentences with m of E, plus or
minus about the square root of m. Given exactly m, they are at uniformly random positions; sentences with and without E
then have their distributions in the grammar, independently.
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

_STREAM = 0x57A7  #: key of the random numbers for positions of sentences with the event


@dataclass(frozen=True, eq=False)
class Strata:
    """The event of a tilted grammar, and the number of sentences of each shard with it."""

    event: RewardAutomaton
    counts: Mapping[tuple[int, int], int]  #: by stream of the shard
    seed: int

    @classmethod
    def of(cls, truth: Truth, plan: Plan, shards: Sequence[Shard]) -> Strata:
        """Return the strata of a plan: the expected number in each split, rounded, spread over its shards at random.

        Raises:
            InputError: the truth is no grammar that was tilted by an event.
        """
        tilt = truth.meta.get("tilt", {})
        if not isinstance(truth, PCFG) or not (tilt.get("kind") == "probability" or tilt.get("holds")):
            raise InputError(
                "a stratified corpus needs a grammar with an event; create one with truesource tilt --probability"
            )
        event = event_of(tilt["reward"])
        probability = Tilting(truth, event).event_probability(plan.lengths)
        counts: dict[tuple[int, int], int] = {}
        for number, (split, sentences) in enumerate(plan.splits.items()):
            shards_of_split = [shard for shard in shards if shard.split == split]
            rng = _random(plan.seed, number)
            spread = rng.multivariate_hypergeometric(
                [s.sentences for s in shards_of_split], round(sentences * probability)
            )
            counts |= {shard.stream: count for shard, count in zip(shards_of_split, spread.tolist(), strict=True)}
        return cls(event.automaton(truth), counts, plan.seed)

    def holds(self, sampler: TruthSampler, derivations: Derivations) -> BoolArray:
        """Return which sentences have the event, (n,)."""
        words = sampler.left[derivations.rules[derivations.rules >= sampler.first_lexical]]
        begins = np.cumsum(derivations.n_tokens, dtype=np.int64) - derivations.n_tokens
        state = np.full(len(derivations), self.event.start, dtype=np.int32)
        for place in range(int(derivations.n_tokens.max(initial=0))):
            going = np.flatnonzero(derivations.n_tokens > place)
            state[going] = self.event.step[state[going], words[begins[going] + place]]
        return np.asarray(self.event.end[state] > 0.0)

    def order(self, shard: Shard) -> IntArray:
        """Return a random order of the sentences of a shard, given those with the event first, (n,)."""
        return _random(self.seed, *shard.stream).permutation(shard.sentences)


def _random(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(_STREAM, *key))))
