"""Random n-gram languages (Svete et al. 2024)."""

from __future__ import annotations

import itertools

import numpy as np
from pydantic import Field

from truesource.grammar.building import LARGEST_SEED, Automaton, dirichlet, generator
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.settings import DEFAULT_SEED


class RandomNgramSettings(LanguageSettings):
    """Parameters of random n-gram languages."""

    order: int = Field(3, ge=1, le=20, description="Words of an n-gram; each depends on the order - 1 words before it.")
    vocabulary: int = Field(12, ge=1, le=10**6, description="Number of word types.")
    concentration: float = Field(
        0.3, ge=0.05, le=1000.0, description="Dirichlet concentration of the next word after each context."
    )
    mean_length: float = Field(20.0, ge=1.5, le=1e6, description="Mean number of words of a string.")
    seed: int = Field(DEFAULT_SEED, ge=0, le=LARGEST_SEED, description="Seed of the random probabilities.")

    def n_contexts(self) -> int:
        """Return the number of contexts of 0 to order - 1 words; shorter ones are at the beginning of a string."""
        return sum(self.vocabulary**length for length in range(self.order))

    def n_rules(self) -> int:
        """Return the number of rules: two for each word after each context, and one for each word."""
        return 2 * self.n_contexts() * self.vocabulary + self.vocabulary


def tables(settings: RandomNgramSettings) -> FloatArray:
    """Return P(word | context, the string continues), (contexts, vocabulary); shorter contexts first, in order."""
    rng = generator(settings.seed, 3)
    return dirichlet(rng, settings.concentration, (settings.n_contexts(), settings.vocabulary))


def build(settings: RandomNgramSettings) -> GrammarRules:
    """Build an n-gram language with probabilities from a symmetric Dirichlet distribution, one for each context.

    A context is the ``order`` - 1 words before, or all of them at the beginning of a string. After each word, the
    string ends with probability 1 / ``mean_length`` in any context, so lengths are geometric and no string is empty.
    Symbols are contexts, such as ``after w1 w2`` and ``after <bos> w1``.
    """
    v, order, end = settings.vocabulary, settings.order, 1.0 / settings.mean_length
    words = [f"w{w}" for w in range(1, v + 1)]
    names: list[str] = []
    targets = []
    first = 0  # number of the first context of a length
    for length in range(order):
        begin = ["<bos>"] if length < order - 1 else []
        names += (" ".join(["after", *begin, *context]) for context in itertools.product(words, repeat=length))
        followers = np.arange(v ** (length + 1))  # a context and a word, as one number to the base v
        longest = length == order - 1
        targets.append(first + followers % v**length if longest else first + v**length + followers)
        first += v**length
    weight = tables(settings) * (1.0 - end)
    return Automaton(
        states=names,
        words=words,
        source=np.repeat(np.arange(first), v),
        word=np.tile(np.arange(v), first),
        target=np.concatenate(targets),
        weight=weight.ravel(),
        end=np.full(first, end),
    ).grammar()


LANGUAGE = Language(
    title="random n-gram languages",
    tests="dependence on a fixed number of previous words",
    citation=(
        "Svete, Borenstein, Zhou, Augenstein and Cotterell (2024), Can transformers learn n-gram language models?,"
        " EMNLP"
    ),
    settings=RandomNgramSettings,
    build=build,
)
