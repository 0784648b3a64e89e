"""`truesource infill`: fill the gaps of a sentence."""

from __future__ import annotations

from typing import Annotated

import typer

from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Force, Grammar, Json, Seed

GAP = "___"  #: an unknown word


def command(
    grammar: Grammar,
    sentence: Annotated[str, typer.Argument(help=f"Sentence in quotes, with {GAP} for each gap.")],
    top: Annotated[int, typer.Option("--top", min=0, max=1000, help="Number of fillings to list.")] = 10,
    number: Annotated[int, typer.Option("-n", "--number", min=0, help="Number of sentences to sample.")] = 0,
    model: Annotated[str | None, typer.Option("--model", help="Model that fills gaps, to compare with.")] = None,
    seed: Seed = DEFAULT_SEED,
    json: Json = None,
    force: Force = False,
) -> None:
    """Fill the gaps of a sentence: the most probable fillings, the words of each gap, and samples.

    All probabilities are exact, given the known words and the number of words. A filling fills all gaps at once, the
    most probable first; the words of a gap are summed over the words of other gaps. --model adds the
    probabilities that a diffusion model gives these fillings, and its best fillings.

    Example: truesource infill english "there is a ___ ___ ."
    """
    from truesource.evaluation.diffusion.infill import infill
    from truesource.terminal.output import OutputFiles, json_of
    from truesource.terminal.tables import show

    files = OutputFiles(json=json, force=force)
    result = infill(grammar, sentence, top=top, number=number, model=model, seed=seed)
    for note in result.notes:
        echo(note, err=True)
    for table in result.tables:
        show(table)
    for words in result.detail["samples"]:
        echo(words)
    files.finish("truesource cite", json=json_of(result.detail))
