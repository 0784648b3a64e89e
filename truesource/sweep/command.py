"""`truesource evaluate scaling`: corpus size, model size and compute against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.cli.console import console, echo
from truesource.cli.options import Force, Json, Runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truesource.sweep.cells import Failure
    from truesource.sweep.results import Sweep

NAME = "scaling"


def command(
    sweep: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG_OR_FOLDER",
            help="YAML configuration, data/scaling.yaml is a documented example; or the folder of a sweep: only what"
            " is finished there, nothing is trained.",
        ),
    ],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override a key: --set axes.seeds=[1,2,3]")] = None,
    runs: Runs = Path("runs"),
    shard: Annotated[
        str | None, typer.Option("--shard", help="Only a share of the cells: 0/4 is the first of four jobs.")
    ] = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Train models on more and more text, larger and larger, and fit laws to their distance from the truth.

    The irreducible loss is known here, so a power law of the rest is a straight line of logarithms, and one sees how
    well the usual fit would have found it. Finished cells are kept; after Ctrl-C or a kill the same command goes on.
    A cell that fails, such as one whose loss becomes infinite, does not stop the others: exit code 2.
    """
    from truesource.cli.claims import claim_files
    from truesource.grammar.errors import InputError
    from truesource.grammar.parallel import Share

    share = Share() if shard is None else Share.parse(shard)
    claim_files(json, force=force)
    failures: list[Failure] = []
    if sweep.is_dir():
        if set_ or shard is not None:
            raise InputError("--set and --shard go with a configuration; this is the folder of a sweep", sweep)
        folder = sweep
    else:
        folder, failures = train(sweep, set_, runs, share)
    try:
        evaluated(folder, json, failures, shared=shard is not None)
    finally:
        for failure in failures:
            echo(f"failed: {failure.cell}: {failure.reason}", err=True)
    if failures:
        of = "1 cell" if len(failures) == 1 else f"{len(failures)} cells"
        echo(f"truesource: {of} failed; the same command tries again", err=True)
        raise typer.Exit(2)


def evaluated(folder: Path, json: Path | None, failures: Sequence[Failure], *, shared: bool) -> None:
    """Show and write what there is of a sweep; ``shared``: other jobs may be at work on the rest."""
    from truesource.grammar.errors import InputError
    from truesource.grammar.files import remove_leftovers_in, write_json
    from truesource.grammar.locks import exclusive
    from truesource.sweep.report import build_scaling_report
    from truesource.sweep.results import read_sweep

    found = read_sweep(folder)
    if found.missing and shared:
        echo(
            f"Wrote this job's cells of {folder}; {len(found.missing)} of {len(found.missing) + len(found.rows)} are"
            " not finished. Next: the other jobs; the last to end writes the report."
        )
        return
    if not found.rows and failures:
        return
    if not found.rows:
        raise InputError("no cell of this sweep is finished; give its configuration to train them", folder)
    if found.missing:
        echo(
            f"{len(found.missing)} of {len(found.missing) + len(found.rows)} cells are not finished and left out",
            err=True,
        )
    show(found)
    records = found.records()
    with exclusive(folder, wait=True):  # of several jobs that end together, one writes after the other
        for place in (folder, folder / "figures"):
            remove_leftovers_in(place, deep=False)
        write_json(folder / "scaling.json", records)
        report = build_scaling_report(found, folder)[-1]
    if json is not None:
        write_json(json, records)
    also = "" if json is None else f" and {json}"
    echo(f"Wrote {report}, {folder / 'scaling.json'}{also}. Next: open the report in a browser.")


def train(path: Path, overrides: list[str] | None, runs: Path, share: object) -> tuple[Path, list[Failure]]:
    """Train and score what is missing; the folder of the sweep, and cells that failed."""
    from truesource.cli.inputs import disjoint_exactly, warn_of_conditions, warn_of_other_grammar
    from truesource.grammar.parallel import Share
    from truesource.sweep.config import load_sweep
    from truesource.sweep.run import corpus_folder, execute, grammar_of

    assert isinstance(share, Share)
    config, base = load_sweep(path, overrides), path.resolve().parent
    pcfg, corpus = grammar_of(config, base), corpus_folder(config, base)
    if corpus is not None:
        warn_of_other_grammar(corpus, pcfg)
        warn_of_conditions(corpus, config.evaluation.split, corrected=disjoint_exactly(corpus, config.evaluation.split))
    folder, strangers, failures = execute(config, pcfg, base=base, runs=runs, share=share)
    if strangers:
        echo(
            f"{len(strangers)} folders in {folder / 'cells'} are of other configurations, such as {strangers[0].name};"
            " they are kept, in case you go back to one",
            err=True,
        )
    return folder, failures


def show(found: Sweep) -> None:
    """The cells, and the laws."""
    from rich.table import Table

    from truesource.sweep.report import HEADS, cell_rows, fit_rows, joint_text, spread_text, unknown_rows

    def table(title: str, heads: Sequence[str], rows: list[list[str]], left: int, caption: str | None = None) -> None:
        made = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
        for i, head in enumerate(heads):
            made.add_column(head, justify="left" if i < left else "right")
        for row in rows:
            made.add_row(*row)
        console(190).print(made)

    table(
        "cells",
        HEADS,
        cell_rows(found),
        1,
        "FLOPs: products and convolutions, forward and backward, a multiply-add is 2; N of 6ND: parameters in products",
    )
    laws = fit_rows(found)
    if laws:
        heads = ("over", "held", "exponent", "A", "R2", "residual", "lack of fit, p")
        table(
            "reducible loss KL(x) = A x^-exponent, nats a token",
            heads,
            laws,
            2,
            f"intervals: 95%, from {spread_text(found)}",
        )
    unknown = unknown_rows(found)
    if unknown:
        columns = ("over", "held", "fitted E", "true E", "error", "exponent")
        table("the loss with its irreducible part E unknown: E + A x^-exponent", columns, unknown, 2)
    joint = joint_text(found)
    if joint is not None:
        console(190).print(f"both sizes, KL = A N^-alpha + B D^-beta (N without embeddings, D sentences): {joint}")
    for sentence in found.fits.refused:
        echo(sentence, err=True)
    if not laws and not found.fits.refused:
        echo("no law is fitted: it needs at least 3 corpus sizes or 3 models", err=True)
