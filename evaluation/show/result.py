"""The result of a public call: numbers, tables and a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from typing_extensions import override

from truesource.evaluation.core.score import NoScore, Score, read_score
from truesource.evaluation.show.table import Cell, ReportTable, TableRow
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.call_arguments import as_path
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import FIGURES
from truesource.grammar.support.printable import ResultRecords, listed
from truesource.grammar.support.records import read_record

FORMAT = "truesource result"
REMEDY = "save the result again"
_OF_PARTS = ("by", "table", "seed_of", "baseline")  #: keys of records that are about a part, or about a difference


@dataclass(frozen=True, kw_only=True, repr=False)
class Result(ResultRecords):
    """The result of `truesource.compare`, `truesource.evaluate` and `truesource.bound`.

    ``result["kl"]`` is a number with its interval and signature. ``print(result)`` shows its tables, as a notebook
    does; `table` returns one of them, `to_pandas` all numbers as a data frame, `figure` draws.
    """

    kind: str  #: the call, such as ``compare`` or ``evaluate pplu``
    scores: Sequence[Score | NoScore]  #: every number, with keys such as model and group
    tables: Sequence[ReportTable]
    inputs: Sequence[str] = ()  #: a line for each text, if the call read or sampled several
    notes: Sequence[str] = ()  #: sentences for the reader, such as differences between the text and its truth
    draw: Callable[[], str | None] | None = field(default=None, compare=False)  #: makes the figure, as ``<svg>``
    detail: Any = field(default=None, compare=False)  #: the measurements, with all arrays; None after `load`

    @override
    def as_scores(self) -> Sequence[Score | NoScore]:
        return self.scores

    def __getitem__(self, name: str | tuple[str, str]) -> Score:
        """Return a number of the whole text by its name, or by the names of model and number.

        Raises:
            KeyError: there is no such number, or there are several, of different models.
        """
        if not isinstance(name, str | tuple) or (isinstance(name, tuple) and len(name) != 2):
            raise KeyError(f"a number has a name, such as 'ppl', or a model and a name, not {name!r}")
        model, name = (None, name) if isinstance(name, str) else name
        whole = [
            each
            for each in self.scores
            if isinstance(each, Score) and not any(each.get(key) is not None for key in _OF_PARTS)
        ]
        named = [each for each in whole if each.name == name and model in (None, each.get("model"))]
        if len(named) == 1:
            return named[0]
        if not named:
            raise KeyError(f"there is no {name}; there are {listed(sorted({each.name for each in whole}))}")
        models = listed([f"{each.get('model')}" for each in named])
        raise KeyError(f"{name} is known of {models}; name the model too, as in result[model, {name!r}]")

    def table(self, number: int = 0) -> ReportTable:
        """Return a table; the first one has the main numbers.

        Raises:
            InputError: there are fewer.
        """
        if number not in range(-len(self.tables), len(self.tables)):
            raise InputError(f"{self.kind} has no table {number!r}; it has {len(self.tables)}, numbered from 0")
        return self.tables[number]

    def figure(self, path: str | Path | None = None) -> str:
        """Draw the figure, as ``<svg>``, and write it to a file: .svg, .pdf or .png.

        Raises:
            InputError: this result has no figure (code ``no-figure``), or the file has another ending.
        """
        from truesource.evaluation.show.figures import write_figure

        path = None if path is None else as_path(path, "a file to write")
        if path is not None and path.suffix.lower() not in FIGURES:
            raise InputError(f"the name of a figure ends in {', '.join(FIGURES)}", path)
        svg = self.drawn()
        if not svg:
            reason = f"{self.kind} has no figure here; its numbers are in table() and to_pandas()"
            raise InputError(reason, code="no-figure")
        if path is not None:
            write_figure(path, self.drawn)
        return svg

    def drawn(self) -> str:
        """Return the figure, as ``<svg>``; empty if this result has none."""
        return (self.draw and self.draw()) or ""

    def to_latex(self) -> str:
        """Return all tables as LaTeX (booktabs)."""
        from truesource.evaluation.show.table_files import latex_text

        return latex_text(self.tables)

    def save(self, path: str | Path) -> None:
        """Write numbers, tables and notes as JSON, or the tables alone as .csv, .parquet, .tex or .md.

        Raises:
            InputError: the file cannot be written.
        """
        from truesource.evaluation.show.table_files import WRITERS, write_tables

        path = as_path(path, "a file to write")
        if path.suffix.lower() in WRITERS:
            write_tables(path, self.tables)
            return
        record = {"format": FORMAT, "kind": self.kind, "numbers": self.records(), "notes": [*self.notes]}
        write_json(path, {**record, "tables": [asdict(each) for each in self.tables]})

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Read the JSON file of `save`; the figure and ``detail`` are not in it.

        Raises:
            InputError: the file is missing, or is something else.
        """
        path = as_path(path, "a result")
        if not path.is_file():
            raise InputError("there is no such result; check the path", path, code="missing")
        record = read_record(path, dict[str, Any], what="the result", remedy=REMEDY)
        if record.get("format") != FORMAT:
            raise InputError("this is not a result that Result.save wrote", path)
        return cls(
            kind=record["kind"],
            scores=[*map(read_score, record["numbers"])],
            tables=[*map(_table, record["tables"])],
            notes=record["notes"],
        )

    def __repr__(self) -> str:
        return f"Result({self.kind}: {super().__repr__().removeprefix('Result(')}"

    def __str__(self) -> str:
        return "\n\n".join([*map(str, self.tables), *self.notes])

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return "".join(each._repr_html_() for each in self.tables) + notes


def _table(record: Mapping[str, Any]) -> ReportTable:
    rows = [TableRow(**{**row, "cells": [_cell(cell) for cell in row["cells"]]}) for row in record["rows"]]
    return ReportTable(**{**record, "rows": rows})


def _cell(record: Any) -> Cell | str | None:
    if not isinstance(record, dict):
        return record  # type: ignore[no-any-return]
    ends, score = record["ends"], record["score"]
    return Cell(
        **{**record, "ends": None if ends is None else tuple(ends), "score": None if score is None else tuple(score)}
    )
