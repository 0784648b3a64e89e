"""`truesource convert`: a grammar in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.options import Force

NAME = "convert"


def command(
    source: Annotated[Path, typer.Argument(help="Grammar: .npz, NLTK or our text, EarleyX text (.gz too).")],
    target: Annotated[Path, typer.Argument(help="File to write: .npz, or text under any other name (packed if .gz).")],
    normalise: Annotated[
        bool,
        typer.Option("--normalise", help="Take the numbers of a text as weights: divide them by each symbol's sum."),
    ] = False,
    force: Force = False,
) -> None:
    """Convert a grammar; the format of the source is found from its content."""
    from grammar.formats import save_grammar
    from grammar.pcfg import PCFG
    from truesource.cli.inputs import claim_file

    claim_file(target, force)
    pcfg = PCFG.load(source, normalise=normalise)
    save_grammar(pcfg, target, force=force)
    typer.echo(f"Wrote {target}: {pcfg!r}. Next: truesource inspect {target}")
