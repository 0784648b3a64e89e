"""`truesource evaluate tendencies`: compare statistical tendencies of sampled text with the truth or another text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.evaluation.tendencies.evaluator import TendenciesSettings
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Figure, Force, Json, Seed, SplitName
from truesource.terminal.settings import with_options


@with_options(TendenciesSettings)
def command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SAMPLES...",
            help="Samples, corpora, text; models (folder, file.py:name). NAME=SAMPLES names one.",
        ),
    ],
    settings: TendenciesSettings,
    oracle: Annotated[
        Path | None,
        typer.Option("--oracle", help="Grammar (file or language): compare with its exact distribution."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", help="Corpus, text or treebank: compare with its sentences.")
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option("--lengths", help="Sentence lengths such as 6..25, or none (default: as in the samples)."),
    ] = None,
    vocabulary: Annotated[
        list[str] | None,
        typer.Option("--vocabulary", help="With --oracle: model of the samples; its unknown words become <unk>."),
    ] = None,
    split: SplitName = "test",
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Compare statistics of samples with the truth: lengths, words, Zipf, Heaps, stopwords, nonterminals.

    Every distance has a valid test: sentences are treated as independent, words of one sentence are not. With
    --reference, sentences of lengths outside --lengths are excluded from both texts.

    Example: truesource evaluate tendencies samples/ --oracle grammar.npz --vocabulary model/ --json tendencies.json
    """
    from truesource.evaluation.tendencies.call import evaluate
    from truesource.terminal.inputs import warn
    from truesource.terminal.output import OutputFiles, figure_of, json_of
    from truesource.terminal.tables import show

    if (oracle is None) == (reference is None):
        raise InputError("give either --oracle GRAMMAR, for the exact truth, or --reference TEXT, not both or neither")
    files = OutputFiles(json=json, figure=figure, force=force)
    result = evaluate(
        sources,
        reference,
        False if oracle is None else oracle,
        settings=settings,
        split=split,
        lengths=lengths,
        seed=seed,
        vocabulary=vocabulary or (),
    )
    for line in result.inputs:
        echo(line)
    tendencies = result.detail
    show(result.table(), 100 + 44 * len(tendencies.findings))
    echo(str(next(iter(next(iter(tendencies.findings.values())).values())).score), grey=True)
    warn(result.notes)
    files.finish("truesource cite", json=json_of(result.records()), figure=figure_of(result.drawn))
