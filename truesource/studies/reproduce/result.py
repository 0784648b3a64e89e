"""The result of a row: its JSON file, as the command writes it and the pages read it."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import BaseModel

from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell, score_cell
from truesource.grammar.support.records import STRICT, Count, read_record
from truesource.studies.reproduce.quantities import QuantityValue, TestedClaim, Verdict, verdict_of
from truesource.studies.reproduce.rows import Paper, Row, needs_of

PACKAGES = ("numpy", "scipy", "torch", "transformers")  #: packages whose versions are kept
SPEC = ".4g"
EXACT = "no interval"  #: said of numbers that are compared as they are


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
        """Return the number as it is written."""
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
    """The verdict on a claim."""

    model_config = STRICT

    verdict: str
    differences: list[DifferenceResult]


class RowResult(BaseModel):
    """The result of a row."""

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
    claims: Sequence[TestedClaim],
    *,
    seconds: float,
    digest: str,
    overrides: Sequence[str] | None,
) -> RowResult:
    """Return the result of a row that has run."""
    return RowResult(
        row=row.name,
        verdict=str(verdict_of(row, [claim.verdict for claim in claims])),
        quantities={name: NumberResult.of(value) for name, value in quantities.items()},
        claims=[_claim(claim) for claim in claims],
        minutes=round(seconds / 60, 2),
        seeds=max((len(value.by_seed) for value in quantities.values()), default=0),
        command=command_of(row, overrides),
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        versions={"python": platform.python_version(), "truesource": version("truesource"), **_versions()},
        digest=digest,
    )


def command_of(row: Row, overrides: Sequence[str] | None = None) -> str:
    """Return the command that runs a row."""
    return shlex.join(
        ["truesource", "reproduce", row.name, *(part for each in overrides or () for part in ("--set", each))]
    )


def read_result(path: Path) -> RowResult:
    """Read the result of a row.

    Raises:
        InputError: the file is missing or damaged.
    """
    return read_record(path, RowResult, what="the result of this row", remedy="run truesource reproduce again")


def _claim(claim: TestedClaim) -> ClaimResult:
    differences = [
        DifferenceResult(what=each.what, verdict=str(each.verdict), **NumberResult.of(each.measured).model_dump())
        for each in claim.differences
    ]
    return ClaimResult(verdict=str(Verdict(claim.verdict)), differences=differences)


def _versions() -> dict[str, str]:

    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def list_table(papers: Mapping[str, Paper], results: Mapping[str, RowResult]) -> ReportTable:
    """Return all rows: what each shows and needs, and its verdict."""
    rows = []
    for paper in papers.values():
        for row in paper.rows:
            result = results.get(row.name)
            verdict = "cannot be tested" if not row.runs else result.verdict if result is not None else None
            minutes = None if result is None else number_cell(result.minutes, ".0f" if result.minutes >= 10 else ".1f")
            needs = ", ".join(f"${name}" for name in needs_of(row)) or None
            rows.append(TableRow([row.name, f"{paper.paper}, {row.shows}", row.title, needs, verdict, minutes]))
    return ReportTable(
        columns=("row", "shows", "about", "needs", "verdict", "minutes"),
        keys=("row", "shows", "about", "needs", "verdict", "minutes"),
        text=(0, 1, 2, 3, 4),
        rows=rows,
        note="; ".join(
            f"${name} ({paper.paper}): {what}" for paper in papers.values() for name, what in paper.needs.items()
        ),
    )


def quantities_table(row: Row, result: RowResult) -> ReportTable:
    """Return the published numbers next to ours."""
    rows = []
    for name, value in result.quantities.items():
        published = row.quantities[name].published
        rows.append(
            TableRow(
                [name, number_cell(published, SPEC), shown_number(value), number_cell(len(value.by_seed) or None, ",")],
                value.signature,
            )
        )
    return ReportTable(
        title=f"{row.shows}: {row.title}",
        columns=("quantity", "published", "ours", "seeds"),
        keys=("quantity", "published", "ours", "seeds"),
        rows=rows,
        note=intervals_note(list(result.quantities.values())),
    )


def claims_table(row: Row, result: RowResult) -> ReportTable:
    """Return the claims with the differences that decide them."""
    rows = []
    for claim, tested in zip(row.claims, result.claims, strict=True):
        for number, difference in enumerate(tested.differences):
            says, verdict = (claim.says, tested.verdict) if number == 0 else ("", "")
            rows.append(TableRow([says, difference.what, shown_number(difference), verdict]))
    return ReportTable(
        columns=("claim", "tested", "value", "verdict"),
        keys=("claim", "tested", "value", "verdict"),
        text=(0, 1, 3),
        rows=rows,
        note="A claim holds if its interval lies in the claimed range; intervals are not adjusted for multiple claims",
    )


def shown_number(found: NumberResult) -> Cell | None:
    """Return a value with its interval."""
    if found.value is None:
        return None
    small = f"{EXACT}" if found.low is None else ""
    return score_cell({"value": found.value, "low": found.low, "high": found.high}, SPEC, small=small)


def intervals_note(numbers: Sequence[NumberResult]) -> str:
    """Return a note of what the intervals are over."""
    over = list(dict.fromkeys(each.over for each in numbers if each.over is not None))
    return f"95% intervals over {'; '.join(over)}" if over else ""
