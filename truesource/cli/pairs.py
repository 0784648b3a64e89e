"""`truesource evaluate pairs`: generate minimal pairs from a grammar and score a model on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.evaluation.pairs import PairSettings
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Figure, Force, Json, Seed, grammar_there, model_there
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.evaluation.pairs.pair import Pair

Oracle = Annotated[
    Path,
    typer.Option("--oracle", help="Grammar that generates the pairs with their true odds.", callback=grammar_there),
]
MaybeModel = Annotated[
    str | None,
    typer.Argument(
        help="Model: a folder, or code as file.py:name; without it, pairs are only generated.", callback=model_there
    ),
]


@with_options(PairSettings)
def command(
    oracle: Oracle,
    settings: PairSettings,
    model: MaybeModel = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write the pairs here, with a task for lm-eval.")
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(
            "--lengths", help="Sentence lengths such as 6..25, or none (default: the condition of the corpus or MODEL)."
        ),
    ] = None,
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Generate pairs of sentences that differ in one controlled property, and test which of the two a model prefers.

    The grammar knows the exact log odds of each pair: agreement in number, verb frames, attachment, word order.

    Example: truesource evaluate pairs model/ --oracle grammar.npz --json pairs.json
    """
    from truesource.evaluation.pairs.call import evaluate
    from truesource.grammar.support.errors import InputError
    from truesource.terminal.inputs import warn
    from truesource.terminal.output import OutputFiles, figure_of, json_of
    from truesource.terminal.tables import show

    if model is None and output is None:
        raise InputError("name a model to score, or a file for the pairs with --output")
    if model is None and (json is not None or figure is not None):
        raise InputError("--json and --figure are for a model's scores; name a model, or remove them")
    task, reader = _of_task(output)
    files = OutputFiles(output=output, task=task, reader=reader, json=json, figure=figure, force=force)
    result = evaluate(model, oracle, settings=settings, lengths=lengths, seed=seed)
    for line in result.inputs:
        echo(line)
    warn(result.notes)
    for number, table in enumerate(result.tables):
        show(table, width=130 if number == 1 else 120)
    following = f"score {model} CORPUS --oracle {oracle}"
    if model is None:
        following = f"evaluate pairs MODEL --oracle {oracle} --file {output}"
    files.finish(
        f"truesource {following}",
        folder=None,
        **_writers(output, result.detail.pairs),
        json=json_of(result.records()),
        figure=figure_of(result.drawn),
    )


def _of_task(output: Path | None) -> tuple[Path | None, Path | None]:
    """Return the files of the lm-eval task: its settings, and the code that reads the pairs."""
    from truesource.evaluation.pairs.pair import TaskFiles

    if output is None:
        return None, None
    task = TaskFiles.of(output)
    return task.settings, task.reader


def _writers(output: Path | None, pairs: Sequence[Pair]) -> dict[str, Callable[[Path], None]]:
    """Return the functions that write the pairs and their task; empty if they are not requested."""
    from truesource.evaluation.pairs.pair import TaskFiles, write_pairs, write_reader

    if output is None:
        return {}
    return {
        "output": lambda path: write_pairs(path, pairs),
        "task": lambda path: TaskFiles.of(output).write_settings(path, output.name),
        "reader": write_reader,
    }
