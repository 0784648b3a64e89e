"""`truesource run`: run an experiment from its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truesource.cli.warm import compile_all, warm_beside
from truesource.terminal.console import console, echo
from truesource.terminal.options import Json, Overrides, Rebuild, Runs, Shard

if TYPE_CHECKING:
    from truesource.run.config import RunConfig
    from truesource.terminal.output import OutputFiles

WIDTH = 100  #: characters, without a terminal


def command(
    config: Annotated[str | None, typer.Argument(help="YAML file, or the name of a packaged configuration.")] = None,
    set_: Overrides = None,
    runs: Runs = Path("runs"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the stages and why each would run; write nothing.")
    ] = False,
    warm: Annotated[
        bool, typer.Option("--warm", help="Compile all kernels and stop, as for a container image (a minute, once).")
    ] = False,
    shard: Shard = None,
    json: Json = None,
    force: Rebuild = False,
) -> None:
    """Run an experiment from its configuration: treebank, grammar, corpus, models, comparison, report.

    The run demo has the whole chain on an English grammar that comes with truesource; it takes a few minutes on two
    cores. truesource new writes a configuration to edit. A run skips stages with unchanged inputs. To resume an
    interrupted run, repeat the command.

    A configuration with the key axes is a sweep: it trains models of several sizes on corpora of several sizes, and
    fits scaling laws to their distance from the truth. The irreducible loss is known, so the report also shows the
    error of the usual fit. A sweep keeps finished cells; if a cell fails, the others continue, and the exit code is 2.

    These configurations come with truesource: architectures, compare, context, control, demo, diffusion, dynamics,
    gallery, language, probing, scaling, tendencies, tokenisation; treebank and treebank_baseline read the treebank in
    the folder $TREEBANK. A file with such a name takes precedence.

    Example: truesource run demo

    Example: truesource run demo --set models.0.training.max_steps=300

    Example: truesource run scaling --set axes.seeds=[1,2,3]

    truesource keeps compiled kernels in its installation folder, or in the folder that the environment variable
    NUMBA_CACHE_DIR names.
    """
    from truesource.grammar.support.errors import InputError
    from truesource.run.reading import find_config, is_sweep
    from truesource.terminal.output import OutputFiles

    if warm:
        if config is not None:
            raise InputError("--warm compiles kernels and runs nothing; use it without the other arguments")
        compile_all()
        return
    if config is None:
        raise InputError("name a configuration, as in truesource run demo; truesource new writes a new one")
    path, base = find_config(config)
    files = OutputFiles(json=json, force=True)  # repeated calls resume a run and rewrite its numbers
    if is_sweep(path):
        if dry_run or force:
            raise InputError("--dry-run and --force are for runs, but this is a sweep, which keeps its cells", path)
        from truesource.cli.run_sweep import run_sweep

        run_sweep(path, base, set_, runs, shard, files)
        return
    if shard is not None:
        raise InputError("--shard is a share of the cells of a sweep, but this is a run; remove --shard", path)
    from truesource.run.experiment import execute, load_config  # seconds of imports, after the quick check

    settings = load_config(path, set_)
    if dry_run:
        show_stages(settings, base, runs, files, force=force)
        return
    with warm_beside(induces=settings.treebank is not None and settings.grammar.method == "split_merge"):
        report = execute(settings, base=base, runs=runs, force=force)
    show_run(report, files)


def show_stages(config: RunConfig, base: Path, runs: Path, files: OutputFiles, *, force: bool) -> None:
    """Print what a run would do with each stage."""
    from truesource.evaluation.show.table import ReportTable, TableRow
    from truesource.run.experiment import dry_run
    from truesource.run.runner import Fate
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    stages = dry_run(config, base=base, runs=runs, force=force)
    rows = [TableRow([stage.name, str(stage.fate), stage.reason]) for stage in stages]
    show(ReportTable(columns=("stage", "", "why"), keys=("stage", "fate", "why"), text=(0, 1, 2), rows=rows), WIDTH)
    numbers = {fate: sum(stage.fate is fate for stage in stages) for fate in Fate}
    words = {Fate.RUNS: "to run", Fate.MAY_RUN: "that may run", Fate.UP_TO_DATE: "up to date"}
    counted = ", ".join(f"{number} {words[fate]}" for fate, number in numbers.items() if number)
    written = files.write(
        json=json_of([{"stage": stage.name, "fate": str(stage.fate), "why": stage.reason} for stage in stages])
    )
    wrote = f"Wrote {' and '.join(written)}" if written else "Nothing was written"
    following = "Next: the same command without --dry-run."
    if numbers[Fate.UP_TO_DATE] == len(stages):
        following = f"There is nothing to do; the report is {runs / config.name / 'report.html'}."
    echo(f"{runs / config.name}: stages: {counted}. {wrote}. {following}")


def show_run(report: Path, files: OutputFiles) -> None:
    """Print the table of a run and the path of its report."""
    from truesource.report.finished_run import with_models
    from truesource.terminal.output import json_of

    records = results_of(report)
    show_results(with_models(records))
    echo(f"Wrote {report}{files.also(json=json_of(records))}. Next: open the report in a browser.")


def show_results(records: Sequence[Mapping[str, Any]]) -> None:
    """Print a row for each model, and a sentence on each model that is not comparable or has impossible scores."""
    from truesource.evaluation.show.score_tables import results_table
    from truesource.evaluation.show.words import bound_warning, left_out, too_few
    from truesource.terminal.tables import show

    show(results_table(records))
    for sentence in (*left_out(records), *too_few(records), bound_warning(records)):
        if sentence:
            console().print(sentence)


def results_of(report: Path) -> list[Mapping[str, Any]]:
    """Return the comparable records of the models of a run; of several seeds, their mean.

    Raises:
        InputError: the records next to the report are missing or damaged.
    """
    from truesource.evaluation.show.records import REMEDY, ComparedRow, ResultRow
    from truesource.grammar.support.records import read_record
    from truesource.report.finished_run import COMPARISON, comparable, summarised

    rows = read_record(report.parent / "results.json", list[ResultRow], remedy=REMEDY)
    compared = report.parent / COMPARISON
    seeds = read_record(compared, list[ComparedRow], remedy=REMEDY) if compared.is_file() else []
    return summarised(comparable(report.parent, rows), seeds)
