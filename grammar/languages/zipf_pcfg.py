"""Random context-free grammars with word classes of Zipfian frequencies and a given mean length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from truesource.grammar.building import LARGEST_SEED, Rule, dirichlet, generator, zipf
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.settings import DEFAULT_SEED


class ZipfPcfgSettings(LanguageSettings):
    """Parameters of random context-free grammars."""

    nonterminals: int = Field(10, ge=1, le=100_000, description="Number of phrase symbols.")
    classes: int = Field(10, ge=1, le=100_000, description="Number of word classes, which share no words.")
    vocabulary: int = Field(500, ge=1, le=10**6, description="Number of word types.")
    rules: int = Field(4, ge=1, le=10_000, description="Number of rules of each kind for each phrase symbol.")
    concentration: float = Field(0.5, ge=0.05, le=1000.0, description="Dirichlet concentration of rule probabilities.")
    both: float = Field(0.3, ge=0.0, le=1.0, description="Share of branching rules whose children are both phrases.")
    right: float = Field(0.7, ge=0.0, le=1.0, description="Share of the others whose phrase is on the right.")
    zipf: float = Field(1.0, ge=0.0, le=5.0, description="Exponent of word frequencies by rank in each class.")
    mean_length: float = Field(10.0, ge=1.5, le=1000.0, description="Mean number of words of a string.")
    seed: int = Field(DEFAULT_SEED, ge=0, le=LARGEST_SEED, description="Seed of the random grammar.")

    @model_validator(mode="after")
    def _every_class_has_a_word(self) -> Self:
        if self.vocabulary < self.classes:
            raise ValueError(f"vocabulary: {self.classes:,} classes need at least as many words; raise it")
        return self

    def n_rules(self) -> int:
        """Return the number of rules: four kinds for each phrase, one for each phrase and class, and the words."""
        return 4 * self.nonterminals * self.rules + self.nonterminals + self.classes + self.vocabulary

    @property
    def branching(self) -> float:
        """Probability that a phrase branches.

        A phrase is one word of a class, or with this probability b has two children, of which the expected number of
        phrases is 1 + ``both``. All phrases have the mean length L = 1 - b + b ((1 + both) L + 1 - both), so b = (L -
        1) / ((1 + both) L - both).
        """
        length = self.mean_length
        return (length - 1.0) / ((1.0 + self.both) * length - self.both)


def build(settings: ZipfPcfgSettings) -> GrammarRules:
    """Build a random grammar in the manner of Clark (2018), with word classes.

    A phrase is one word of a class, or branches into two phrases (``both``), a class and a phrase on its right
    (``right``), or a phrase and a class on its right. Each of these four kinds has ``rules`` rules for each phrase,
    with children drawn uniformly without repetition and probabilities from a symmetric Dirichlet distribution; rules
    that make every symbol reachable are added. A class has its share of the vocabulary. Its word of rank r has a
    probability in proportion to ``r ** -zipf``.

    The probability of branching is the same for all phrases and gives the mean length exactly; strings of every length
    occur. With ``both = 0``, the grammar is linear, and with ``right`` of 0 or 1 the language is regular.

    Symbols: phrases ``N0`` (the start), ``N1``, ...; classes ``C0``, ``C1``, ... Words: ``w1``, ``w2``, ..., by class.
    """
    n, classes, branch = settings.nonterminals, settings.classes, settings.branching
    rng = generator(settings.seed, 18)
    below: list[list[int]] = [[] for _ in range(n)]  # a tree of all phrases, from the start
    for child in range(1, n):
        below[int(rng.integers(child))].append(child)
    rules: list[Rule] = []
    for a in range(n):
        for code, p in _drawn(rng, settings, classes, range(a, classes, n)):
            rules.append((f"N{a}", (f"C{code}",), (1.0 - branch) * p))
        waiting = below[a]
        for left, right, share in (
            ("N", "N", settings.both),
            ("C", "N", (1.0 - settings.both) * settings.right),
            ("N", "C", (1.0 - settings.both) * (1.0 - settings.right)),
        ):
            if share == 0.0:
                continue
            lefts, rights = n if left == "N" else classes, n if right == "N" else classes
            step, others = (1, lefts) if right == "N" else (rights, rights)  # between phrases; partners of each
            needed = [child * step + int(rng.integers(others)) * (rights if step == 1 else 1) for child in waiting]
            waiting = []
            for code, p in _drawn(rng, settings, lefts * rights, needed):
                i, j = divmod(code, rights)
                rules.append((f"N{a}", (f"{left}{i}", f"{right}{j}"), branch * share * p))
    rules += _lexicon(settings)
    return GrammarRules.from_rules(rules, start="N0", words=lambda parent, _: parent.startswith("C"))


def _drawn(
    rng: np.random.Generator, settings: ZipfPcfgSettings, options: int, needed: Sequence[int]
) -> list[tuple[int, float]]:
    """Return ``settings.rules`` distinct numbers below ``options``, including ``needed``, with probabilities."""
    result = dict.fromkeys(needed)
    number = min(max(settings.rules, len(result)), options)
    if 2 * number > options:
        result |= dict.fromkeys(rng.permutation(options).tolist())
    while len(result) < number:
        result |= dict.fromkeys(rng.integers(options, size=number).tolist())
    chosen = list(result)[:number]
    weights = dirichlet(rng, settings.concentration, (1, number))[0]
    return list(zip(chosen, weights.tolist(), strict=True))


def _lexicon(settings: ZipfPcfgSettings) -> Iterator[Rule]:
    """Yield rules of words; the first classes have one word more if the classes cannot have equal sizes."""
    size, more = divmod(settings.vocabulary, settings.classes)
    word = 0
    for c in range(settings.classes):
        for p in zipf(size + (c < more), settings.zipf):
            word += 1
            yield f"C{c}", (f"w{word}",), p


LANGUAGE = Language(
    title="random context-free grammars with word classes and a given mean length",
    tests="how learning depends on branching, sparsity and word frequencies",
    citation=(
        "Clark (2018), Testing distributional properties of context-free grammars, International Conference on"
        " Grammatical Inference"
    ),
    settings=ZipfPcfgSettings,
    build=build,
)
