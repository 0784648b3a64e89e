"""`truesource convert`: a grammar in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Force, SplitName
from truesource.grammar.formats import names

FORMATS = ", ".join(names())


def command(
    source: Annotated[
        Path,
        typer.Argument(
            help="Grammar: .npz, our text or NLTK's, EarleyX text, or one of a Berkeley pair NAME.grammar and"
            " NAME.lexicon, or NAME (.gz too). Or a corpus folder."
        ),
    ],
    target: Annotated[
        Path,
        typer.Argument(
            help="File to write: .npz, or text under any other name (packed if .gz). For Berkeley text, NAME of both."
            " Of a corpus, its trees as Penn brackets, or its sentences in a .txt file."
        ),
    ],
    source_format: Annotated[
        str | None, typer.Option("--from", help=f"Format of the source: {FORMATS}. Default: found from its content.")
    ] = None,
    target_format: Annotated[
        str | None, typer.Option("--to", help=f"Format to write: {FORMATS}. Default: npz for .npz, else text.")
    ] = None,
    start: Annotated[str | None, typer.Option("--start", help="Start symbol, in place of the source's own.")] = None,
    normalise: Annotated[
        bool,
        typer.Option(
            "--normalise",
            help="Take the numbers of a text as weights: divide them by each symbol's sum (always so for Berkeley and"
            " EarleyX text).",
        ),
    ] = False,
    level: Annotated[
        int | None,
        typer.Option(min=0, help="Of a split-merge grammar, the coarser one of so many splits; 0 is without any."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option("--prune", help="Drop rules less probable than this, mend the rest, and say what it cost."),
    ] = None,
    split: SplitName = "train",
    symbols: Annotated[
        bool, typer.Option("--symbols", help="Trees of a corpus with the grammar's own symbols, not treebank labels.")
    ] = False,
    binarised: Annotated[bool, typer.Option("--binarised", help="Trees of a corpus with their @ nodes.")] = False,
    force: Force = False,
) -> None:
    """Convert a grammar from one format to another; make it coarser, or smaller. Trees of a corpus as brackets.

    A corpus folder gives the Penn brackets of one of its splits, one tree a line.
    """
    if source.is_dir():
        from truesource.cli.corpus_text import write_corpus
        from truesource.grammar.errors import InputError

        of_grammars = {
            "--from": source_format,
            "--to": target_format,
            "--start": start,
            "--normalise": normalise or None,
            "--level": level,
            "--prune": threshold,
        }
        given = [name for name, value in of_grammars.items() if value is not None]
        if given:
            raise InputError(f"{', '.join(given)}: for grammars, and this is a corpus folder; leave out", source)
        write_corpus(source, target, split, symbols=symbols, binarised=binarised, force=force)
        return
    from truesource.cli.claims import claim_files
    from truesource.grammar.formats import format_of, save_grammar, target_files
    from truesource.grammar.pcfg import PCFG

    for name in (source_format, target_format):
        if name is not None:
            format_of(name)
    files = target_files(target, target_format)
    outputs = claim_files(*files, force=force)
    pcfg = PCFG.load(source, normalise=normalise, format=source_format, start=start)
    if level is not None:
        from truesource.grammar.estimate import project

        pcfg = project(pcfg, level)
    if threshold is not None:
        from truesource.grammar.estimate import prune

        pcfg, cost = prune(pcfg, threshold)
        echo(str(cost))
    with outputs.together():
        save_grammar(pcfg, target, force=True, format=target_format)
    echo(f"Wrote {' and '.join(map(str, files))}: {pcfg!r}. Next: truesource inspect {files[0]}")
