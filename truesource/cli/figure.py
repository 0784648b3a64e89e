"""`truesource figure`: one figure of a report, for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Force
from truesource.grammar.support.errors import InputError


def command(
    run: Annotated[Path, typer.Argument(help="Run folder, such as runs/demo.")],
    name: Annotated[str | None, typer.Argument(help="Name of the figure (default: list all).")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File of the figure: .pdf, .svg or .png.")
    ] = None,
    size: Annotated[
        str | None,
        typer.Option("--size", metavar="WIDTHxHEIGHT", help="Inches, such as 3.3x2.4 (default: as in the report)."),
    ] = None,
    font_size: Annotated[
        float | None, typer.Option("--font-size", min=3, max=40, help="Points of text (default: as in the report).")
    ] = None,
    force: Force = False,
) -> None:
    """Draw one figure of a report as a file for a paper; without a name, list the figures.

    Example: truesource figure runs/demo

    Example: truesource figure runs/demo forest -o forest.pdf --size 3.3x1.8 --font-size 8
    """
    from truesource.cli.asked import FIGURES, require_ending, size_of
    from truesource.cli.output import OutputFiles
    from truesource.grammar.support.settings import require_run

    require_run(run)
    titles = _titles(run)
    if name is None:
        if output is not None or size is not None or font_size is not None:
            raise InputError("name the figure to draw; without a name, and without options, all are listed")
        width = max(map(len, titles), default=0)
        for each, title in titles.items():
            echo(f"{each:<{width}}  {title}")
        return
    if name not in titles:
        raise InputError(
            f"the report has no figure {name!r}; it has {', '.join(titles) or 'none'}", run, code="no-figure"
        )
    if output is None:
        raise InputError(f"name a file to write the figure to, such as -o {name}.pdf")
    require_ending(output, "--output", FIGURES)
    inches = size_of(size, "--size")
    files = OutputFiles(more=[output], force=force)
    from truesource.experiment import draw_figure

    drawn = draw_figure(run, name, output.suffix.lower().removeprefix("."), inches, font_size)
    files.write_with(lambda: _write(output, drawn), [output], {})
    echo(f"Wrote {output}.")


def _titles(run: Path) -> dict[str, str]:
    """The figures of the report that stands in the run; to draw them all takes seconds."""
    from truesource.report.shown_figures import figures_on_page

    page = run / "report.html"
    if not page.is_file():
        raise InputError("the run has no report yet; finish the run, or write one with truesource report", run)
    return figures_on_page(page.read_text(encoding="utf-8"))


def _write(path: Path, content: bytes) -> None:
    from truesource.grammar.support.files import atomic_path

    with atomic_path(path) as partial:
        partial.write_bytes(content)
