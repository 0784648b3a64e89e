"""`truesource evaluate naturalness`: how much sampled sentences look like those of a treebank."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.cli.console import console, echo
from truesource.cli.options import Convention, Force, Json, Lengths, Seed, SplitName

if TYPE_CHECKING:
    from truesource.cli.sources import Source
    from truesource.evaluation.naturalness.compare import Naturalness

NAME = "naturalness"


class Kind(StrEnum):
    """Which definitions are used."""

    DEFAULT = "default"
    PAPER = "paper"


def command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Corpus folders, text (a tokenised sentence a line), treebanks, or grammars to sample from;"
            " NAME=PATH names one.",
        ),
    ],
    reference: Annotated[
        str, typer.Option("--reference", help="What to compare with: a treebank the grammars have not seen, or text.")
    ],
    n: Annotated[int, typer.Option("--n", "-n", min=2, help="Sentences to draw from a grammar.")] = 10_000,
    lengths: Lengths = "6..25",
    convention: Convention = "penn",
    split: SplitName = "train",
    variant: Annotated[
        Kind, typer.Option(help="paper: n-grams of the reference only, and figures with the published Zipf recipe.")
    ] = Kind.DEFAULT,
    seed: Seed = 1,
    json: Json = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Also draw all of it to this SVG file.")] = None,
    force: Force = False,
) -> None:
    """Set corpora and grammars beside a treebank: word frequencies, sentence lengths, n-grams.

    Laws and n-grams are measured in equally many sentences of each. The n-grams of the reference are those of one half
    against the other: what a perfect source would reach.
    """
    from truesource.cli.claims import claim_files
    from truesource.cli.sources import read_source
    from truesource.evaluation.naturalness.compare import compare_naturalness
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.errors import InputError
    from truesource.grammar.files import write_json, write_text

    outputs = claim_files(json, figure, force=force)
    condition = LengthRange.parse(lengths)
    read = [
        read_source(given, n=n, seed=seed, lengths=condition, split=split, convention=convention)
        for given in (reference, *sources)
    ]
    names = [source.name for source in read]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two sources are called {twice!r}; name them, NAME={sources[0]}")
    for source in read:
        outside = f", {source.left_out:,} of other lengths left out" if source.left_out else ""
        how = " drawn" if source.pcfg is not None else ""
        echo(f"{source.name}: {len(source.sentences):,} sentences{how}{outside}")
    high = max(len(sentence) for source in read for sentence in source.sentences)
    found = compare_naturalness(
        {source.name: source.sentences for source in read},
        names[0],
        exact={s.name: s.pcfg.exact.length_pmf(high, condition) for s in read if s.pcfg is not None},
        variant=variant.value,
        seed=seed,
    )
    _print(found, read)
    wrote = []
    with outputs.together():
        if json is not None:
            write_json(json, found.records())
            wrote.append(str(json))
        if figure is not None:
            from truesource.evaluators.naturalness.figures import naturalness_figure
            from truesource.report.figures import standalone

            write_text(figure, standalone(naturalness_figure(found)))
            wrote.append(str(figure))
    done = f"Wrote {' and '.join(wrote)}" if wrote else "Nothing written; --json FILE keeps these numbers"
    grammar = next((given for given, s in zip(sources, read[1:], strict=True) if s.pcfg is not None), None)
    step = "cite" if grammar is None else f"sample {grammar.rpartition('=')[2]} -n 100000 -o corpus/"
    echo(f"{done}. Next: truesource {step}")


def _print(found: Naturalness, read: list[Source]) -> None:
    """The table; measures that a source does not have read -."""
    from rich.table import Table

    from truesource.evaluators.naturalness.section import ROWS

    table = Table(
        caption="in brackets: 95% intervals; of n-grams the range over random choices of sentences"
        f"\nn-grams: with one half of {found.reference}; of {found.reference} itself, its other half"
    )
    table.add_column("measure", no_wrap=True)
    for source in read:
        table.add_column(source.name, justify="right", overflow="fold")
    for title, name in ROWS:
        cells = []
        for source in read:
            score = found.scores[source.name].get(name)
            if score is None:
                cells.append("-")
                continue
            ends = "" if score.low is None or score.high is None else f" [{score.low:.3f}, {score.high:.3f}]"
            cells.append(f"{score.value:.4f}{ends}")
        table.add_row(title, *cells)
    console(40 + 34 * len(read)).print(table)
    for name in ("zipf_alpha", "ngram_spearman_2"):
        if score := found.scores[found.reference].get(name):
            echo(f"{name}|{score.signature}")
