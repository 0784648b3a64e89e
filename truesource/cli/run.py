"""`truesource run`: an experiment from its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Overrides, Rebuild, Runs


def command(
    config: Annotated[str, typer.Argument(help="YAML file, or a name such as demo; truesource new lists all.")],
    set_: Overrides = None,
    runs: Runs = Path("runs"),
    force: Rebuild = False,
) -> None:
    """Run an experiment: treebank, grammar, corpus, models, comparison, report.

    Stages with unchanged inputs are skipped. An interrupted run continues when the command is repeated.

    Example: truesource run demo --set models.0.training.max_steps=300
    """
    from truesource.experiment import execute, load_config

    from truesource.run.packaged import find_config

    path, base = find_config(config)
    report = execute(load_config(path, set_), base=base, runs=runs, force=force)
    show(report)


def show(report: Path) -> None:
    """Print the table of a run and where its report is."""
    from truesource.cli.table import print_results
    from truesource.grammar.support.records import read_record
    from truesource.report.finished_run import COMPARISON
    from truesource.report.records import REMEDY, ComparedRow, ResultRow
    from truesource.report.replicates import summarised

    rows = read_record(report.parent / "results.json", list[ResultRow], remedy=REMEDY)
    compared = report.parent / COMPARISON
    seeds = read_record(compared, list[ComparedRow], remedy=REMEDY) if compared.is_file() else []
    print_results(summarised(rows, seeds))
    echo(f"Wrote {report}. Next: open it in a browser.")
