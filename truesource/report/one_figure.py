"""Single figures of a report, drawn for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.grammar.support.errors import InputError
from truesource.report.figures import (
    FigureFile,
    drawing_for,
    figure_data,
    figure_style,
    standalone,
    to_svg,
    without_marks,
)
from truesource.report.page import rendered
from truesource.report.redrawn import redraw
from truesource.report.shown_figures import title_of

if TYPE_CHECKING:
    from truesource.run.evaluator import Evaluator


def figure_of(
    run: Path,
    name: str,
    evaluators: Sequence[Evaluator],
    *,
    kind: str,
    size: tuple[float, float] | None = None,
    font_size: float | None = None,
) -> bytes:
    """One figure as a file.

    A figure that is drawn with the report is drawn anew in this size. One that a stage left as a file keeps its layout
    and is scaled; so is a tree.

    Args:
        run: a run folder.
        name: of the figure.
        evaluators: of the run.
        kind: svg, pdf or png (300 dots an inch).
        size: width and height in inches; None: as on the page.
        font_size: points of the usual text; other text keeps its ratio to it. None: as on the page.

    Raises:
        InputError: there is no such figure, or as `truesource.report.page.write_page`.
    """
    file = FigureFile(kind, size, font_size=font_size, only=name)
    found = _figures(run, evaluators, file)
    if name not in found:
        raise InputError(
            f"the report has no figure {name!r}; it has {', '.join(found) or 'none'}", run, code="no-figure"
        )
    if kind != "svg" and file.data:
        return file.data
    svg = file.svg or found[name]
    if not file.svg and (kind != "svg" or size is not None or font_size is not None):
        with figure_style(name):
            drawn = redraw(svg, size, font_size)
            if kind != "svg":
                return figure_data(drawn, kind)
            svg = to_svg(drawn, name, title_of(svg))
    return standalone(without_marks(svg)).encode("utf-8")


def _figures(run: Path, evaluators: Sequence[Evaluator], file: FigureFile) -> dict[str, str]:
    with drawing_for(file):
        return rendered(run, evaluators)[1].svgs
