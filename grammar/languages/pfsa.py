"""Random deterministic probabilistic automata (Borenstein et al. 2024)."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from truesource.grammar.building import LARGEST_SEED, Automaton, generator, softmax
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.settings import DEFAULT_SEED


class PfsaSettings(LanguageSettings):
    """Parameters of random deterministic probabilistic automata."""

    states: int = Field(16, ge=1, le=10**6, description="Number of states.")
    vocabulary: int = Field(16, ge=1, le=10**6, description="Number of word types.")
    transitions: int | None = Field(
        None, ge=1, le=10**6, description="Number of transitions from a state (default: one for each word)."
    )
    topology: Literal["random", "ring", "banded"] = Field(
        "random", description="Targets of transitions: random (any state), ring or banded (nearby states)."
    )
    width: int | None = Field(
        None, ge=1, le=10**6, description="Largest distance of a transition of a ring or band (default: 1)."
    )
    rank: int | None = Field(
        None, ge=1, le=1000, description="Rank of the matrix of emission logits (default: as high as it can be)."
    )
    temperature: float = Field(
        1.0, ge=0.1, le=1000.0, description="Temperature of the softmax: low concentrates, high equalises."
    )
    mean_length: float = Field(20.0, ge=1.5, le=1e6, description="Mean number of words of a string.")
    seed: int = Field(DEFAULT_SEED, ge=0, le=LARGEST_SEED, description="Seed of the random automaton.")

    @property
    def outgoing(self) -> int:
        """Number of transitions from a state."""
        return self.vocabulary if self.transitions is None else self.transitions

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.outgoing > self.vocabulary:
            raise ValueError(
                f"transitions={self.transitions} is more than vocabulary={self.vocabulary}, but the transitions of a"
                " state have distinct words; lower transitions or raise vocabulary"
            )
        if self.rank is not None and self.rank > min(self.states, self.vocabulary):
            raise ValueError(
                f"rank={self.rank} is more than the smaller of states={self.states} and vocabulary={self.vocabulary};"
                " lower it"
            )
        if self.width is not None and self.topology == "random":
            raise ValueError("width applies only to topology=ring and topology=banded; remove it or choose one")
        return self

    def n_rules(self) -> int:
        """Return the number of rules: two for each transition, and one for each word."""
        transitions = self.states * self.outgoing
        return 2 * transitions + min(self.vocabulary, transitions)


def automaton(settings: PfsaSettings) -> Automaton:
    """Return a random automaton with at most one transition for each state and word; it starts in state 0.

    Words of a state's transitions are drawn without replacement. The first transition of each state but the last leads
    to the next state, so that all are reachable; the other targets are drawn uniformly: ``random`` from all states,
    ``banded`` from states at most ``width`` away, ``ring`` likewise with the last state next to the first.

    Weights of a state's transitions are the softmax of logits over ``temperature``. Logits are independent standard
    normal variables; with a ``rank`` R they are the products of two matrices of such variables, states by R and R by
    words, over the square root of R. After each word, the string ends with probability 1 / ``mean_length`` in every
    state, so lengths are geometric and no string is empty.
    """
    n, d = settings.states, settings.outgoing
    rng = generator(settings.seed, 1)
    word: IntArray = np.stack([rng.choice(settings.vocabulary, d, replace=False) for _ in range(n)])
    weight = softmax(_logits(settings, word, rng) / settings.temperature)
    end = 1.0 / settings.mean_length
    return Automaton(
        states=[f"q{q}" for q in range(n)],
        words=[f"w{w}" for w in range(1, settings.vocabulary + 1)],
        source=np.repeat(np.arange(n), d),
        word=word.ravel(),
        target=_targets(settings, rng).ravel(),
        weight=weight.ravel() * (1.0 - end),
        end=np.full(n, end),
    )


def build(settings: PfsaSettings) -> GrammarRules:
    """Build the grammar of `automaton`."""
    return automaton(settings).grammar()


def _targets(settings: PfsaSettings, rng: np.random.Generator) -> IntArray:
    """Return the target of each transition, (states, outgoing)."""
    n, shape = settings.states, (settings.states, settings.outgoing)
    width = 1 if settings.width is None else settings.width
    state = np.arange(n)[:, None]
    if settings.topology == "random":
        target = rng.integers(0, n, size=shape)
    elif settings.topology == "ring":
        target = (state + rng.integers(-width, width + 1, size=shape)) % n
    else:
        target = rng.integers(np.maximum(state - width, 0), np.minimum(state + width, n - 1) + 1, size=shape)
    target[:-1, 0] = np.arange(1, n)
    return target


def _logits(settings: PfsaSettings, word: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return a logit for the word of each transition, (states, outgoing)."""
    if settings.rank is None:
        return rng.standard_normal(word.shape)
    logits = np.zeros(word.shape)
    for _ in range(settings.rank):
        of_state, of_word = rng.standard_normal(settings.states), rng.standard_normal(settings.vocabulary)
        logits += of_state[:, None] * of_word[word]
    logits /= np.sqrt(settings.rank)
    return logits


LANGUAGE = Language(
    title="random deterministic probabilistic automata",
    tests="learning of regular languages; the effect of states, words and rank",
    citation=(
        "Borenstein, Svete, Chan, Valvoda, Nowak, Augenstein, Chodroff and Cotterell (2024), What languages are easy to"
        " language-model? A perspective from learning probabilistic regular languages, ACL"
    ),
    settings=PfsaSettings,
    build=build,
)
