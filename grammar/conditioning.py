"""A range of sentence lengths as a condition, which corpora and oracles share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from numbers import Integral

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import approximate

LONGEST = 1_000_000  #: tokens of a sentence; no longer one is drawn


@dataclass(frozen=True, slots=True)
class LengthRange:
    """Sentence lengths from ``low`` to ``high`` tokens, both inclusive and whole.

    A corpus drawn under a range follows ``P(sentence | low <= length <= high)``; the oracle that
    scores it must use the same range.
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        ends: tuple[object, object] = (self.low, self.high)
        if not (all(isinstance(end, Integral) for end in ends) and 1 <= self.low <= self.high):
            raise InputError(f"a length range needs whole numbers, 1 <= low <= high, got {self.low}..{self.high}")
        if self.high > LONGEST:
            raise InputError(
                f"a length range ends at {LONGEST:,} tokens at most, got {approximate(self.high)}; lower it",
                code="too-large",
            )

    @classmethod
    def parse(cls, text: str) -> LengthRange | None:
        """Read ``6..25``; ``none`` is no condition at all.

        Raises:
            InputError: the text is neither.
        """
        if text.strip().lower() == "none":
            return None
        match = re.fullmatch(r"\s*(\d+)\s*\.\.\s*(\d+)\s*", text)
        if match is None:
            raise InputError(f"a length range is written 6..25 (inclusive) or none, got {text!r}")
        return cls(int(match[1]), int(match[2]))

    def __contains__(self, length: object) -> bool:
        return isinstance(length, Integral) and self.low <= int(length) <= self.high

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


def length_condition(asked: str | None, recorded: LengthRange | None = None) -> LengthRange | None:
    """The length condition of a call: the one that it asks for, else the recorded one, else none.

    Args:
        asked: ``6..25`` or ``none``; None where the call does not say.
        recorded: by the corpus or the model that the call is about.

    Raises:
        InputError: ``asked`` is no range.
    """
    return recorded if asked is None else LengthRange.parse(asked)


def condition_text(condition: LengthRange | None) -> str:
    """``lengths 6..25``, or ``no length range``."""
    return "no length range" if condition is None else f"lengths {condition}"
