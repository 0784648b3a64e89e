"""`truesource score`: a trained model against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.options import Force, Json

NAME = "score"


def command(
    model: Annotated[Path, typer.Argument(help="Model folder that truesource train made.")],
    corpus: Annotated[Path, typer.Argument(help="Corpus folder, or text with one tokenised sentence a line.")],
    oracle: Annotated[Path, typer.Option("--oracle", help="The grammar that the corpus was drawn from.")],
    split: Annotated[str, typer.Option(help="Split of a corpus folder.")] = "eval",
    frame: Annotated[str, typer.Option(help="Which positions count: default or paper.")] = "default",
    lengths: Annotated[
        str | None, typer.Option(help="Condition on lengths such as 6..25, or none; default: as the corpus was drawn.")
    ] = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Compare a model with the exact truth on the same tokens."""
    from evaluation.comparison import compare
    from generator.frame import FRAMES
    from grammar.conditioning import LengthRange
    from grammar.errors import InputError
    from grammar.files import refuse_existing, write_json
    from grammar.pcfg import PCFG
    from lmtrain.models import load_model
    from truesource.cli.inputs import read_sentences
    from truesource.cli.table import print_results

    if frame not in FRAMES:
        raise InputError(f"unknown frame {frame!r}; there are {', '.join(FRAMES)}")
    if json is not None:
        refuse_existing(json, force)
    sentences, drawn = read_sentences(corpus, split)
    condition = drawn if lengths is None else LengthRange.parse(lengths)
    result = compare(load_model(model), PCFG.load(oracle), sentences, lengths=condition, frame=FRAMES[frame])
    record = result.as_record()
    print_results([record])
    typer.echo(record["signature"])
    if json is not None:
        write_json(json, [record])
        typer.echo(f"Wrote {json}.")
