"""`truesource parse`: the most probable trees of sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.options import Force

NAME = "parse"


def command(
    grammar: Annotated[Path, typer.Argument(help="A grammar: .npz or text.")],
    text: Annotated[Path, typer.Argument(help="Text, one tokenised sentence a line.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Penn bracketings to write.")],
    force: Force = False,
) -> None:
    """Write the most probable tree of every sentence, with treebank labels; () where the grammar has none."""
    from generator.text import read_sentences
    from grammar.errors import InputError
    from grammar.files import write_text
    from grammar.pcfg import PCFG
    from grammar.progress import track
    from grammar.surface import surface
    from truesource.cli.inputs import claim_file, list_lines

    claim_file(output, force)
    pcfg = PCFG.load(grammar)
    sentences = read_sentences(text)
    lines, failed = [], []
    for number, sentence in enumerate(track(sentences, "parse", len(sentences)), start=1):
        try:
            lines.append(str(surface(pcfg.viterbi(sentence)[0], pcfg)))
        except InputError:
            lines.append("()")
            failed.append(number)
    write_text(output, "\n".join(lines) + "\n")
    if failed:
        what = "cannot be made by the grammar and read ()"
        typer.echo(f"{len(failed)} of {len(sentences)} sentences {what}: {list_lines(failed)}", err=True)
    typer.echo(f"Wrote {output}: {len(sentences) - len(failed):,} trees. Next: truesource bound {grammar} {text}")
