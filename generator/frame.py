"""Which positions of a sentence count: one object that models, oracle and measures share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ScoringFrame:
    """Which positions are scored. Positions 0..n-1 are the words, position n is the end of the sentence.

    A masked model has no end-of-sentence position, whatever ``eos`` says.
    """

    eos: bool = True  #: the end of the sentence is predicted and counted
    first: bool = True  #: the first word counts
    unk: Literal["token", "skip"] = "token"  #: unknown words count as the token ``<unk>``, or are skipped as targets

    def __str__(self) -> str:
        eos, first = ("in" if x else "out" for x in (self.eos, self.first))
        return f"eos:{eos}|first:{first}|unk:{self.unk}|unit:nats"


FRAMES = {
    "default": ScoringFrame(),
    "paper": ScoringFrame(eos=False, first=False, unk="skip"),  # Jumelet & Zuidema 2023
}
