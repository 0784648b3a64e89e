"""The result of a row: its JSON file, as the command writes it and the pages read it."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from truesource.grammar.support.records import STRICT, Count, read_record
from truesource.reproduce.quantities import QuantityValue
from truesource.reproduce.rows import Row
from truesource.reproduce.verdicts import Tested, Verdict, verdict_of

PACKAGES = ("numpy", "scipy", "torch", "transformers")  #: whose versions are kept


class NumberResult(BaseModel):
    """A quantity, or a difference of a claim."""

    model_config = STRICT

    value: float | None
    low: float | None = None
    high: float | None = None
    over: str | None = None
    by_seed: dict[str, float] = {}
    missing: list[int] = []
    signature: str = ""

    @classmethod
    def of(cls, measured: QuantityValue) -> NumberResult:
        """As it is written."""
        return cls(
            value=measured.value,
            low=measured.low,
            high=measured.high,
            over=measured.over,
            by_seed={str(seed): value for seed, value in measured.by_seed.items()},
            missing=list(measured.missing),
            signature=measured.signature,
        )


class DifferenceResult(NumberResult):
    """A difference that a claim is about."""

    what: str
    verdict: str


class ClaimResult(BaseModel):
    """What became of a claim."""

    model_config = STRICT

    verdict: str
    differences: list[DifferenceResult]


class RowResult(BaseModel):
    """What became of a row."""

    model_config = STRICT

    row: str
    verdict: str
    quantities: dict[str, NumberResult]
    claims: list[ClaimResult]
    minutes: float
    seeds: Count  #: of networks; 0: no quantity is of several
    command: str
    machine: str
    versions: dict[str, str]
    digest: str  #: of the row and its configurations


def result_of(
    row: Row,
    quantities: Mapping[str, QuantityValue],
    claims: Sequence[Tested],
    *,
    seconds: float,
    digest: str,
    overrides: Sequence[str] | None,
) -> RowResult:
    """The result of a row that has run."""
    return RowResult(
        row=row.name,
        verdict=str(verdict_of(row, [claim.verdict for claim in claims])),
        quantities={name: NumberResult.of(found) for name, found in quantities.items()},
        claims=[_claim(claim) for claim in claims],
        minutes=round(seconds / 60, 2),
        seeds=max((len(found.by_seed) for found in quantities.values()), default=0),
        command=command_of(row, overrides),
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        versions={"python": platform.python_version(), "truesource": version("truesource"), **_versions()},
        digest=digest,
    )


def command_of(row: Row, overrides: Sequence[str] | None = None) -> str:
    """The command that runs a row."""
    return shlex.join(
        ["truesource", "reproduce", row.name, *(part for each in overrides or () for part in ("--set", each))]
    )


def read_result(path: Path) -> RowResult:
    """Read the result of a row.

    Raises:
        InputError: the file is missing or damaged.
    """
    return read_record(path, RowResult, what="the result of this row", remedy="run truesource reproduce again")


def as_json(result: RowResult) -> dict[str, Any]:
    """A result as JSON values."""
    return result.model_dump(mode="json")


def _claim(claim: Tested) -> ClaimResult:
    differences = [
        DifferenceResult(what=each.what, verdict=str(each.verdict), **NumberResult.of(each.measured).model_dump())
        for each in claim.differences
    ]
    return ClaimResult(verdict=str(Verdict(claim.verdict)), differences=differences)


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError

    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
