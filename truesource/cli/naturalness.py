"""`truesource evaluate naturalness`: compare sampled sentences with a treebank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.evaluation.naturalness.evaluator import NaturalnessSettings
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Convention, Figure, Force, Json, Seed, SplitName
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.evaluation.sources import Source


@with_options(NaturalnessSettings)
def command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Corpora, text, treebanks; grammars or models to sample from. NAME=SOURCE names one.",
        ),
    ],
    reference: Annotated[str, typer.Option("--reference", help="Treebank held out from the grammars, or other text.")],
    settings: NaturalnessSettings,
    oracle: Annotated[
        Path | None,
        typer.Option(
            "--oracle", help="Grammar of the corpus folders, for exact lengths (default: the grammar in each)."
        ),
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option("--lengths", help="Sentence lengths such as 6..25, or none (default: as in the corpus)."),
    ] = None,
    convention: Convention = "penn",
    split: SplitName = "train",
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Compare corpora and grammars with a treebank: word frequencies, sentence lengths, n-grams.

    Example: truesource evaluate naturalness corpus/ grammar.npz --reference held_out.mrg --figure naturalness.svg
    """
    from truesource.evaluation.naturalness.call import evaluate
    from truesource.terminal.inputs import warn
    from truesource.terminal.output import OutputFiles, figure_of, json_of
    from truesource.terminal.tables import show

    files = OutputFiles(json=json, figure=figure, force=force)
    result = evaluate(
        sources,
        reference,
        True if oracle is None else oracle,
        settings=settings,
        split=split,
        lengths=lengths,
        seed=seed,
        convention=convention,
        after_reading=_show_source,
    )
    texts = result.detail.sources
    for line in result.inputs[: len(result.inputs) - len(texts)]:
        echo(line)
    warn(result.notes)
    show(result.table(), 100 + 34 * len(texts))
    for name in ("zipf_alpha", "ngram_spearman_2"):
        if score := result.detail.comparison.scores[texts[0].name].get(name):
            echo(f"{name}|{score.signature}", grey=True)
    files.finish(_next(texts[1:]), json=json_of(result.records()), figure=figure_of(result.drawn))


def _show_source(source: Source) -> None:
    """Print what was read, and warnings about a treebank."""
    from truesource.terminal.treebanks import show_reading

    if source.bank is not None:
        show_reading(source.bank, has_settings=False)
    echo(source)


def _next(texts: Sequence[Source]) -> str:
    grammar = next((source.path for source in texts if source.pcfg is not None), None)
    return "truesource cite" if grammar is None else f"truesource sample {grammar} -n 100000 -o corpus/"
