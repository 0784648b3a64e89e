"""`truesource inspect`: the grammar doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.options import Force, Json

NAME = "inspect"


def command(
    grammar: Annotated[Path, typer.Argument(help="A grammar: .npz or text.")],
    json: Json = None,
    force: Force = False,
) -> None:
    """Examine a grammar: sizes, consistency, expected length, entropy, symbols of no use.

    A line that starts with ! is a problem.
    """
    from grammar.doctor import diagnose, is_serious
    from grammar.files import write_json
    from grammar.pcfg import PCFG
    from truesource.cli.inputs import claim_file

    if json is not None:
        claim_file(json, force)
    found = diagnose(PCFG.load(grammar))
    typer.echo(f"symbols {found.symbols:,}, words {found.words:,}")
    typer.echo(f"rules: {found.binary:,} binary, {found.unary:,} unary, {found.lexical:,} lexical")
    typer.echo(f"total mass {found.total_mass:.9f}, spectral radius {found.spectral_radius:.6f}")
    if found.mean_length is not None and found.derivational_entropy is not None:
        typer.echo(
            f"mean length {found.mean_length:.3f} tokens,"
            f" derivational entropy {found.derivational_entropy:.3f} nats a sentence"
        )
    for problem in found.problems:
        typer.echo(f"! {problem}")
    wrote = "" if found.problems else "No problem found. "
    if json is not None:
        write_json(json, found.as_dict())
        wrote += f"Wrote {json}. "
    step = (
        f"mend {grammar}, then inspect it again"
        if is_serious(found)
        else f"truesource sample {grammar} -n 100000 -o corpus/"
    )
    typer.echo(f"{wrote}Next: {step}")
