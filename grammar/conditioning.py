"""A range of sentence lengths as a condition, shared by corpora and oracles."""

from __future__ import annotations

import re
from dataclasses import dataclass
from numbers import Integral

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import approximate

LONGEST = 1_000_000  #: most tokens of a sentence that is drawn


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
            raise InputError(f"a length range needs integers with 1 <= low <= high, got {self.low}..{self.high}")
        if self.high > LONGEST:
            raise InputError(
                f"the upper end of a length range is at most {LONGEST:,} tokens, got {approximate(self.high)}",
                code="too-large",
            )

    @classmethod
    def parse(cls, text: str) -> LengthRange | None:
        """Read a range such as ``6..25``; ``none`` is no condition.

        Raises:
            InputError: the text is neither.
        """
        if not isinstance(text, str):
            raise InputError(f"expecting text such as '6..25', got {text!r}; LengthRange(6, 25) takes numbers")
        if text.strip().lower() == "none":
            return None
        match = re.fullmatch(r"\s*(\d+)\s*\.\.\s*(\d+)\s*", text)
        if match is None:
            raise InputError(f"expecting a length range such as 6..25 (inclusive) or none, got {text!r}")
        return cls(int(match[1]), int(match[2]))

    def __contains__(self, length: object) -> bool:
        return isinstance(length, Integral) and self.low <= int(length) <= self.high

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


def length_condition(text: str | None, recorded: LengthRange | None = None) -> LengthRange | None:
    """Return the length condition of a call: the requested one, else the recorded one, else none.

    Args:
        text: ``6..25`` or ``none``; None if the call has no length option.
        recorded: condition recorded with the corpus or model.

    Raises:
        InputError: ``text`` is no range.
    """
    return recorded if text is None else LengthRange.parse(text)


def condition_text(condition: LengthRange | None) -> str:
    """Return ``lengths 6..25``, or ``no length range``."""
    return "no length range" if condition is None else f"lengths {condition}"
