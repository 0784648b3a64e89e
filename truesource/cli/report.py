"""`truesource report`: rebuild the HTML report of a run, compare several runs, or draw one figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.folders import kind_of
from truesource.terminal.console import echo
from truesource.terminal.options import Force


def command(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folder of a run, such as runs/demo, or of a sweep; or several runs."),
    ],
    figures: Annotated[bool, typer.Option("--figures", help="List the figures of the report; write nothing.")] = False,
    figure: Annotated[
        str | None,
        typer.Option("--figure", metavar="NAME", help="Draw this figure of the report to the file -o, for a paper."),
    ] = None,
    font_size: Annotated[
        float | None,
        typer.Option("--font-size", min=3, max=40, help="Font size of the figure (default: as in the report)."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Figure file (.pdf, .svg, .png), or page of several runs (default: comparison.html)."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Rebuild the HTML report of a run or sweep, draw a figure of a run, or write one page about several runs.

    For a sweep, finished or not, the report and scaling.json are rewritten from the finished cells.

    The new report replaces the old one; figures come from the existing report. The page of several runs
    compares their models, which must have been scored on the same sentences.

    Example: truesource report runs/demo

    Example: truesource report runs/demo --figures

    Example: truesource report runs/demo --figure forest -o forest.pdf --figure-size 3.3x1.8 --font-size 8

    Example: truesource report runs/first runs/second -o both.html
    """
    from truesource.terminal.requests import output_request

    if figure is None and (font_size is not None or output_request().figure_size is not None):
        raise InputError(
            "--figure-size and --font-size are for one figure; name it with --figure (--figures lists all)"
        )
    if figures or figure is not None:
        if len(runs) > 1:
            raise InputError("--figure and --figures are for the report of one run; name only one run")
        _figures(runs[0], figure, output, font_size, listed=figures, force=force)
    elif len(runs) > 1:
        _compare(runs, output or Path("comparison.html"), force=force)
    elif output is not None:
        raise InputError("the report of one run is written into its folder; remove -o, or name a figure (--figure)")
    else:
        _rebuild(runs[0])


def _rebuild(run: Path) -> None:
    if kind_of(run) == "sweep":
        from truesource.studies.scaling.report import write_results
        from truesource.studies.scaling.results import read_sweep

        sweep = read_sweep(run)
        if sweep.missing:
            echo(f"{sweep.unfinished} cells are not finished and are excluded", err=True)
        echo(f"Wrote {write_results(sweep, run)}. Next: open the report in a browser.")
        return
    from truesource.run.experiment import build_report
    from truesource.terminal.output import hold

    if run.is_dir():
        hold(run)
    echo(f"Wrote {build_report(run)}. Next: open the report in a browser.")


def _compare(runs: list[Path], output: Path, *, force: bool) -> None:
    from truesource.grammar.support.atomic_files import write_text
    from truesource.studies.compare.page import comparison_page
    from truesource.terminal.inputs import warn
    from truesource.terminal.output import OutputFiles
    from truesource.terminal.requests import require_ending

    require_ending(output, "--output", (".html", ".htm"))
    files = OutputFiles(more=[output], force=force)
    page, notes = comparison_page(runs, output)
    warn(notes)
    files.write_with(lambda: write_text(output, page), [output], {})
    echo(f"Wrote {output}. Next: open the page in a browser.")


def _figures(
    run: Path, name: str | None, output: Path | None, font_size: float | None, *, listed: bool, force: bool
) -> None:
    """List the figures of the report in the run, or draw one of them to a file."""
    from truesource.grammar.support.files import FIGURES
    from truesource.grammar.support.folders import require_run
    from truesource.terminal.output import OutputFiles
    from truesource.terminal.requests import output_request, require_ending

    require_run(run)
    titles = _titles(run)
    if listed:
        if name is not None or output is not None:
            raise InputError("--figures lists the figures; remove it to draw one, or remove --figure and -o")
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
    files = OutputFiles(more=[output], force=force)
    from truesource.run.experiment import draw_figure

    content = draw_figure(run, name, output.suffix.lower().removeprefix("."), output_request().figure_size, font_size)
    files.write_with(lambda: _write(output, content), [output], {})
    echo(f"Wrote {output}.")


def _titles(run: Path) -> dict[str, str]:
    """Return the titles of the figures of the report in the run, without drawing them."""
    from truesource.report.shown_figures import figures_on_page

    page = run / "report.html"
    if not page.is_file():
        raise InputError("the run has no report yet; finish the run, or write one with truesource report", run)
    return figures_on_page(page.read_text(encoding="utf-8"))


def _write(path: Path, content: bytes) -> None:
    from truesource.grammar.support.atomic_files import atomic_path

    with atomic_path(path) as partial:
        partial.write_bytes(content)
