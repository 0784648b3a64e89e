"""A number with everything that could change it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.measures.interval_ends import enclosing
from truesource.grammar.support.printable import brief
from truesource.grammar.support.records import STRICT

_NO_INTERVAL = re.compile(r"(?:^|\|)ci:none/([^|]+)")


def no_interval(signature: str) -> str | None:
    """The code of why there is no interval, such as ``fewer-than-10-sentences``; None: the signature names none."""
    match = _NO_INTERVAL.search(signature)
    return None if match is None else match[1]


def no_interval_entry(signature: str) -> dict[str, str]:
    """The entry ``no_interval`` of a record: the code of `no_interval`; nothing where the signature names none."""
    code = no_interval(signature)
    return {} if code is None else {"no_interval": code}


@with_config(STRICT)
class ScoreRecord(TypedDict):
    """Record of `Score.as_record`, read from disk; evaluations add keys of their own."""

    name: str
    value: float | None
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    signature: NotRequired[str]
    no_interval: NotRequired[str]


@dataclass(frozen=True)
class Score:
    """One measured value, its interval where it has one, which encloses the value, and its signature.

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
        low, high = enclosing(self.value, self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def without_interval(self, code: str) -> Score:
        """Return the same value without an interval, and in the signature why.

        Args:
            code: of the reason, see `truesource.grammar.support.printable`.
        """
        return Score(self.name, self.value, re.sub(r"(^|\|)ci:[^|]+", rf"\1ci:none/{code}", self.signature))

    def as_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        record = {"name": self.name, "value": self.value, "low": self.low, "high": self.high}
        why = {} if self.no_interval is None else {"no_interval": self.no_interval}
        return {**record, "signature": self.signature, **why}

    @property
    def no_interval(self) -> str | None:
        """The code of why a measure has no interval, which its signature names; None of counts, which never have."""
        return None if self.low is not None or isinstance(self.value, int) else no_interval(self.signature)

    def __repr__(self) -> str:
        ends = "" if self.low is None or self.high is None else f" [{self.low:.6g}, {self.high:.6g}]"
        return brief(f"Score({self.name} {self.value:.6g}{ends})")

    def __str__(self) -> str:
        interval = "" if self.low is None or self.high is None else f" [{self.low:.4f}, {self.high:.4f}]"
        return f"{self.name}|{self.signature} = {self.value:.4f}{interval}"
