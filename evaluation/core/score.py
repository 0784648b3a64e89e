"""A number with everything that could change it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NotRequired, Self

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.measures.interval_ends import enclosing
from truesource.grammar.support.printable import brief
from truesource.grammar.support.records import STRICT

Key = str | int | float | bool | None | Sequence[object]  #: a JSON value that identifies a score
SCORE = ("name", "value", "low", "high", "signature", "no_interval")  #: keys that every record has, or may have
_NO_INTERVAL = re.compile(r"(?:^|\|)ci:none/([^|]+)")


def no_interval(signature: str) -> str | None:
    """Return the reason for a missing interval, such as ``fewer-than-10-sentences``; None if the signature has none."""
    match = _NO_INTERVAL.search(signature)
    return None if match is None else match[1]


def no_interval_entry(signature: str) -> dict[str, str]:
    """Return the entry ``no_interval`` of a record: the code of `no_interval`; empty without a code."""
    code = no_interval(signature)
    return {} if code is None else {"no_interval": code}


@with_config(STRICT)
class ScoreRecord(TypedDict):
    """Record of `Score.as_record`, read from disk; evaluations add further keys."""

    name: str
    value: float | None
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    signature: NotRequired[str]
    no_interval: NotRequired[str]


class _Keyed:
    """A dataclass with keys and more entries."""

    keys: Mapping[str, Key]
    more: Mapping[str, Key]

    def at(self, **keys: Key) -> Self:
        """Return the same with further keys ahead of its own."""
        return replace(self, keys={**keys, **self.keys})  # type: ignore[type-var]

    def get(self, key: str, default: Key = None) -> Key:
        """Return one of the keys, or of the further entries; ``default`` without it."""
        return self.keys.get(key, self.more.get(key, default))


@dataclass(frozen=True)
class Score(_Keyed):
    """A measured value, its signature, and its interval, if any, which encloses the value.

    ``score["by"]`` is an entry of its record.

    Raises:
        ValueError: the value or an end of the interval is NaN or infinite.
    """

    name: str
    value: float
    signature: str = ""  #: every choice that could change the value, and a hash of what was scored
    low: float | None = None  #: lower end of the interval
    high: float | None = None  #: upper end of the interval
    #: what was measured, such as model, objective and group; first in records
    keys: Mapping[str, Key] = field(default_factory=dict, hash=False)
    #: further entries, such as a p-value; last in records
    more: Mapping[str, Key] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for number in (self.value, self.low, self.high):
            if number is not None and not math.isfinite(number):
                raise ValueError(f"{self.name} is or ends at {number}, which is no finite number")
        low, high = enclosing(self.value, self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Score:
        """Read the record of `as_record`.

        Raises:
            KeyError: it has no name or no value.
            ValueError: it has no value, or a number is not finite.
        """
        score = read_score(record)
        if not isinstance(score, cls):
            raise ValueError(f"{record['name']} has no value")
        return score

    def with_more(self, **more: Key) -> Score:
        """Return the same score with more entries."""
        return replace(self, more={**self.more, **more})

    def __getitem__(self, key: str) -> Key:
        """Return an entry of the record.

        Raises:
            KeyError: it has no such entry.
        """
        return self.as_record()[key]

    def without_interval(self, code: str) -> Score:
        """Return the same value without an interval, with the reason in the signature.

        Args:
            code: of the reason, see `truesource.grammar.support.printable`.
        """
        signature = re.sub(r"(^|\|)ci:[^|]+", rf"\1ci:none/{code}", self.signature)
        return replace(self, signature=signature, low=None, high=None)

    def as_record(self) -> dict[str, Key]:
        """Return plain values for JSON: the keys, the score, and more."""
        record: dict[str, Key] = {"name": self.name, "value": self.value, "low": self.low, "high": self.high}
        why = {} if self.no_interval is None else {"no_interval": self.no_interval}
        signed = {"signature": self.signature} if self.signature else {}
        return {**self.keys, **record, **signed, **why, **self.more}

    @property
    def no_interval(self) -> str | None:
        """Reason in the signature for a missing interval, as a code; None for counts, which never have one."""
        return None if self.low is not None or isinstance(self.value, int) else no_interval(self.signature)

    def __repr__(self) -> str:
        ends = "" if self.low is None or self.high is None else f" [{self.low:.6g}, {self.high:.6g}]"
        return brief(f"Score({self.name} {self.value:.6g}{ends})")

    def __str__(self) -> str:
        interval = "" if self.low is None or self.high is None else f" [{self.low:.4f}, {self.high:.4f}]"
        return f"{self.name}|{self.signature} = {self.value:.4f}{interval}"


@dataclass(frozen=True)
class NoScore(_Keyed):
    """A measure without a value, such as the step of a threshold that was not reached; see `Score`."""

    name: str
    signature: str = ""
    low: float | None = None  #: lower end of the interval of the value, if there is one
    high: float | None = None
    keys: Mapping[str, Key] = field(default_factory=dict, hash=False)
    more: Mapping[str, Key] = field(default_factory=dict, hash=False)

    def as_record(self) -> dict[str, Key]:
        """Return plain values for JSON: the record of a score with the value None."""
        record = {"name": self.name, "value": None, "low": self.low, "high": self.high}
        return {**self.keys, **record, "signature": self.signature, **self.more}


def read_score(record: Mapping[str, Any]) -> Score | NoScore:
    """Read the record of a score, or of a measure without a value.

    Raises:
        KeyError: it has no name or no value.
        ValueError: a number is not finite.
    """
    names = list(record)
    place = names.index("name")
    keys = {key: record[key] for key in names[:place]}
    more = {key: record[key] for key in names[place:] if key not in SCORE}
    name, ends, signed = record["name"], (record.get("low"), record.get("high")), record.get("signature") or ""
    if record["value"] is None:
        return NoScore(name, signed, *ends, keys, more)
    return Score(name, record["value"], signed, *ends, keys, more)


def keyed(scores: Iterable[Score], **keys: Key) -> list[Score]:
    """Return scores with the same further keys ahead of their own."""
    return [score.at(**keys) for score in scores]
