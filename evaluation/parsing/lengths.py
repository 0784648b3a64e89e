"""Ranges of sentence length that parse scores are given for."""

from __future__ import annotations

from typing import NamedTuple


class LengthBand(NamedTuple):
    """Sentence lengths in words, both ends inclusive."""

    low: int
    high: int | None  #: None: no maximum

    def __contains__(self, length: object) -> bool:
        return isinstance(length, int) and self.low <= length and (self.high is None or length <= self.high)

    def __str__(self) -> str:
        return f"{self.low}..{'' if self.high is None else self.high}"


SHORT = LengthBand(1, 40)  #: the sentences that evalb gives scores of besides those of all
BANDS = (LengthBand(1, 10), LengthBand(11, 20), LengthBand(21, 30), LengthBand(31, 40), LengthBand(41, None))
