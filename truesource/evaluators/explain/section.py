"""The section of the report, and the page of `truesource explain`."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluators.explain.results import ladder_figure, ladder_table, lever_figure, lever_table, sentence
from truesource.evaluators.explain.where import memory_sentence, places_table
from truesource.grammar.support.files import write_text
from truesource.report.environment import render
from truesource.report.records import Record

if TYPE_CHECKING:
    from truesource.report.finished_run import FinishedRun

BODY = Path(__file__).with_name("section.html.j2")
PAGE = "report.html"  #: of one model, in the folder of its explanation


def section(run: FinishedRun) -> dict[str, Any] | None:
    """What the template shows; None where nothing was explained."""
    records = run.of_models("explain", dict[str, Any])
    if not records:
        return None
    return {**content(records), "opening": [sentence(record) for record in records.values() if record["levers"]]}


def content(records: dict[str, Record]) -> dict[str, Any]:
    """What the template shows of each model."""
    return {
        "models": [
            {
                "name": name,
                "sentence": sentence(record),
                "levers": lever_table(record) if record["levers"] else None,
                "reasons": lever_table(record).note,
                "lever_figure": lever_figure(record, f"levers-{name}"),
                "ladder": ladder_table(record) if record["ladder"] else None,
                "ladder_figure": ladder_figure(record, f"ladder-{name}"),
                "where": places_table(record),
                "memory": memory_sentence(record),
                "signature": record["kl"]["signature"],
            }
            for name, record in records.items()
        ]
    }


def write_page(record: Record, folder: Path) -> Path:
    """Write ``report.html`` of one model into the folder of its explanation."""
    target = folder / PAGE
    page = render(
        Path(__file__).with_name("page.html.j2"),
        folder,
        templates={BODY.name: BODY},
        title=f"Why {record['model']} is off",
        answer=sentence(record),
        section=content({record["model"]: record}),
        sentences=record["sentences"],
        version=version("truesource"),
    )
    write_text(target, page)
    return target
