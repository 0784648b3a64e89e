"""`truesource evaluate tokenisation`: sum probabilities of texts over all their segmentations."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truesource.evaluation.sources import named
from truesource.evaluation.tokenisation.evaluator import TokenisationSettings
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.inputs import grammar_inside, oracle_option, read_text, requested_truth
from truesource.terminal.options import (
    Condition,
    Figure,
    Force,
    Json,
    NoOracle,
    Oracle,
    Seed,
    SplitName,
    WordTable,
    model_there,
)
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.evaluation.show.result import Result
    from truesource.evaluation.show.table import ReportTable
    from truesource.evaluation.tokenisation.call import Measurement
    from truesource.terminal.output import OutputFiles

DocumentTable = Annotated[
    Path | None,
    typer.Option("--document-table", help="Write a row for each document and estimator to this .csv or .parquet file."),
]
WIDTH = 140  #: width of a table in characters, without a terminal


@with_options(TokenisationSettings)
def command(
    model: Annotated[str, typer.Argument(help="Model: a folder; with --lattice also a tokenizer.json or .model.")],
    text: Annotated[Path, typer.Argument(help="Corpus folder, or text with one document per line; or NAME=PATH.")],
    settings: TokenisationSettings,
    oracle: Oracle = None,
    no_oracle: NoOracle = False,
    lengths: Condition = None,
    split: SplitName = "eval",
    lattice: Annotated[
        bool,
        typer.Option("--lattice", help="Sum over all segmentations by the scores of their pieces; no network is run."),
    ] = False,
    list_words: Annotated[
        int | None,
        typer.Option("--list-words", min=0, help="With --lattice: ambiguous words to list (default: 10)."),
    ] = None,
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    document_table: DocumentTable = None,
    word_table: WordTable = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Sum the probability of a text over all its segmentations, by several estimators.

    If the truth is known, the distance of the model from the truth is divided into a tokenisation gap and a model gap.

    --lattice sums exactly over all segmentations of a text, without a model: their number, probability and entropy.
    The probability Q of a segmentation is proportional to exp(b * sum of the scores of its pieces), with the scores of
    --proposal and b of --inverse-temperature.

    Example: truesource evaluate tokenisation model/ corpus/ --json tokenisation.json

    Example: truesource evaluate tokenisation tokenizer.json text.txt --lattice
    """
    from truesource.evaluation.tokenisation.call import MAIN_TABLES
    from truesource.grammar.support.errors import InputError
    from truesource.terminal.inputs import warn
    from truesource.terminal.output import OutputFiles, figure_of, json_of, rows_of

    if not lattice:
        if list_words is not None:
            raise InputError("--list-words needs --lattice; add --lattice, or remove --list-words")
        model_there(model)
    files = OutputFiles(json=json, document_table=document_table, word_table=word_table, figure=figure, force=force)
    if lattice:
        _refuse_options_of_models(settings, oracle, lengths, document_table, word_table, figure, no_oracle or None)
        _sum_over_lattice(model, text, settings, split, 10 if list_words is None else list_words, files)
        return
    request: dict[str, object] = {"settings": settings, "split": split, "lengths": lengths, "seed": seed}
    truth = requested_truth(oracle, no_oracle)
    result = _measured(files, model, text, truth, **request, words=word_table is not None)
    warn(result.notes)
    measurement = result.detail
    _show(result.tables[MAIN_TABLES:])
    scores = measurement.measured.ppl[measurement.measured.marginal]
    score = scores.get("ppl", scores["bits_per_character"])
    echo(f"{score.name}|{score.signature}", grey=True)
    files.finish(
        _next(model, text, oracle, no_oracle),
        json=json_of(result.records()),
        document_table=rows_of(measurement.rows),
        word_table=rows_of(measurement.word_rows),
        figure=figure_of(result.drawn),
    )


def _measured(files: OutputFiles, *measured: Any, **request: Any) -> Result:
    """Measure a model; print its estimates as soon as they are computed, and write them even after an error."""
    from truesource.evaluation.tokenisation.call import evaluate, main_tables
    from truesource.grammar.support.errors import InputError
    from truesource.terminal.output import json_of, rows_of

    estimates: list[Measurement] = []

    def show_estimates(measurement: Measurement) -> None:
        estimates.append(measurement)
        _show(main_tables(measurement.as_record()))

    try:
        return evaluate(
            *measured,
            **request,
            after_estimates=show_estimates,
            warn=lambda warning: echo(f"Warning: {warning}", err=True),
        )
    except InputError:  # the estimates may have taken hours
        if estimates:
            files.write(json=json_of(estimates[0].records()), document_table=rows_of(estimates[0].rows))
        raise


def _sum_over_lattice(
    tokeniser: str, text: Path, settings: TokenisationSettings, split: str, words: int, files: OutputFiles
) -> None:
    """Print and write the sums over all segmentations."""
    from truesource.evaluation.tokenisation.segmentations import sum_over_lattice
    from truesource.terminal.output import json_of

    result = sum_over_lattice(tokeniser, text, read_text(text, split, lines=True).documents, settings, list_words=words)
    for note in result.notes:
        echo(f"Warning: {note}", err=True)
    _show(result.tables)
    echo(f"entropy|{result['entropy'].signature}", grey=True)
    files.finish(f"truesource evaluate tokenisation MODEL {text}", json=json_of(result.records()))


def _show(tables: Sequence[ReportTable]) -> None:
    from truesource.terminal.tables import show

    for table in tables:
        show(table, WIDTH)


def _refuse_options_of_models(settings: TokenisationSettings, *others: object) -> None:
    """Refuse options that --lattice does not use.

    Raises:
        InputError: one of them is given.
    """
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.support.settings import option_name

    changed = settings.model_dump(exclude_defaults=True).keys() - {"proposal", "inverse_temperature", "sentences"}
    options = [*map(option_name, sorted(changed))]
    if options or any(other is not None for other in others):
        names = options[0] if options else "--oracle, --lengths, a table or a figure"
        raise InputError(f"--lattice runs no model, so it takes no {names}; remove it")


def _next(model: str, text: Path, oracle: Path | None, no_oracle: bool) -> str:
    path = named(str(text))[1]
    if oracle is not None or (not no_oracle and grammar_inside(path) is not None):
        return "truesource cite"
    return f"truesource evaluate tokenisation {shlex.quote(model)} {shlex.quote(str(path))}{oracle_option(None, path)}"
