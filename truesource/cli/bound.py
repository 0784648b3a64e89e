"""`truesource bound`: the exact perplexity of a language, which no model can beat."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.options import Force, Json

NAME = "bound"


def command(
    grammar: Annotated[Path, typer.Argument(help="A grammar: .npz or text.")],
    corpus: Annotated[Path, typer.Argument(help="Corpus folder, or text with one tokenised sentence a line.")],
    causal: Annotated[bool, typer.Option("--causal/--no-causal", help="Next token given its left context.")] = True,
    masked: Annotated[bool, typer.Option("--masked/--no-masked", help="Token given all others.")] = True,
    lengths: Annotated[
        str | None, typer.Option(help="Condition on lengths such as 6..25, or none; default: as the corpus was drawn.")
    ] = None,
    split: Annotated[str, typer.Option(help="Split of a corpus folder.")] = "eval",
    json: Json = None,
    force: Force = False,
) -> None:
    """Score sentences exactly: causal and masked bounds, per token."""
    from evaluation.bound import bound_records, sentence_records
    from grammar.conditioning import LengthRange
    from grammar.files import refuse_existing, write_json
    from grammar.pcfg import PCFG
    from truesource.cli.inputs import read_sentences

    if json is not None:
        refuse_existing(json, force)
    pcfg = PCFG.load(grammar)
    sentences, drawn = read_sentences(corpus, split)
    condition = drawn if lengths is None else LengthRange.parse(lengths)
    scores = sentence_records(pcfg, sentences, lengths=condition, causal=causal, masked=masked)
    summary = bound_records(pcfg, scores, lengths=condition)
    for score in summary:
        typer.echo(str(score))
    if json is not None:
        write_json(json, {"sentences": scores, "summary": [score.as_record() for score in summary]})
        typer.echo(f"Wrote {json}. Next: truesource score MODEL {corpus} --oracle {grammar}")
