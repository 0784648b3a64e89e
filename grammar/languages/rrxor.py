"""Random-random-xor, a hidden Markov process with five states (Shai et al. 2024)."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from truesource.grammar.building import hidden_process
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import FloatArray

STATES = ("SS", "S0", "S1", "ST", "SF")
INITIAL = (1 / 3, 1 / 6, 1 / 6, 1 / 6, 1 / 6)  #: stationary distribution of the endless process


class RrxorSettings(LanguageSettings):
    """Parameters of random-random-xor."""

    mean_length: float = Field(20.0, ge=1.5, le=1e6, description="Mean number of words of a string.")

    def n_rules(self) -> int:
        """Return the number of rules: one for each first state, end, transition with a word, and word."""
        return 5 + 8 + 8 + 2


def transitions() -> dict[str, FloatArray]:
    """Return P(word, next state | state) of each word, (5, 5), of the endless process."""
    start, first_0, first_1, true, false = range(5)
    zero, one = np.zeros((2, 5, 5))
    zero[start, first_0] = one[start, first_1] = 0.5
    zero[first_0, false] = one[first_0, true] = 0.5
    zero[first_1, true] = one[first_1, false] = 0.5
    zero[false, start] = one[true, start] = 1.0
    return {"0": zero, "1": one}


def build(settings: RrxorSettings) -> GrammarRules:
    """Build random-random-xor: two random bits, then 1 if they differ and else 0, and so on.

    A string begins in any phase: in each state with its stationary probability in the endless process. After each word
    it ends with probability 1 / ``mean_length``; the published process is endless.

    Symbols, each a state and its continuation: ``SS`` before the first bit, ``S0`` and ``S1`` after a first bit 0 or 1,
    ``ST`` before a 1 and ``SF`` before a 0 that follows from two bits; words in quotes.
    """
    return hidden_process(transitions(), states=STATES, initial=INITIAL, mean_length=settings.mean_length)


LANGUAGE = Language(
    title="random-random-xor: two random bits, then their xor, and so on",
    tests="belief states beyond the needs of the next word, in the layers of a network",
    citation=(
        "Shai, Marzen, Teixeira, Gietelink Oldenziel and Riechers (2024), Transformers represent belief state geometry"
        " in their residual stream, NeurIPS"
    ),
    settings=RrxorSettings,
    build=build,
)
