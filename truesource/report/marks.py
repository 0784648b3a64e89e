"""What a figure shows, as numbers: its points, bars, bands and cells, for hover values and for files of data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.grammar.support.printable import one_line, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DIGITS = 6  #: of numbers; the files of a run have all
LONGEST = 60  #: characters of a label
Rows = list[list[Any]]


def marks_of(drawn: Figure) -> str:
    """The marks of a figure that was drawn, as JSON in ASCII.

    It is a list of panels. ``name`` is what a panel is called, ``x`` and ``y`` what its axes are called, ``fx`` and
    ``fy`` how values become points of the SVG: ``[1 for a logarithmic axis, a, b]`` stands for a + b x. Each entry of
    ``series`` has a name, and ``rows`` of x, y, low, high, value, as long as they have to be; null where there is none.
    A place on an axis of names has the name in its row.
    """
    height = drawn.get_size_inches()[1] * 72.0
    panels = []
    for axes in drawn.axes:
        plain = {axes.get_xscale(), axes.get_yscale()} <= {"linear", "log"}
        if not axes.get_visible() or axes.get_label() == "<colorbar>" or not plain:
            continue
        series = [{"name": _text(name), "rows": rows} for name, rows in _series(axes) if rows]
        if series:
            fx, fy = _maps(axes, drawn.dpi, height)
            names = axes.get_title(), axes.get_xlabel(), axes.get_ylabel()
            titles = dict(zip(("name", "x", "y"), map(_text, names), strict=True))
            places = {axis: found for axis in "xy" if (found := _places(getattr(axes, f"{axis}axis")))}
            panels.append({**titles, "fx": fx, "fy": fy, **({"places": places} if places else {}), "series": series})
    return json.dumps(panels, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _text(label: Any) -> str:
    text = str(label)
    return "" if text.startswith("_") else shortened(one_line(text.replace("\n", " ")), LONGEST)


def _number(value: Any) -> float | int | None:
    number = float(value)
    if not math.isfinite(number):
        return None
    rounded = float(f"{number:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _rows(*columns: Iterable[Any]) -> Rows:
    made = zip(*columns, strict=True)
    return [[_number(value) for value in row] for row in made]


def _maps(axes: Axes, dpi: float, height: float) -> tuple[list[float], list[float]]:
    """How values become points of the SVG, whose origin is at the top left."""
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    ends = axes.transData.transform([(x0, y0), (x1, y1)]) * 72.0 / dpi
    return (
        _map(axes.get_xscale() == "log", x0, x1, ends[0, 0], ends[1, 0]),
        _map(axes.get_yscale() == "log", y0, y1, height - ends[0, 1], height - ends[1, 1]),
    )


def _map(is_log: bool, low: float, high: float, at_low: float, at_high: float) -> list[float]:
    if is_log:
        low, high = math.log10(low), math.log10(high)
    factor = (at_high - at_low) / (high - low)
    return [int(is_log), float(f"{at_low - factor * low:.7g}"), float(f"{factor:.7g}")]


def _places(axis: Any) -> dict[str, str]:
    """The names on an axis by their place; none where its labels are numbers."""
    from matplotlib.ticker import FixedLocator

    if not isinstance(axis.get_major_locator(), FixedLocator):
        return {}
    at = [float(place) for place in axis.get_majorticklocs()]
    labels = [_text(label) for label in axis.get_major_formatter().format_ticks(at)]
    if all(not label or (any(c.isdigit() for c in label) and not any(c.isalpha() for c in label)) for label in labels):
        return {}
    return {str(_number(place)): label for place, label in zip(at, labels, strict=True) if label}


def _series(axes: Any) -> Iterable[tuple[str, Rows]]:
    from matplotlib.container import BarContainer, ErrorbarContainer
    from matplotlib.patches import StepPatch

    named = {c.lines[0]: c.get_label() for c in axes.containers if isinstance(c, ErrorbarContainer) and c.lines[0]}
    for container in axes.containers:
        if isinstance(container, BarContainer):
            yield str(container.get_label()), _bars(container)
    for line in axes.get_lines():
        if line.get_transform() == axes.transData:
            x, y = (np.asarray(side, dtype=np.float64) for side in line.get_data(orig=False))
            yield str(named.get(line, line.get_label())), _rows(x, y)
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            values, edges, _ = patch.get_data()
            yield str(patch.get_label()), _rows((edges[:-1] + edges[1:]) / 2, values)
    for collection in axes.collections:
        yield str(collection.get_label()), _collection(collection)
    for image in axes.images:
        if image.get_array().ndim != 2:  # a picture
            continue
        yield "cells", _cells(image)


def _bars(container: Any) -> Rows:
    flat = container.orientation == "horizontal"
    boxes = [(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in container.patches]
    return [
        [_number(x + width), _number(y + height / 2)] if flat else [_number(x + width / 2), _number(y + height)]
        for x, y, width, height in boxes
    ]


def _collection(collection: Any) -> Rows:
    """Cells of hexagons with their counts, points, intervals, and bands with their ends."""
    from matplotlib.collections import LineCollection, PathCollection, PolyCollection

    at, values = np.asarray(collection.get_offsets()), collection.get_array()
    if values is not None and len(values) == len(at):
        return [[*row, None, None, _number(v)] for row, v in zip(_rows(at[:, 0], at[:, 1]), values, strict=True)]
    if isinstance(collection, PathCollection):
        return _rows(at[:, 0], at[:, 1])
    if isinstance(collection, LineCollection):
        return [_interval(np.asarray(segment)) for segment in collection.get_segments() if len(segment) == 2]
    if not isinstance(collection, PolyCollection):
        return []
    ends: dict[float, list[float]] = {}
    for path in collection.get_paths():
        vertices: Any = path.vertices
        for x, y in vertices[:-1].tolist():
            ends.setdefault(x, []).append(y)
    return [[_number(x), None, _number(min(ys)), _number(max(ys))] for x, ys in sorted(ends.items())]


def _interval(segment: Any) -> list[Any]:
    (x0, y0), (x1, y1) = segment.tolist()
    if x0 == x1:
        return [_number(x0), None, _number(min(y0, y1)), _number(max(y0, y1))]
    return [None, _number(y0), _number(min(x0, x1)), _number(max(x0, x1))]


def _cells(image: Any) -> Rows:
    values: Sequence[Sequence[Any]] = np.ma.filled(image.get_array().astype(np.float64), np.nan).tolist()
    found = ([x, y, None, None, _number(v)] for y, row in enumerate(values) for x, v in enumerate(row))
    return [cell for cell in found if cell[4] is not None]
