"""`truesource run`: an experiment from its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.cli.console import console, echo
from truesource.cli.options import Overrides, Rebuild, Runs

if TYPE_CHECKING:
    from truesource.run.config import RunConfig

WIDTH = 100  #: characters, where there is no terminal


def command(
    config: Annotated[str, typer.Argument(help="YAML file, or the name of one that comes with truesource.")],
    set_: Overrides = None,
    runs: Runs = Path("runs"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the stages and why each would run; write nothing.")
    ] = False,
    force: Rebuild = False,
) -> None:
    """Run an experiment: treebank, grammar, corpus, models, comparison, report.

    Stages with unchanged inputs are skipped. An interrupted run continues when the command is repeated.

    By name: architectures, compare, demo, dynamics, gallery, language, probing, tendencies, tokenisation; treebank and
    treebank_baseline read the treebank in the folder $TREEBANK. A file of that name comes first. truesource new writes
    a configuration of your own.

    Example: truesource run demo --set models.0.training.max_steps=300
    """
    from truesource.experiment import execute, load_config
    from truesource.run.packaged import find_config

    path, base = find_config(config)
    settings = load_config(path, set_)
    if dry_run:
        show_stages(settings, base, runs, force)
    else:
        show(execute(settings, base=base, runs=runs, force=force))


def show_stages(config: RunConfig, base: Path, runs: Path, force: bool) -> None:
    """Print what would become of each stage."""
    from rich.table import Table

    from truesource.experiment import dry_run
    from truesource.run.dry_run import Fate

    stages = dry_run(config, base=base, runs=runs, force=force)
    table = Table("stage", "", "why")
    for column in table.columns:
        column.overflow = "fold"
    for stage in stages:
        table.add_row(stage.name, stage.fate, stage.reason)
    console(WIDTH).print(table)
    numbers = {fate: sum(stage.fate is fate for stage in stages) for fate in Fate}
    counted = ", ".join(f"{number} {fate}" for fate, number in numbers.items() if number)
    echo(f"{runs / config.name}: {counted}. Nothing was written. Next: the same command without --dry-run.")


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
