"""`truesource benchmark`: compare a model with the usual architectures on all languages of a suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Force, IntervalSeed, Json, Overrides, PlanOnly, Scheduler, Shard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from truesource.grammar.support.parallel import Share, Workers
    from truesource.studies.benchmark.results import BenchmarkResults
    from truesource.studies.benchmark.run import Selection
    from truesource.studies.benchmark.standings import Standings
    from truesource.studies.benchmark.suite import Suite
    from truesource.terminal.output import OutputFiles

ABOVE = 3  #: exit code
RESULTS = "results.json"
PAGE = "leaderboard.html"

SuiteName = Annotated[
    str, typer.Option("--suite", help="Suite such as tiny, small-v2 or in-context-tiny, or a YAML file.")
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="Model: an architecture, file.py:name, all, or NAME=FOLDER if trained. Repeatable."),
]
Name = Annotated[str | None, typer.Option("--name", help="Name of the model in tables.")]
Languages = Annotated[str | None, typer.Option("--languages", help="Languages to measure, such as brackets,english.")]
Seeds = Annotated[str | None, typer.Option("--seeds", help="Training seeds, such as 1,2 (default: all of the suite).")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Folder for the results, new or to be resumed.")]
Processes = Annotated[
    int | None, typer.Option("--workers", min=1, help="Number of processes (default: one per core, one with a GPU).")
]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", metavar="NAME", help="Model to compare the others with (default: yours, or the best)."),
]
Join = Annotated[list[Path] | None, typer.Option("--join", help="Also show the models of this file. Repeatable.")]
Check = Annotated[Path | None, typer.Option("--check", help="Recompute one cell of this results file.")]
Peak = Annotated[
    float | None, typer.Option("--flops-per-second", help="With --plan: peak FLOPS of the GPU, such as 1e15.")
]
Export = Annotated[
    Path | None, typer.Option("--export-lm-eval", help="Write minimal pairs as tasks of lm-evaluation-harness here.")
]
Corpora = Annotated[bool, typer.Option("--corpora", help="Only sample the training corpora into the folder.")]
FailAbove = Annotated[
    float | None,
    typer.Option(
        "--fail-above", metavar="X", min=1.0, help="Exit with code 3 if a relative perplexity of your model exceeds X."
    ),
]
Cell = Annotated[str | None, typer.Option("--cell", help="With --check: the cell, as LANGUAGE/MODEL/SEED.")]


def command(
    suite: SuiteName = "tiny",
    model: Models = None,
    set_: Overrides = None,
    name: Name = None,
    languages: Languages = None,
    seeds: Seeds = None,
    output: Output = None,
    workers: Processes = None,
    scheduler: Scheduler = None,
    shard: Shard = None,
    join: Join = None,
    baseline: Baseline = None,
    check: Check = None,
    cell: Cell = None,
    plan: PlanOnly = False,
    flops_per_second: Peak = None,
    export_lm_eval: Export = None,
    corpora: Corpora = False,
    fail_above: FailAbove = None,
    seed: IntervalSeed = DEFAULT_SEED,
    json: Json = None,
    force: Force = False,
) -> None:
    """Train a model on all languages of a suite, and compare it with the usual architectures.

    Every language has an exact grammar, so the table shows which share of its learnable structure a model has learned:
    1 is the truth, 0 is a model of word frequencies. Finished cells are kept; an interrupted benchmark resumes if the
    command is repeated. Without --model, the command shows the models that come with truesource.

    --corpora samples the corpora to train your own models on; --model NAME=FOLDER measures these. FOLDER has a
    subfolder for each language, or is the model of the only language in --languages.

    Example: truesource benchmark --model my_rnn.py:GRU --set model.hidden=128 -o results/

    Example: truesource benchmark --languages brackets --model mine=my_model/ -o results/ --fail-above 1.10
    """
    from truesource.grammar.support.parallel import Share, Workers
    from truesource.studies.benchmark.run import Selection
    from truesource.studies.benchmark.suite import ALL, candidates, load_suite
    from truesource.terminal.output import OutputFiles

    modes = {
        "--check": check is not None,
        "--plan": plan,
        "--export-lm-eval": export_lm_eval is not None,
        "--output": output is not None,
    }
    _check_modes(modes, cell=cell is not None, corpora=corpora, models=bool(model), threshold=fail_above is not None)
    _require_extras(networks=bool(model or plan or check), page=output is not None and not corpora)
    chosen = load_suite(suite)
    files = OutputFiles(json=json, force=force)
    if check is not None:
        _check(chosen, check, cell, files)
        return
    references = [ALL] if plan and not model else model or []
    competing = candidates(chosen, references, set_ or [], name)
    selection = Selection.of(chosen, competing, listed(languages), numbers(seeds))
    if corpora and output is not None:
        _sample(selection, output, Workers(workers or 1, scheduler), files)
    elif export_lm_eval is not None:
        _export(selection, export_lm_eval, files, force=force)
    elif plan:
        _plan(selection, suite, flops_per_second, files)
    else:
        share = Share() if shard is None else Share.parse(shard)
        results = _measure(selection, output, _workers(workers, scheduler), share) if model else None
        ranks = _show(chosen, results, join or [], baseline, output, files, seed)
        _compare_with(fail_above, ranks, [each.name for each in selection.candidates])


def _check_modes(modes: Mapping[str, bool], *, cell: bool, corpora: bool, models: bool, threshold: bool) -> None:
    """Refuse options that exclude each other, or that lack an option they need."""
    from truesource.grammar.support.errors import InputError

    modes_used = [mode for mode, used in modes.items() if used]
    for wrong, text in (
        (len(modes_used) > 1, f"{' and '.join(modes_used[:2])} exclude each other; give only one of them"),
        (cell and not modes["--check"], "--cell needs --check"),
        (corpora and (not modes["--output"] or models), "--corpora needs --output, and excludes --model"),
        (threshold and not models, "--fail-above is for models that --model names"),
    ):
        if wrong:
            raise InputError(text, code="several-modes")


def _require_extras(*, networks: bool, page: bool) -> None:
    """Check that the libraries for this call are installed."""
    from truesource.grammar.support.errors import require_extras

    needed = {"lm": networks, "report": page}
    require_extras("`truesource benchmark`", *(extra for extra, used in needed.items() if used))


def listed(text: str | None) -> list[str] | None:
    """Split a text at commas; None if there is no text."""
    return None if text is None else [part.strip() for part in text.split(",")]


def numbers(text: str | None) -> list[int] | None:
    """Read whole numbers separated by commas; None if there is no text.

    Raises:
        InputError: a part is not a whole number.
    """
    from truesource.grammar.support.errors import InputError

    parts = listed(text)
    wrong = [part for part in parts or [] if not part.isdecimal()]
    if wrong:
        raise InputError(f"seeds are whole numbers separated by commas, got {wrong[0]!r}", code="no-number")
    return None if parts is None else [int(part) for part in parts]


def _workers(n: int | None, scheduler: str | None) -> Workers:
    """Return the requested processes; by default one per core, as a cell uses one thread, or one with a GPU."""
    import os

    import torch

    from truesource.grammar.support.parallel import Workers

    if n is None:
        alone = scheduler is not None or torch.cuda.is_available()
        n = 1 if alone else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Workers(n, scheduler)


def _measure(selection: Selection, output: Path | None, workers: Workers, share: Share) -> BenchmarkResults:
    """Compute the cells and write the results file."""
    from truesource.grammar.support.errors import InputError
    from truesource.studies.benchmark.results import write_results
    from truesource.studies.benchmark.run import execute

    if output is None:
        raise InputError("name a folder for the results with -o", code="no-output")
    outcome = execute(selection, output, workers=workers, share=share)
    _write(output / RESULTS, lambda file: write_results(file, outcome.results))
    for failure in outcome.failures:
        echo(f"failed: {failure.task}: {failure.reason}", err=True)
    if outcome.failures:
        echo("truesource: some cells failed; repeat the command to retry them", err=True)
        raise typer.Exit(2)
    if outcome.missing:
        echo(f"{len(outcome.missing)} cells are not finished; wait for the other jobs, or repeat the command", err=True)
    return outcome.results


def _write(file: Path, write: Callable[[Path], object]) -> None:
    """Write a file that several jobs write, and remove temporary files of killed jobs."""
    from truesource.grammar.support.atomic_files import remove_leftovers
    from truesource.grammar.support.locks import exclusive

    with exclusive(file, wait=True):
        remove_leftovers(file)
        write(file)


def _show(
    suite: Suite,
    measured: BenchmarkResults | None,
    files: list[Path],
    baseline: str | None,
    output: Path | None,
    outputs: OutputFiles,
    seed: int,
) -> list[Standings]:
    """Print the tables of all models; write the page if a folder is given; return the standings."""
    from truesource.studies.benchmark.baselines import with_baselines
    from truesource.studies.benchmark.page import write_page
    from truesource.studies.benchmark.standings import difference_tables, differences_of, standing_records, standings
    from truesource.studies.benchmark.tables import headline_table, with_models
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    results, mine = with_baselines(suite, measured, files)
    ranks = with_models(standings(results, list(suite.languages), seed=seed))
    tables = [headline_table(each, suite, own=mine) for each in ranks]
    differences = differences_of(results, ranks, own=mine, baseline=baseline)
    changes = difference_tables(differences)
    for table in [*tables, *changes]:
        show(table, width=190)
    written = None
    if output is not None:
        written = output / PAGE
        _write(written, lambda file: write_page(results, suite, file, found=ranks, differences=changes, own=mine))
    outputs.finish(
        "open the page in a browser" if written else "truesource benchmark --model NAME -o results/",
        folder=written,
        json=json_of(standing_records(ranks, differences, own=mine)),
    )
    return ranks


def _compare_with(most: float | None, ranks: Sequence[Standings], candidates: Sequence[str]) -> None:
    """Print the relative perplexities above the threshold; exit with code 3 if there are any."""
    from truesource.studies.benchmark.standings import is_reference

    if most is None:
        return
    above = [
        f"{row.name} on {language} {standing.relative_ppl:.4f}"
        for each in ranks
        for row in each.rows
        if row.name in candidates and not is_reference(row)
        for language, standing in row.languages.items()
        if not standing.relative_ppl <= most
    ]
    if above:
        echo(f"truesource: relative perplexity above {most:g}: {', '.join(above)}", err=True)
        raise typer.Exit(ABOVE)


def _sample(selection: Selection, output: Path, workers: Workers, outputs: OutputFiles) -> None:
    """Sample the corpora only."""
    from truesource.studies.benchmark.run import sample

    folders = sample(selection, output, workers=workers)
    outputs.finish(f"truesource train {folders[0]} -o mine/{selection.languages[0]}", folder=output)


def _plan(selection: Selection, suite: str, flops_per_second: float | None, outputs: OutputFiles) -> None:
    """Print the estimated cost of the trainings."""
    from truesource.studies.benchmark.planning import plan_suite, plan_table
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    planned = plan_suite(
        selection.suite,
        selection.candidates,
        languages=selection.languages,
        seeds=len(selection.seeds),
        flops_per_second=flops_per_second,
    )
    show(plan_table(planned), width=190)
    outputs.finish(f"truesource benchmark --suite {suite} --model NAME -o results/", json=json_of(planned.rows()))


def _export(selection: Selection, folder: Path, outputs: OutputFiles, *, force: bool) -> None:
    """Write minimal pairs as tasks of lm-evaluation-harness."""
    from truesource.studies.benchmark.lm_eval import export_lm_eval
    from truesource.terminal.output import json_of

    seed = selection.suite.seed
    export = export_lm_eval(selection.suite, folder, languages=selection.languages, seed=seed, force=force)
    outputs.finish(export.next_command, folder=folder, json=json_of([{"task": name} for name in export.tasks]))


def _check(suite: Suite, path: Path, cell: str | None, outputs: OutputFiles) -> None:
    """Recompute one cell of a results file, and print how close the new numbers are."""
    from truesource.studies.benchmark.baselines import read_for
    from truesource.studies.benchmark.checking import check_cell, checked_table
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    check = check_cell(suite, read_for(suite, path), cell)
    show(checked_table(check))
    echo(check.verdict)
    outputs.write(json=json_of(check.as_record()))
    if not check.agrees:
        raise typer.Exit(2)
