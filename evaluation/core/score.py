"""A number with everything that could change it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.grammar.support.records import STRICT


@with_config(STRICT)
class ScoreRecord(TypedDict):
    """What `Score.as_record` gives, read from disk; evaluations add keys of their own."""

    name: str
    value: float | None
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    signature: NotRequired[str]


@dataclass(frozen=True)
class Score:
    """One measured value, its interval where it has one, and its signature.

    Raises:
        ValueError: the value or an end of the interval is NaN or infinite.
    """

    name: str
    value: float
    signature: str  #: every choice that could change the value, and a hash of what was scored
    low: float | None = None  #: lower end of the interval
    high: float | None = None  #: upper end of the interval

    def __post_init__(self) -> None:
        for number in (self.value, self.low, self.high):
            if number is not None and not math.isfinite(number):
                raise ValueError(f"{self.name} is or ends at {number}, which must not travel as a number")

    def as_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"name": self.name, "value": self.value, "low": self.low, "high": self.high, "signature": self.signature}

    def __str__(self) -> str:
        interval = "" if self.low is None or self.high is None else f" [{self.low:.4f}, {self.high:.4f}]"
        return f"{self.name}|{self.signature} = {self.value:.4f}{interval}"
