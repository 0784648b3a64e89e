"""Single figures of a report, drawn for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.grammar.support.errors import InputError
from truesource.report.figures import FigureFile, drawing_for, standalone, without_marks
from truesource.report.page import rendered

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
    with drawing_for(file):
        found = rendered(run, evaluators)[1].svgs
    if name not in found:
        raise InputError(
            f"the report has no figure {name!r}; it has {', '.join(found) or 'none'}", run, code="no-figure"
        )
    if kind != "svg":
        return file.data
    return standalone(without_marks(file.svg)).encode("utf-8")
