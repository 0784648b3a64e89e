"""Which positions of a sentence count: one object that models, oracle and measures share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from truesource.grammar.support.arrays import BoolArray, IntArray
from truesource.grammar.support.errors import InputError


@dataclass(frozen=True, slots=True)
class ScoringFrame:
    """Which positions are scored. Positions 0..n-1 are the words, position n is the end of the sentence.

    A masked model has no end-of-sentence position, whatever ``eos`` says. Without ``first`` position 0 never counts,
    since nothing stands before it: of an empty sentence that is the end.
    """

    eos: bool = True  #: the end of the sentence is predicted and counted
    first: bool = True  #: the first word counts (of an empty sentence, its end)
    unk: Literal["token", "skip"] = "token"  #: unknown words count as the token ``<unk>``, or are skipped as targets

    def __str__(self) -> str:
        eos, first = ("in" if x else "out" for x in (self.eos, self.first))
        return f"eos:{eos}|first:{first}|unk:{self.unk}|unit:nats"

    def counts(self, position: IntArray, length: IntArray, unknown: BoolArray) -> BoolArray:
        """(T,) whether each position counts.

        Args:
            position: (T,) in its sentence.
            length: (T,) number of words of its sentence.
            unknown: (T,) whether the model reads ``<unk>`` there; false at ends.
        """
        counted = ~unknown if self.unk == "skip" else np.ones(len(position), dtype=bool)
        if not self.eos:
            counted &= position < length
        if not self.first:
            counted &= position > 0
        return counted


PRESETS = ("default", "paper")
END = "</s>"  #: the end of a sentence, wherever tokens are listed or stored


def preset_frame(name: str, objective: Literal["causal", "masked"]) -> ScoringFrame:
    """A frame by name: ``default`` counts everything, ``paper`` what Jumelet & Zuidema (2023) count.

    Their masked score leaves out unknown words only; their causal one the first word and the end as well.

    Raises:
        InputError: there is no such preset.
    """
    if name not in PRESETS:
        raise InputError(f"unknown frame {name!r}; there are {', '.join(PRESETS)}")
    if name == "default":
        return ScoringFrame()
    return ScoringFrame(eos=False, first=objective == "masked", unk="skip")
