"""Mess3, a hidden Markov process whose belief states form a fractal (Marzen and Crutchfield 2017)."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from truesource.grammar.building import hidden_process
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import FloatArray

STATES = ("SA", "SB", "SC")


class Mess3Settings(LanguageSettings):
    """Parameters of Mess3."""

    x: float = Field(0.05, ge=0.0, le=0.5, description="Probability of each of the two other states as the next one.")
    alpha: float = Field(0.85, ge=0.0, le=1.0, description="Probability that a state is entered with its own word.")
    mean_length: float = Field(20.0, ge=1.5, le=1e6, description="Mean number of words of a string.")

    def n_rules(self) -> int:
        """Return the number of rules: one for each first state, end, transition with a word, and word."""
        return 3 + 9 + 27 + 3


def transitions(settings: Mess3Settings) -> dict[str, FloatArray]:
    """Return P(word, next state | state) of each word, (3, 3), of the endless process."""
    entered = np.where(np.eye(3, dtype=bool), 1.0 - 2.0 * settings.x, settings.x)
    emitted = np.where(np.eye(3, dtype=bool), settings.alpha, (1.0 - settings.alpha) / 2.0)  # (state entered, word)
    return {word: entered * emitted[:, w] for w, word in enumerate("ABC")}


def build(settings: Mess3Settings) -> GrammarRules:
    """Build Mess3: three states, each entered with its own word with probability ``alpha``.

    The process stays in a state with probability 1 - 2 ``x``, and begins in each state with probability 1/3. After each
    word the string ends with probability 1 / ``mean_length``; the published process is endless.

    Symbols: ``SA``, ``SB`` and ``SC``, a state and its continuation; words in quotes.
    """
    return hidden_process(
        transitions(settings), states=STATES, initial=(1 / 3, 1 / 3, 1 / 3), mean_length=settings.mean_length
    )


LANGUAGE = Language(
    title="Mess3, three hidden states that words hardly distinguish",
    tests="belief states, which form a fractal, in the vectors of a network",
    citation=(
        "Marzen and Crutchfield (2017), Nearly maximally predictive features and their dimensions, Physical Review E;"
        " Shai, Marzen, Teixeira, Gietelink Oldenziel and Riechers (2024), Transformers represent belief state geometry"
        " in their residual stream, NeurIPS"
    ),
    settings=Mess3Settings,
    build=build,
)
