"""`truesource reproduce`: rerun tables and figures of published papers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.terminal.console import echo
from truesource.terminal.options import Json, Overrides, Runs

if TYPE_CHECKING:
    from truesource.studies.reproduce.result import RowResult
    from truesource.studies.reproduce.rows import Row
    from truesource.terminal.output import OutputFiles

WIDTH = 120  #: characters, without a terminal


def command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ROW_OR_PAPER]...", help="Rows such as jz-table-1, or a whole paper.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List all rows with their verdicts; run nothing.")] = False,
    set_: Overrides = None,
    runs: Runs = Path("runs"),
    results: Annotated[
        Path | None, typer.Option("--results", metavar="FOLDER", help="Write each result to FOLDER/ROW.json.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the stages and why each would run; write nothing.")
    ] = False,
    json: Json = None,
) -> None:
    """Rerun a table or figure of a published paper, and say which of its claims hold here.

    A row names the configuration that it runs, the numbers that it reads from the results, and the claims of the paper
    about them. Rows of a paper share the folder of their run: finished stages are skipped, and an interrupted row
    resumes if the command is repeated. Some rows read files that do not come with truesource: --list says which.
    With --set, a row runs at another scale.

    Example: truesource reproduce jz-table-1 --set corpus.splits.train=1000000
    """
    from truesource.grammar.support.errors import InputError
    from truesource.studies.reproduce.rows import find_rows, require_needs
    from truesource.terminal.output import OutputFiles, json_of

    files = OutputFiles(json=json, force=True)  # repeated calls resume a run and rewrite its numbers
    if listed == bool(names):
        raise InputError("name rows, such as jz-table-1, or give --list")
    if listed:
        list_rows(files)
        return
    rows = list({row.name: row for name in names or () for row in find_rows(name)}.values())
    if untested := [row for row in rows if row.untested]:
        raise InputError(f"{untested[0].name} ({untested[0].shows}) cannot be tested: {untested[0].untested}")
    for row in rows:
        require_needs(row)
    if dry_run:
        _show_stages(rows, set_, runs, files)
        return
    results_of_rows = [_reproduce(row, set_, runs, results) for row in by_configuration(rows)]
    places = [str(results)] if results is not None else []
    written = [*places, *files.write(json=json_of([each.model_dump(mode="json") for each in results_of_rows]))]
    wrote = f"Wrote {' and '.join(written)}. " if written else ""
    echo(f"{wrote}Next: truesource reproduce --list")


def by_configuration(rows: list[Row]) -> list[Row]:
    """Group rows by configuration: alternating configurations in one run folder would rerun stages."""
    first = {tuple(row.run): number for number, row in reversed(list(enumerate(rows)))}
    return sorted(rows, key=lambda row: first[tuple(row.run)])


def list_rows(files: OutputFiles) -> None:
    """Print all rows."""
    from truesource.studies.reproduce.result import list_table, read_result
    from truesource.studies.reproduce.rows import needs_of, papers, result_file
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    every = papers()
    paths = {row.name: result_file(row) for paper in every.values() for row in paper.rows if row.runs}
    results = {name: read_result(path) for name, path in paths.items() if path.is_file()}
    show(list_table(every, results), WIDTH)
    records = [
        {
            "row": row.name,
            "paper": paper.paper,
            "shows": row.shows,
            "title": row.title,
            "run": row.run,
            "verdict": results[row.name].verdict if row.name in results else None,
            "untested": row.untested,
            "needs": list(needs_of(row)),
        }
        for paper in every.values()
        for row in paper.rows
    ]
    written = files.write(json=json_of(records))
    wrote = f"Wrote {' and '.join(written)}. " if written else ""
    echo(f"{wrote}Next: truesource reproduce jz-figure-1")


def _reproduce(row: Row, set_: list[str] | None, runs: Path, results: Path | None) -> RowResult:
    from truesource.grammar.support.atomic_files import write_json
    from truesource.studies.reproduce.reproduction import reproduce
    from truesource.studies.reproduce.result import claims_table, quantities_table
    from truesource.terminal.tables import show

    result = reproduce(row, runs=runs, overrides=set_)
    show(quantities_table(row, result), WIDTH)
    show(claims_table(row, result), WIDTH)
    echo(f"{row.name}, {row.shows}: {result.verdict}.")
    from truesource.studies.reproduce.quantities import Verdict

    if result.verdict == Verdict.CORRECTED and row.correction is not None:
        echo(f"The correction: {row.correction}")
    if results is not None:
        results.mkdir(parents=True, exist_ok=True)
        write_json(results / f"{row.name}.json", result.model_dump(mode="json"))
    return result


def _show_stages(rows: list[Row], set_: list[str] | None, runs: Path, files: OutputFiles) -> None:
    from truesource.evaluation.show.table import ReportTable, TableRow
    from truesource.run.config import RunConfig
    from truesource.run.experiment import dry_run
    from truesource.studies.reproduce.rows import compose
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    table_rows, records = [], []
    for row in rows:
        for each in compose(row, set_):
            if not isinstance(each.config, RunConfig):
                table_rows.append(TableRow([row.name, each.name, "", "a sweep: unfinished cells"]))
                continue
            for stage in dry_run(each.config, base=Path.cwd(), runs=runs):
                table_rows.append(TableRow([row.name, stage.name, str(stage.fate), stage.reason]))
                records.append({"row": row.name, "stage": stage.name, "fate": str(stage.fate), "why": stage.reason})
    columns = ("row", "stage", "", "why")
    show(ReportTable(columns=columns, keys=("row", "stage", "fate", "why"), text=(0, 1, 2, 3), rows=table_rows), WIDTH)
    written = files.write(json=json_of(records))
    echo(f"{f'Wrote {written[0]}' if written else 'Nothing was written'}. Next: the same command without --dry-run.")
