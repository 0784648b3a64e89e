"""A section of the report: its title, its template, what that shows, and which models have no such measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.report.finished_run import FinishedRun

if TYPE_CHECKING:
    from truesource.run.evaluator import Evaluator


@dataclass(frozen=True)
class Part:
    """A section; the page writes its number, its title and its notes."""

    name: str  #: id of the section
    title: str
    template: Path  #: the body, which finds ``content`` as ``section``
    content: Any
    notes: Sequence[str] = ()  #: sentences below the body


def unmeasured(run: FinishedRun, evaluators: Sequence[Evaluator]) -> dict[str, list[str]]:
    """By evaluator, why there was nothing to measure: a sentence a reason, naming the models it holds for."""
    sections = {kind: each.name for each in evaluators for kind in (each.name, *each.kinds)}
    found: dict[str, dict[str, list[str]]] = {}
    for name, stage in run.stages.items():
        kind, _, model = name.partition(":")
        note = stage["unmeasured"]
        if note is not None and kind in sections:
            found.setdefault(sections[kind], {}).setdefault(note["reason"], []).append(model)
    return {part: [sentence(reason, models) for reason, models in notes.items()] for part, notes in found.items()}


def sentence(reason: str, models: Sequence[str]) -> str:
    """The first stage of a kind that all models share has no model; the others only repeat its reason."""
    whom = "" if "" in models else f" ({', '.join(models)})"
    return f"Nothing to measure{whom}: {reason}."
