"""`truesource run` for sweeps: distance from the truth by corpus size, model size and compute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from truesource.terminal.console import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truesource.grammar.support.parallel import Share
    from truesource.run.tasks import Failure
    from truesource.studies.scaling.plan import PlannedCell
    from truesource.studies.scaling.results import Sweep
    from truesource.terminal.output import OutputFiles


def run_sweep(
    path: Path, base: Path, overrides: list[str] | None, runs: Path, shard: str | None, files: OutputFiles
) -> None:
    """Train and score the cells of a sweep that are not finished, and show all cells; if some fail, the exit code is 2.

    Args:
        path: configuration.
        base: folder that relative paths in the configuration start from.
        overrides: overrides of configuration keys.
        runs: folder for all runs.
        shard: share of the cells for this job; None: all.
        files: output files.

    Raises:
        InputError: the configuration, or a file that it names, cannot be used.
    """
    from truesource.grammar.support.errors import require_extras
    from truesource.grammar.support.parallel import Share

    share = Share() if shard is None else Share.parse(shard)
    require_extras("`truesource run` of a sweep", "lm", "report")
    folder, failures = train(path, base, overrides, runs, share)
    try:
        evaluated(folder, files, failures, shared=shard is not None)
    finally:
        for failure in failures:
            echo(f"failed: {failure.task}: {failure.reason}", err=True)
    if failures:
        cells = "1 cell" if len(failures) == 1 else f"{len(failures)} cells"
        echo(f"truesource: {cells} failed; repeat the command to retry", err=True)
        raise typer.Exit(2)


def evaluated(folder: Path, files: OutputFiles, failures: Sequence[Failure[PlannedCell]], *, shared: bool) -> None:
    """Show and write the finished cells of a sweep; ``shared``: other jobs may be working on the other cells."""
    from truesource.studies.scaling.report import write_results
    from truesource.studies.scaling.results import read_sweep
    from truesource.terminal.output import json_of

    sweep = read_sweep(folder)
    if sweep.missing and shared:
        echo(
            f"Wrote this job's cells of {folder}; {sweep.unfinished} are not finished."
            " Next: run the other jobs; the last one writes the report."
        )
        return
    if not sweep.rows and failures:
        return
    if sweep.missing:
        echo(f"{sweep.unfinished} cells are not finished and are excluded", err=True)
    show(sweep)
    report = write_results(sweep, folder)
    also = files.also(json=json_of(sweep.records()))
    echo(f"Wrote {report}, {folder / 'scaling.json'}{also}. Next: open the report in a browser.")


def train(
    path: Path, base: Path, overrides: list[str] | None, runs: Path, share: Share
) -> tuple[Path, list[Failure[PlannedCell]]]:
    """Train and score missing cells; return the folder of the sweep and the failed cells."""
    from truesource.evaluation.core.differences import disjoint_exactly, of_conditions, of_grammar
    from truesource.generator.corpus import Corpus
    from truesource.studies.scaling.config import load_sweep
    from truesource.studies.scaling.run import corpus_folder, execute, truth_of
    from truesource.terminal.inputs import warn

    config = load_sweep(path, overrides)
    truth, place, split = truth_of(config, base), corpus_folder(config, base), config.evaluation.split
    if place is not None:
        corpus = Corpus.load(place)
        warn(of_grammar(corpus, truth))
        warn(of_conditions(corpus, split, corrected=disjoint_exactly(corpus, split)))
    folder, strangers, failures = execute(config, truth, base=base, runs=runs, share=share)
    if strangers:
        echo(
            f"{len(strangers)} folders in {folder / 'cells'} belong to other configurations, such as"
            f" {strangers[0].name}; they are kept",
            err=True,
        )
    return folder, failures


def show(sweep: Sweep) -> None:
    """Print the cells and the scaling laws."""
    from truesource.studies.scaling.report import cells_table, joint_text, laws_table, unknown_table
    from truesource.terminal.tables import show as show_table

    for table in (cells_table(sweep), laws_table(sweep), unknown_table(sweep)):
        if table.rows:
            show_table(table, width=190)
    joint = joint_text(sweep)
    if joint is not None:
        echo(f"Law in both sizes, KL = A N^-alpha + B D^-beta (N parameters without embeddings, D sentences): {joint}")
    for sentence in sweep.fits.refused:
        echo(sentence, err=True)
    if not sweep.fits.axes and not sweep.fits.refused:
        echo("no scaling law was fitted; add corpus sizes or models until there are at least 3 of one", err=True)
