"""What the section on tokenisation shows: the distance to the truth in parts, estimators, entropy and gap."""

from __future__ import annotations

from typing import Any

from truesource.evaluation.tokenisation.estimators.registry import ONE_BEST
from truesource.evaluation.tokenisation.further_tables import said_reference
from truesource.evaluators.tokenisation import figures
from truesource.evaluators.tokenisation.records import TokenisationRecord
from truesource.report.finished_run import FinishedRun, Record

SHOWN = (
    *("log_p", "standard_error", "ppl", "bits_per_character", "least_ess", "largest_share", "steps_per_piece"),
    "log_upper",
    *("rounding", "error_too_small", "below_bound"),
    *("improvement", "gap", "gap_per_piece", "canonical_mass"),
)  #: names of records that the template looks at, None where a run has none
OF_TEXTS = (
    "documents",
    "left_out",
    "below_bound",
    "ppl",
    "improvement",
    "gap_per_piece",
    "entropy_per_piece",
    "entropy_gap_rho",
)
VALUES = {"exact": "exact", "lower": "lower bound", "unbiased": "unbiased", "part": "of a part"}


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Figures and rows for the template; None where nothing was summed."""
    records = run.of_models("tokenisation", TokenisationRecord)
    if not records:
        return None
    parts = [row for found in records.values() for row in figures.parts_of(found["records"])]
    models = []
    for number, (name, found) in enumerate(records.items()):
        costs = figures.costs_of(found["records"])
        whole = {
            r["name"]: r
            for r in found["records"]
            if r.get("run") == found["marginal"] and "by" not in r and "table" not in r
        }
        models.append(
            {
                "name": name,
                "marginal": found["marginal"],
                "value": VALUES[found["bound"]],
                "documents": found["documents"],
                "left_out": found["left_out"],
                "rows": _rows(found["records"]),
                "sets": _sets(found["records"]),
                "texts": _texts(found["records"], found["marginal"]),
                "grid": _grid(found["records"]),
                "scores": {**dict.fromkeys(SHOWN), **whole},
                "cost": figures.cost_figure(number, costs) if costs else None,
                "reference": said_reference(costs[0].reference) if costs else None,
                "entropy": figures.entropy_figure(number, found["gaps"], found["records"]) if found["gaps"] else None,
            }
        )
    return {"figure": figures.decomposition_figure(parts) if parts else None, "models": models}


def _sets(records: list[Record]) -> list[dict[str, Any]]:
    """One row a set of sentences of another language: its name, and its records by name."""
    rows: dict[str, dict[str, Any]] = {}
    for record in records:
        if record.get("table") == "out-of-domain":
            row = rows.setdefault(record["set"], {"name": record["set"], "domain_shift_per_word": None})
            row[record["name"]] = record
    return list(rows.values())


def _texts(records: list[Record], marginal: str) -> list[dict[str, Any]]:
    """One row a set of texts, and one of all together: its name, and its records by name; none of one set alone."""
    rows: dict[str, dict[str, Any]] = {}
    for record in records:
        if record.get("table") == "sets" and record["run"] in (ONE_BEST, marginal):
            row = rows.setdefault(record["set"], {**dict.fromkeys(OF_TEXTS), "name": record["set"], "own": None})
            if record["run"] == marginal:
                row[record["name"]] = record
            if record["run"] == ONE_BEST and record["name"] == "ppl":
                row["own"] = record
    return list(rows.values())


def _grid(records: list[Record]) -> dict[str, Any] | None:
    """The published table: its columns, cuts and method each, and a row a set with a value or None for each."""
    table = "sets-grid" if any(record.get("table") == "sets-grid" for record in records) else "grid"
    columns: dict[tuple[str | None, str], None] = {}
    rows: dict[str | None, dict[tuple[str | None, str], Record]] = {}
    for record in records:
        if record.get("table") == table and record["name"] == "ppl":
            place = record["cuts"], record["method"]
            columns[place] = None
            rows.setdefault(record.get("set"), {})[place] = record
    if not rows:
        return None
    samples = max(record["samples"] or 0 for row in rows.values() for record in row.values())
    cells = [{"name": name, "cells": [row.get(place) for place in columns]} for name, row in rows.items()]
    return {"columns": list(columns), "rows": cells, "samples": samples}


def _rows(records: list[Record]) -> list[dict[str, Any]]:
    """One row an estimator: what it is called, what its value is, and its records by name."""
    rows: dict[str, dict[str, Any]] = {}
    for record in records:
        if "table" not in record and "by" not in record and "bound" in record:
            first = {**dict.fromkeys(SHOWN), "run": record["run"], "value": VALUES[record["bound"]]}
            row = rows.setdefault(record["run"], first)
            row[record["name"]] = record
    return list(rows.values())
