"""`truesource report`: the HTML report of a run, rebuilt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.console import echo


def command(run: Annotated[Path, typer.Argument(help="Run folder, such as runs/demo.")]) -> None:
    """Rebuild the HTML report of a finished run; the old one is replaced.

    Example: truesource report runs/demo
    """
    from truesource.cli.claims import hold
    from truesource.experiment import build_report

    if run.is_dir():
        hold(run)
    echo(f"Wrote {build_report(run)}. Next: open it in a browser.")
