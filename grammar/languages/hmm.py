"""Random hidden Markov models."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from truesource.grammar.building import LARGEST_SEED, dirichlet, generator
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.settings import DEFAULT_SEED


class HmmSettings(LanguageSettings):
    """Parameters of random hidden Markov models."""

    states: int = Field(10, ge=1, le=10**6, description="Number of hidden states.")
    vocabulary: int = Field(100, ge=1, le=10**6, description="Number of word types.")
    initial: float = Field(1.0, ge=0.05, le=1000.0, description="Dirichlet concentration of the first state.")
    transition: float = Field(0.3, ge=0.05, le=1000.0, description="Dirichlet concentration of the next state.")
    emission: float = Field(0.1, ge=0.05, le=1000.0, description="Dirichlet concentration of a state's words.")
    mean_length: float = Field(20.0, ge=1.5, le=1e6, description="Mean number of words of a string.")
    seed: int = Field(DEFAULT_SEED, ge=0, le=LARGEST_SEED, description="Seed of the random model.")

    def n_rules(self) -> int:
        """Return the number of rules: one for each first state, end, pair of states, and word of a state."""
        return self.states * (2 + self.states + self.vocabulary)


def parameters(settings: HmmSettings) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return P(first state) (states,), P(next state | state) (states, states), P(word | state) (states, vocabulary)."""
    n, rng = settings.states, generator(settings.seed, 2)
    return (
        dirichlet(rng, settings.initial, (1, n))[0],
        dirichlet(rng, settings.transition, (n, n)),
        dirichlet(rng, settings.emission, (n, settings.vocabulary)),
    )


def build(settings: HmmSettings) -> GrammarRules:
    """Build a hidden Markov model whose probabilities are drawn from symmetric Dirichlet distributions.

    The first state is drawn, a state emits a word, the string ends with probability 1 / ``mean_length`` or the next
    state is drawn; lengths are geometric and no string is empty.

    Symbols: ``q0``, ``q1``, ... a state and its continuation; ``e0``, ``e1``, ... the word of a state.
    """
    n, v, end = settings.states, settings.vocabulary, 1.0 / settings.mean_length
    initial, transition, emission = parameters(settings)
    state, word = np.arange(1, n + 1), np.arange(v)
    names = ("S", *(f"q{i}" for i in range(n)), *(f"e{i}" for i in range(n)))
    before, after = np.repeat(state, n), np.tile(state, n)
    unary = [np.stack([np.zeros(n, dtype=np.int64), state], axis=1), np.stack([state, n + state], axis=1)]
    return GrammarRules(
        names,
        tuple(f"w{w + 1}" for w in range(v)),
        0,
        np.stack([before, n + before, after], axis=1).astype(np.int32),
        np.log(transition).ravel() + np.log1p(-end),
        np.concatenate(unary).astype(np.int32),
        np.concatenate([np.log(initial), np.full(n, np.log(end))]),
        np.stack([np.repeat(n + state, v), np.tile(word, n)], axis=1).astype(np.int32),
        np.log(emission).ravel(),
        names,
    )


LANGUAGE = Language(
    title="random hidden Markov models",
    tests="inference of hidden states from words",
    citation=(
        "Rabiner (1989), A tutorial on hidden Markov models and selected applications in speech recognition,"
        " Proceedings of the IEEE"
    ),
    settings=HmmSettings,
    build=build,
)
