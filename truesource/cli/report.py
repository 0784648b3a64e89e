"""`truesource report`: the HTML report of a run, rebuilt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Force
from truesource.grammar.support.errors import InputError


def command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folder, such as runs/demo; or several.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Page of several runs (default: comparison.html).")
    ] = None,
    force: Force = False,
) -> None:
    """Rebuild the HTML report of a finished run; the old one is replaced. Of several runs, write one page.

    The page of several runs compares their models, which must have been scored on the same sentences.

    Example: truesource report runs/demo

    Example: truesource report runs/first runs/second -o both.html
    """
    from truesource.cli.output import hold
    from truesource.experiment import build_report

    if len(runs) > 1:
        _compare(runs, output or Path("comparison.html"), force=force)
        return
    run = runs[0]
    if output is not None:
        raise InputError("the report of one run is written into its folder; leave out --output")
    if run.is_dir():
        hold(run)
    echo(f"Wrote {build_report(run)}. Next: open the report in a browser.")


def _compare(runs: list[Path], output: Path, *, force: bool) -> None:
    from truesource.cli.asked import require_ending
    from truesource.cli.output import OutputFiles
    from truesource.comparing.page import comparison_page
    from truesource.grammar.support.files import write_text

    require_ending(output, "--output", (".html", ".htm"))
    files = OutputFiles(more=[output], force=force)
    page, said = comparison_page(runs, output)
    for sentence in said:
        echo(sentence, err=True)
    files.write_with(lambda: write_text(output, page), [output], {})
    echo(f"Wrote {output}. Next: open the page in a browser.")
