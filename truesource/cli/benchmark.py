"""`truesource benchmark`: a model on all languages of a suite, compared with the usual architectures."""

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
Name = Annotated[str | None, typer.Option("--name", help="What the model is called in tables.")]
Languages = Annotated[str | None, typer.Option("--languages", help="Languages to measure, such as brackets,english.")]
Seeds = Annotated[str | None, typer.Option("--seeds", help="Training seeds, such as 1,2 (default: all of the suite).")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Folder of the results, to make or to go on with.")]
Processes = Annotated[
    int | None, typer.Option("--workers", min=1, help="Number of processes (default: one per core, one with a GPU).")
]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", metavar="NAME", help="Model to compare the others with (default: yours, or the best)."),
]
Join = Annotated[list[Path] | None, typer.Option("--join", help="Also show the models of this file. Repeatable.")]
Check = Annotated[Path | None, typer.Option("--check", help="Compute a cell of this file of results again.")]
Peak = Annotated[
    float | None, typer.Option("--flops-per-second", help="With --plan: peak of the GPU to plan for, such as 1e15.")
]
Export = Annotated[
    Path | None, typer.Option("--export-lm-eval", help="Write minimal pairs as tasks of lm-evaluation-harness here.")
]
Corpora = Annotated[bool, typer.Option("--corpora", help="Only sample the corpora into the folder, to train on.")]
FailAbove = Annotated[
    float | None,
    typer.Option(
        "--fail-above", metavar="X", min=1.0, help="Exit code 3 if a relative perplexity of yours is above X."
    ),
]
Cell = Annotated[str | None, typer.Option("--cell", help="With --check: which cell, as LANGUAGE/MODEL/SEED.")]


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

    Every language has an exact grammar, so the table shows how much of what there is to learn the model has learned:
    1 is the truth, 0 knows word frequencies only. Finished cells are kept; an interrupted benchmark continues when the
    command is repeated. Without --model, the command shows the models that come with truesource.

    With --corpora you get the corpora to train your own models on; --model NAME=FOLDER measures these. FOLDER has a
    folder for each language, or is the model of the one that --languages names.

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
    wanted = [ALL] if plan and not model else model or []
    asked = Selection.of(chosen, candidates(chosen, wanted, set_ or [], name), listed(languages), numbers(seeds))
    if corpora and output is not None:
        _sample(asked, output, Workers(workers or 1, scheduler), files)
    elif export_lm_eval is not None:
        _export(asked, export_lm_eval, files, force=force)
    elif plan:
        _plan(asked, suite, flops_per_second, files)
    else:
        share = Share() if shard is None else Share.parse(shard)
        own = _measure(asked, output, _workers(workers, scheduler), share) if model else None
        found = _show(chosen, own, join or [], baseline, output, files, seed)
        _compare_with(fail_above, found, [each.name for each in asked.candidates])


def _check_modes(modes: Mapping[str, bool], *, cell: bool, corpora: bool, models: bool, threshold: bool) -> None:
    """Refuse options that exclude each other, and those that lack what they go with."""
    from truesource.grammar.support.errors import InputError

    given = [mode for mode, asked in modes.items() if asked]
    for wrong, text in (
        (len(given) > 1, f"{' and '.join(given[:2])} exclude each other; give only one of them"),
        (cell and not modes["--check"], "--cell needs --check"),
        (corpora and (not modes["--output"] or models), "--corpora needs --output, and excludes --model"),
        (threshold and not models, "--fail-above is for models that --model names"),
    ):
        if wrong:
            raise InputError(text, code="several-modes")


def _require_extras(*, networks: bool, page: bool) -> None:
    """Stop where libraries are not installed for what is asked for."""
    from truesource.grammar.support.errors import require_extras

    needed = {"lm": networks, "report": page}
    require_extras("`truesource benchmark`", *(extra for extra, wanted in needed.items() if wanted))


def listed(text: str | None) -> list[str] | None:
    """The parts of a text that commas separate; None where there is none."""
    return None if text is None else [part.strip() for part in text.split(",")]


def numbers(text: str | None) -> list[int] | None:
    """The whole numbers of a text that commas separate; None where there is none.

    Raises:
        InputError: a part is no whole number.
    """
    from truesource.grammar.support.errors import InputError

    parts = listed(text)
    wrong = [part for part in parts or [] if not part.isdecimal()]
    if wrong:
        raise InputError(f"seeds are whole numbers separated by commas, got {wrong[0]!r}", code="no-number")
    return None if parts is None else [int(part) for part in parts]


def _workers(n: int | None, scheduler: str | None) -> Workers:
    """Processes that are asked for; else one for each core, since a cell computes in one thread, and one with a GPU."""
    import os

    import torch

    from truesource.grammar.support.parallel import Workers

    if n is None:
        alone = scheduler is not None or torch.cuda.is_available()
        n = 1 if alone else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Workers(n, scheduler)


def _measure(asked: Selection, output: Path | None, workers: Workers, share: Share) -> BenchmarkResults:
    """Make the cells and write the file of results."""
    from truesource.grammar.support.errors import InputError
    from truesource.studies.benchmark.results import write_results
    from truesource.studies.benchmark.run import execute

    if output is None:
        raise InputError("name a folder for the results with -o", code="no-output")
    found = execute(asked, output, workers=workers, share=share)
    _write(output / RESULTS, lambda file: write_results(file, found.results))
    for failure in found.failures:
        echo(f"failed: {failure.task}: {failure.reason}", err=True)
    if found.failures:
        echo("truesource: repeat the command to try the failed cells again", err=True)
        raise typer.Exit(2)
    if found.missing:
        echo(f"{len(found.missing)} cells are not finished; other jobs make them, or repeat the command", err=True)
    return found.results


def _write(file: Path, write: Callable[[Path], object]) -> None:
    """Write a file that several jobs write, and remove what killed ones have left of it."""
    from truesource.grammar.support.atomic_files import remove_leftovers
    from truesource.grammar.support.locks import exclusive

    with exclusive(file, wait=True):
        remove_leftovers(file)
        write(file)


def _show(
    suite: Suite,
    own: BenchmarkResults | None,
    files: list[Path],
    baseline: str | None,
    output: Path | None,
    outputs: OutputFiles,
    seed: int,
) -> list[Standings]:
    """Print the tables of all models, and write the page where there is a folder; where the models stand."""
    from truesource.studies.benchmark.baselines import with_baselines
    from truesource.studies.benchmark.page import write_page
    from truesource.studies.benchmark.standings import difference_tables, differences_of, standing_records, standings
    from truesource.studies.benchmark.tables import headline_table, with_models
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    results, mine = with_baselines(suite, own, files)
    found = with_models(standings(results, list(suite.languages), seed=seed))
    tables = [headline_table(each, suite, own=mine) for each in found]
    compared = differences_of(results, found, own=mine, baseline=baseline)
    differences = difference_tables(compared)
    for table in [*tables, *differences]:
        show(table, width=190)
    written = None
    if output is not None:
        written = output / PAGE
        _write(written, lambda file: write_page(results, suite, file, found=found, differences=differences, own=mine))
    outputs.finish(
        "open the page in a browser" if written else "truesource benchmark --model NAME -o results/",
        folder=written,
        json=json_of(standing_records(found, compared, own=mine)),
    )
    return found


def _compare_with(most: float | None, found: Sequence[Standings], own: Sequence[str]) -> None:
    """Print the relative perplexities above the threshold; exit with code 3 if there are any."""
    from truesource.studies.benchmark.standings import is_reference

    if most is None:
        return
    above = [
        f"{row.name} on {language} {standing.relative_ppl:.4f}"
        for each in found
        for row in each.rows
        if row.name in own and not is_reference(row)
        for language, standing in row.languages.items()
        if not standing.relative_ppl <= most
    ]
    if above:
        echo(f"truesource: relative perplexity above {most:g}: {', '.join(above)}", err=True)
        raise typer.Exit(ABOVE)


def _sample(asked: Selection, output: Path, workers: Workers, outputs: OutputFiles) -> None:
    """Make the corpora alone."""
    from truesource.studies.benchmark.run import sample

    folders = sample(asked, output, workers=workers)
    outputs.finish(f"truesource train {folders[0]} -o mine/{asked.languages[0]}", folder=output)


def _plan(asked: Selection, suite: str, flops_per_second: float | None, outputs: OutputFiles) -> None:
    """Print the cost of the trainings, before anything is trained."""
    from truesource.studies.benchmark.planning import plan_suite, plan_table
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    planned = plan_suite(
        asked.suite,
        asked.candidates,
        languages=asked.languages,
        seeds=len(asked.seeds),
        flops_per_second=flops_per_second,
    )
    show(plan_table(planned), width=190)
    outputs.finish(f"truesource benchmark --suite {suite} --model NAME -o results/", json=json_of(planned.rows()))


def _export(asked: Selection, folder: Path, outputs: OutputFiles, *, force: bool) -> None:
    """Write minimal pairs as tasks of another tool."""
    from truesource.studies.benchmark.lm_eval import export_lm_eval
    from truesource.terminal.output import json_of

    made = export_lm_eval(asked.suite, folder, languages=asked.languages, seed=asked.suite.seed, force=force)
    outputs.finish(made.next_command, folder=folder, json=json_of([{"task": name} for name in made.tasks]))


def _check(suite: Suite, path: Path, cell: str | None, outputs: OutputFiles) -> None:
    """Compute one cell of a file again, and say how near it comes."""
    from truesource.studies.benchmark.baselines import read_for
    from truesource.studies.benchmark.checking import check_cell, checked_table
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    found = check_cell(suite, read_for(suite, path), cell)
    show(checked_table(found))
    echo(found.verdict)
    outputs.write(json=json_of(found.as_record()))
    if not found.agrees:
        raise typer.Exit(2)
