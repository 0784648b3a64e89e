"""`truesource evaluate tokenisation`: marginal probabilities of texts, over all their segmentations."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.evaluation.tokenisation.evaluator import TokenisationSettings
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.inputs import asked_truth, oracle_option, read_text, setting_of
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
    from truesource.evaluation.core.setting import Setting
    from truesource.evaluation.core.text import Text
    from truesource.evaluation.tokenisation.texts import TextSet
    from truesource.generator.piece_model import TokenisedModel
    from truesource.run.stages.tokenisation import Measurement
    from truesource.terminal.output import OutputFiles

DocumentTable = Annotated[
    Path | None,
    typer.Option("--document-table", help="Write a row for each document and estimator to this .csv or .parquet file."),
]
WIDTH = 140  #: characters of a table, where there is no terminal


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
        typer.Option("--list-words", min=0, help="Most ambiguous words to list, of --lattice (default: 10)."),
    ] = None,
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    document_table: DocumentTable = None,
    word_table: WordTable = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Sum the probability of a text over all its segmentations, by several estimators.

    If the truth is known, the distance of the model from it is divided into a tokenisation gap and a model gap.

    --lattice sums exactly over all segmentations of a text, without a model: their number, probability and entropy.
    The probability Q of a segmentation is proportional to exp(b * sum of the scores of its pieces), with the scores of
    --proposal and b of --inverse-temperature.

    Example: truesource evaluate tokenisation model/ corpus/ --json tokenisation.json

    Example: truesource evaluate tokenisation tokenizer.json text.txt --lattice
    """
    from truesource.grammar.support.errors import InputError
    from truesource.run.stages.tokenisation import load
    from truesource.terminal.output import OutputFiles

    if not lattice:
        if list_words is not None:
            raise InputError("--list-words is of --lattice; add --lattice, or remove --list-words")
        model_there(model)
    files = OutputFiles(json=json, document_table=document_table, word_table=word_table, figure=figure, force=force)
    if lattice:
        _refuse_options_of_models(settings, oracle, lengths, document_table, word_table, figure, no_oracle or None)
        from truesource.cli.tokenisation_lattice import sum_over_lattice

        sum_over_lattice(
            Path(model),
            text,
            read_text(text, split, lines=True).documents[: settings.sentences],
            scores=settings.proposal,
            inverse_temperature=settings.inverse_temperature,
            n_words=10 if list_words is None else list_words,
            files=files,
        )
        return
    texts, first = _read(text, settings, split)
    words = word_table is not None
    if not settings.end and (oracle is not None or words):
        raise InputError("--oracle and --word-table need the end of a text; remove --no-end")
    setting = setting_of(first, asked_truth(oracle, no_oracle or not settings.end), lengths=lengths)
    _check(settings, truth=setting.language is not None)
    then = _next(model, texts[0].path, setting)
    _measure(load(model, settings), texts, settings, setting, files, seed=seed, words=words, then=then)


def _measure(
    model: TokenisedModel,
    texts: list[TextSet],
    settings: TokenisationSettings,
    setting: Setting,
    files: OutputFiles,
    *,
    seed: int,
    words: bool,
    then: str,
) -> None:
    """Measure a model, print it and write the files; what was measured before an error is written too."""
    from truesource.grammar.support.errors import InputError
    from truesource.run.stages.tokenisation import measure
    from truesource.terminal.output import figure_of, json_of, rows_of

    steps = measure(
        model,
        texts,
        settings,
        seed=seed,
        truth=setting.language,
        lengths=setting.lengths,
        excluded=setting.excluded,
        transform=setting.transform,
        words=words,
        warn=lambda warning: echo(f"Warning: {warning}", err=True),
    )
    measurement = next(steps)
    _show(measurement)
    try:
        measurement = next(steps)
    except InputError:  # what was measured may have taken hours
        files.write(json=json_of(measurement.records()), document_table=rows_of(measurement.rows))
        raise
    _show_further(measurement)
    files.finish(
        then,
        json=json_of(measurement.records()),
        document_table=rows_of(measurement.rows),
        word_table=rows_of(measurement.word_rows),
        figure=figure_of(lambda: _figure(measurement)),
    )


def _refuse_options_of_models(settings: TokenisationSettings, *others: object) -> None:
    """Refuse options that --lattice does not use.

    Raises:
        InputError: one is given.
    """
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.support.settings import option_name

    given = settings.model_dump(exclude_defaults=True).keys() - {"proposal", "inverse_temperature", "sentences"}
    options = [*map(option_name, sorted(given))]
    if options or any(other is not None for other in others):
        names = options[0] if options else "--oracle, --lengths, a table or a figure"
        raise InputError(f"--lattice runs no model, so it takes no {names}; remove it")


def _check(settings: TokenisationSettings, *, truth: bool) -> None:
    """Refuse options that need others.

    Raises:
        InputError: which.
    """
    from truesource.grammar.support.errors import InputError

    needs = {"--out-of-domain": bool(settings.out_of_domain), "--per-document": settings.per_document > 1}
    for option, asked in needs.items():
        if asked and not truth:
            raise InputError(f"{option} needs the grammar of the text; name it with --oracle")


def _read(text: Path, settings: TokenisationSettings, split: str) -> tuple[list[TextSet], Text]:
    """Read the text and those of --also: their documents, and the first with all that is known of it."""
    from truesource.evaluation.tokenisation.measure_sets import check_set_names
    from truesource.evaluation.tokenisation.texts import TextSet, is_treebank, sentences_of_trees
    from truesource.terminal.sources import named

    title, path = named(str(text))
    if settings.also:
        check_set_names([title, *settings.also])
    first = read_text(path, split, lines=True)
    texts = [TextSet(title, path, first.documents)]
    for name, other in settings.also.items():
        trees = is_treebank(other)
        documents = sentences_of_trees(other) if trees else read_text(other, split, lines=True).documents
        texts.append(TextSet(name, other, documents))
    return texts, first


def _show(found: Measurement) -> None:
    from truesource.evaluation.tokenisation.report import estimators_table, measures_table
    from truesource.terminal.tables import show

    record = found.as_record()
    show(estimators_table(record), WIDTH)
    show(measures_table({record["model"]: record}), WIDTH)


def _show_further(found: Measurement) -> None:
    from truesource.evaluation.tokenisation.report import costs_table, further_tables
    from truesource.terminal.tables import show

    record = found.as_record()
    for table in (*further_tables(record), costs_table(record)):
        if table.rows:
            show(table, WIDTH)
    scores = found.measured.ppl[found.measured.marginal]
    score = scores.get("ppl", scores["bits_per_character"])
    echo(f"{score.name}|{score.signature}")


def _figure(found: Measurement) -> str:
    from truesource.evaluation.tokenisation.figures import tokenisation_figure

    record = found.as_record()
    return tokenisation_figure(record["records"], record["gaps"])


def _next(model: str, text: Path, setting: Setting) -> str:
    if setting.language is not None:
        return "truesource cite"
    return f"truesource evaluate tokenisation {shlex.quote(model)} {shlex.quote(str(text))}{oracle_option(None, text)}"
