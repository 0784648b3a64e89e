"""The section of the report, and the page of `truesource explain`."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from truesource.evaluation.explain.report import BODY, content, sentence
from truesource.evaluation.show.records import Record
from truesource.grammar.support.atomic_files import write_text
from truesource.report.environment import render

PAGE = "report.html"  #: page of one model, in the folder of its explanation


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
