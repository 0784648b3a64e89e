"""`truesource evaluate tokenisation`: marginal probabilities of texts, over all their segmentations."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.chain.lengths import length_condition
from truesource.cli.console import echo
from truesource.cli.inputs import excluded_from, oracle_option, read_documents, truth_about
from truesource.cli.options import Condition, Figure, Force, Json, Model, Seed, SplitName, WordTable
from truesource.cli.settings import with_options
from truesource.evaluators.tokenisation import TokenisationSettings
from truesource.grammar.support.settings import DEFAULT_SEED

if TYPE_CHECKING:
    from truesource.evaluators.tokenisation.stage import Measurement
    from truesource.evaluators.tokenisation.texts import TextSet
    from truesource.grammar.conditioning import LengthRange

DocumentTable = Annotated[
    Path | None,
    typer.Option("--document-table", help="Write a row for each document and estimator to this .csv or .parquet file."),
]
WIDTH = 140  #: characters of a table, where there is no terminal


@with_options(TokenisationSettings)
def command(
    model: Model,
    text: Annotated[Path, typer.Argument(help="Corpus folder, or text with one document per line; or NAME=PATH.")],
    settings: TokenisationSettings,
    oracle: Annotated[
        Path | None, typer.Option("--oracle", help="Grammar that the text was sampled from: a file, or a language.")
    ] = None,
    lengths: Condition = None,
    split: SplitName = "eval",
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    document_table: DocumentTable = None,
    word_table: WordTable = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Sum the probability of a text over all its segmentations, by several estimators.

    With --oracle, the distance of the model from the truth is divided into a tokenisation gap and a model gap.

    Example: truesource evaluate tokenisation model/ corpus/ --oracle grammar.npz --json tokenisation.json
    """
    from truesource.cli.output import OutputFiles, figure_of, json_of, rows_of
    from truesource.evaluators.tokenisation.stage import load, measure
    from truesource.grammar.support.errors import InputError

    files = OutputFiles(json=json, document_table=document_table, word_table=word_table, figure=figure, force=force)
    _check(settings, truth=oracle is not None, words=word_table is not None)
    texts, sampled_under = _read(text, settings, split)
    condition = length_condition(lengths, sampled_under)
    truth = transform = None
    if oracle is not None:
        truth, transform = truth_about(texts[0].path, oracle)
    excluded = None if truth is None else excluded_from(texts[0].path, split, truth, sampled_under, condition)
    steps = measure(
        load(model, settings),
        texts,
        settings,
        seed=seed,
        truth=truth,
        lengths=condition,
        excluded=excluded,
        transform=transform,
        words=word_table is not None,
        warn=lambda warning: echo(f"Warning: {warning}", err=True),
    )
    found = next(steps)
    _show(found)
    try:
        found = next(steps)
    except InputError:  # what was measured may have taken hours
        files.write(json=json_of(found.records()), document_table=rows_of(found.rows))
        raise
    _show_further(found)
    files.finish(
        _next(model, texts[0].path, oracle),
        json=json_of(found.records()),
        document_table=rows_of(found.rows),
        word_table=rows_of(found.word_rows),
        figure=figure_of(lambda: _figure(found)),
    )


def _check(settings: TokenisationSettings, *, truth: bool, words: bool) -> None:
    """Refuse options that need others.

    Raises:
        InputError: which.
    """
    from truesource.grammar.support.errors import InputError

    needs = {"--out-of-domain": bool(settings.out_of_domain), "--per-document": settings.per_document > 1}
    for option, asked in needs.items():
        if asked and not truth:
            raise InputError(f"{option} needs the grammar of the text; name it with --oracle")
    if not settings.end and (truth or words):
        raise InputError("--oracle and --word-table need the end of a text; leave out --no-end")


def _read(text: Path, settings: TokenisationSettings, split: str) -> tuple[list[TextSet], LengthRange | None]:
    """The text, and those of --also; and the length condition of the first."""
    from truesource.cli.sources import named
    from truesource.evaluation.tokenisation.measure_sets import check_set_names
    from truesource.evaluators.tokenisation.texts import TextSet, is_treebank, sentences_of_trees

    title, path = named(str(text))
    if settings.also:
        check_set_names([title, *settings.also])
    documents, drawn = read_documents(path, split)
    texts = [TextSet(title, path, documents)]
    for name, other in settings.also.items():
        found = sentences_of_trees(other) if is_treebank(other) else read_documents(other, split)[0]
        texts.append(TextSet(name, other, found))
    return texts, drawn


def _show(found: Measurement) -> None:
    from truesource.cli.output import show
    from truesource.evaluators.tokenisation.section import estimators_table, measures_table

    record = found.as_record()
    show(estimators_table(record), WIDTH)
    show(measures_table({record["model"]: record}), WIDTH)


def _show_further(found: Measurement) -> None:
    from truesource.cli.output import show
    from truesource.evaluators.tokenisation.section import costs_table, further_tables

    record = found.as_record()
    for table in (*further_tables(record), costs_table(record)):
        if table.rows:
            show(table, WIDTH)
    scores = found.measured.ppl[found.measured.marginal]
    score = scores.get("ppl", scores["bits_per_character"])
    echo(f"{score.name}|{score.signature}")


def _figure(found: Measurement) -> str:
    from truesource.evaluators.tokenisation.figures import tokenisation_figure

    record = found.as_record()
    return tokenisation_figure(record["records"], record["gaps"])


def _next(model: str, text: Path, oracle: Path | None) -> str:
    if oracle is not None:
        return "truesource cite"
    return f"truesource evaluate tokenisation {shlex.quote(model)} {shlex.quote(str(text))} {oracle_option(text)}"
