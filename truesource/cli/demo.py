"""`truesource demo`: the whole chain on the embedded English grammar."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.options import Runs


def command(
    runs: Runs = Path("runs"),
    force: Annotated[
        bool, typer.Option("--force", help="Make every stage again, also those that are up to date.")
    ] = False,
) -> None:
    """Run the whole chain on the embedded English grammar, in a few minutes on two cores.

    The same as `truesource run` on the packaged demo.yaml.
    """
    from truesource.cli import run
    from truesource.embedded import data_folder

    run.command(data_folder() / "demo.yaml", None, runs, force)
