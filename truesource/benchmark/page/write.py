"""Writes the page: tables, figures and what each language tests, in one file without anything outside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from truesource.benchmark.figures import heat_map, heat_map_width, learning_curves
from truesource.benchmark.page.words import SECTIONS, TERMS, answer, facts
from truesource.benchmark.results import REFERENCES, BenchmarkResults
from truesource.benchmark.standings import Standings
from truesource.benchmark.suite import Suite
from truesource.benchmark.tables import headline_table, is_reference, language_table, models_table, suite_signature
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import write_text
from truesource.report.environment import render
from truesource.report.scripts import script_hash
from truesource.report.table import ReportTable

FOLDER = Path(__file__).parent
PHONE, DESK = 72, 106  #: pixels of the page for an inch of a figure, at least and at most


def write_page(
    results: BenchmarkResults,
    suite: Suite,
    path: Path,
    *,
    found: Sequence[Standings],
    differences: Sequence[ReportTable] = (),
    own: Sequence[str] = (),
) -> None:
    """Write the page of a benchmark, whole or not at all: one file of HTML.

    Args:
        results: of models on the suite.
        suite: what they were measured on.
        path: of the page.
        found: standings of the models, see `truesource.benchmark.standings.standings`.
        differences: see `truesource.benchmark.differences.difference_tables`.
        own: names of models that are marked as the reader's.

    Raises:
        InputError: the results are of another suite, or the page cannot be written.
    """
    made_on = results["suite"]
    if (made_on["name"], made_on["version"], made_on["digest"]) != (suite.name, suite.version, suite.digest):
        raise InputError(
            f"these results are of suite {made_on['name']}-v{made_on['version']} ({made_on['digest']}), and the page is"
            f" of {suite.label} ({suite.digest}); name the suite that they were made on",
            code="other-suite",
        )
    script = (FOLDER / "sort.js").read_text(encoding="utf-8")
    page = render(
        FOLDER / "page.html.j2",
        path,
        templates={"style.css": FOLDER / "style.css"},
        results=results,
        suite=suite,
        sections=SECTIONS,
        terms=TERMS,
        answer=answer(results, found, own),
        competing=sum(not is_reference(row) for each in found for row in each.rows),
        objectives=[_objective(results, each, suite, own) for each in found],
        languages=[_language(results, found, suite, name, own) for name in suite.languages],
        differences=differences,
        models=models_table(found, own=own),
        references=REFERENCES,
        script=script,
        script_hash=script_hash(script),
    )
    write_text(path, page)


def _objective(results: BenchmarkResults, found: Standings, suite: Suite, own: Sequence[str]) -> dict[str, Any]:
    return {
        "title": f"{found.objective.capitalize()} models",
        "headline": _unsigned(headline_table(found, suite, own=own)),
        "signature": suite_signature(found, suite),
        "test": heat_map(found, own=own) or "",
        "least": round(PHONE * heat_map_width(found)),
        "most": round(DESK * heat_map_width(found)),
        "longer": heat_map(found, "longer", own=own),
        "curves": learning_curves(results, found, own=own),
    }


def _language(
    results: BenchmarkResults, found: Sequence[Standings], suite: Suite, name: str, own: Sequence[str]
) -> dict[str, Any]:
    tables = [
        replace(language_table(each, suite, name, own=own), title=f"{each.objective.capitalize()} models")
        for each in found
    ]
    return {
        "name": name,
        "tests": suite.languages[name].tests,
        "facts": facts(results, suite, name, [each.objective for each in found]),
        "tables": [_unsigned(table) for table in tables if table.rows],
    }


def _unsigned(table: ReportTable) -> ReportTable:
    """Without the signatures of its rows, of which the page has one for each objective."""
    return replace(table, rows=[replace(row, signature="") for row in table.rows])
