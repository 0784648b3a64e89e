"""`truesource sample`: a corpus from a grammar."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.options import Force, Lengths, Seed

NAME = "sample"


def command(
    grammar: Annotated[Path, typer.Argument(help="A grammar: .npz or text.")],
    n: Annotated[int, typer.Option("-n", min=1, help="Sentences, all splits together.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Corpus folder to make.")],
    lengths: Lengths = "6..25",
    split: Annotated[
        str, typer.Option("--split", help="Shares of the splits.")
    ] = "train=.96,dev=.01,test=.01,eval=.02",
    seed: Seed = 1,
    workers: Annotated[int, typer.Option(min=1, help="Processes; the bytes do not depend on it.")] = 1,
    trees: Annotated[bool, typer.Option("--trees/--no-trees", help="Also write the derivations.")] = True,
    force: Force = False,
) -> None:
    """Sample a corpus, with trees, exactly conditioned on a range of sentence lengths."""
    from generator.corpus import Corpus
    from grammar.conditioning import LengthRange
    from grammar.doctor import require_consistent
    from grammar.pcfg import PCFG
    from truesource.cli.inputs import parse_splits

    pcfg = PCFG.load(grammar)
    require_consistent(pcfg, grammar)
    corpus = Corpus.sample(
        pcfg,
        parse_splits(split, n),
        seed=seed,
        lengths=LengthRange.parse(lengths),
        path=output,
        trees=trees,
        workers=workers,
        force=force,
    )
    tokens = sum(corpus.n_tokens(name) for name in corpus.splits)
    typer.echo(
        f"Wrote {output}: {n:,} sentences, {tokens:,} tokens."
        f" Next: truesource train {output} --preset tiny-causal -o model/"
    )
