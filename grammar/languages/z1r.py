"""Zero-one-random, a hidden Markov process with three phases (Shai et al. 2024)."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from truesource.grammar.building import hidden_process
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import FloatArray

STATES = ("S0", "S1", "SR")


class Z1rSettings(LanguageSettings):
    """Parameters of zero-one-random."""

    mean_length: float = Field(20.0, ge=1.5, le=1e6, description="Mean number of words of a string.")

    def n_rules(self) -> int:
        """Return the number of rules: one for each first state, end, transition with a word, and word."""
        return 3 + 4 + 4 + 2


def transitions() -> dict[str, FloatArray]:
    """Return P(word, next state | state) of each word, (3, 3), of the endless process."""
    zero, one = np.zeros((2, 3, 3))
    zero[0, 1] = one[1, 2] = 1.0
    zero[2, 0] = one[2, 0] = 0.5
    return {"0": zero, "1": one}


def build(settings: Z1rSettings) -> GrammarRules:
    """Build zero-one-random: 0, then 1, then a random bit, and so on.

    A string begins in each of the three phases with probability 1/3, so that the phase has to be inferred. After each
    word it ends with probability 1 / ``mean_length``; the published process is endless.

    Symbols: ``S0``, ``S1`` and ``SR``, a state (named after what it emits) and its continuation; words in quotes.
    """
    return hidden_process(transitions(), states=STATES, initial=(1 / 3, 1 / 3, 1 / 3), mean_length=settings.mean_length)


LANGUAGE = Language(
    title="zero-one-random: 0, then 1, then a random bit, and so on",
    tests="how a network infers the phase of a process",
    citation=(
        "Shai, Marzen, Teixeira, Gietelink Oldenziel and Riechers (2024), Transformers represent belief state geometry"
        " in their residual stream, NeurIPS"
    ),
    settings=Z1rSettings,
    build=build,
)
