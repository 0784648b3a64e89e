"""`truesource run`: an experiment from its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Runs


def command(
    config: Annotated[Path, typer.Argument(help="YAML configuration; data/demo.yaml is a documented example.")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override a key: --set corpus.lengths=4..30")] = None,
    runs: Runs = Path("runs"),
    force: Annotated[
        bool, typer.Option("--force", help="Make every stage again, also those that are up to date.")
    ] = False,
) -> None:
    """Run an experiment: treebank, grammar, corpus, models, comparison, report.

    Stages whose inputs have not changed are skipped; after Ctrl-C or a kill the same command goes on.
    """
    from truesource.experiment import execute, load_config

    report = execute(load_config(config, set_), base=config.resolve().parent, runs=runs, force=force)
    show(report)


def show(report: Path) -> None:
    """Print the table of a run and where its report is."""
    from truesource.cli.table import print_results
    from truesource.grammar.records import read_record
    from truesource.report.records import REMEDY, ResultRow

    print_results(read_record(report.parent / "results.json", list[ResultRow], remedy=REMEDY))
    echo(f"Wrote {report}. Next: open it in a browser.")
