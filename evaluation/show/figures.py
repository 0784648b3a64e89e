"""Parts of all figures: colours for colour-blind readers too, marks, and small, reproducible SVG."""

from __future__ import annotations

import io
import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.atomic_files import atomic_path, write_text
from truesource.grammar.support.errors import InputError, extras_for
from truesource.grammar.support.printable import one_line, shortened, terminal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


DIGITS = 6  #: of numbers; the files of a run have all
LONGEST = 60  #: characters of a label
Rows = list[list[Any]]
# Okabe & Ito (2008); one meaning each, throughout the report.
TRUTH = "#C04A00"  #: exact values of the grammar
MODEL = "#0066A6"  #: values of a model
SAMPLE = "#5B99C4"  #: samples
SECOND = "#00805F"  #: a second curve of the same kind
QUIET = "#6B7280"  #: for comparison only
BARS = "#8B94A3"  #: bars of a reference
SERIES = (MODEL, SECOND, "#A36AA5", "#B8860B", "#3E9A8F", "#8C510A", SAMPLE, QUIET)  #: curves of many, in turn
PHASES = {"split": "#DCEBF7", "merge": "#FBE6D4", "smooth": "#DDF1E7"}
RESOLUTION = 300  #: dots an inch of PNG files
BINS = 60  #: of the ranks, evenly wide on the logarithmic axis
LONGEST_LABEL = 40  #: characters of a word in a figure
_BEYOND = 0.02  #: inches that text may leave a figure, which are invisible
FAR_APART = 2.5  #: least ratio of ratios for a logarithmic axis
_SUPERSCRIPT = str.maketrans("0123456789-\N{MINUS SIGN}", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻")
_STYLE = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # fonts that every publisher takes
    "text.parse_math": False,  # a dollar sign in a name is one
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titleweight": "normal",
    "axes.labelcolor": "#1f2937",
    "axes.edgecolor": "#9CA3AF",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E5E7EB",
    "grid.linewidth": 0.7,
    "xtick.color": "#4B5563",
    "ytick.color": "#4B5563",
    "text.color": "#1f2937",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "path.simplify": True,
}
_FILE: ContextVar[FigureFile | None] = ContextVar("figure_file", default=None)


def marks_of(drawn: Figure) -> str:
    """Return the marks of a drawn figure, as JSON in ASCII.

    It is a list of panels, with the title ``name``, the titles ``x`` and ``y`` of the axes, and the maps ``fx`` and
    ``fy`` from values to points of the SVG: ``[1 for a logarithmic axis, a, b]`` means a + b x. Each entry of
    ``series`` has a name, and ``rows`` of x, y, low, high, value, as long as needed, with null for missing numbers.
    A place on an axis of names has the name in its row.
    """
    height = drawn.get_size_inches()[1] * 72.0
    panels = []
    for axes in drawn.axes:
        plain = {axes.get_xscale(), axes.get_yscale()} <= {"linear", "log"}
        if not axes.get_visible() or not axes.axison or axes.get_label() == "<colorbar>" or not plain:
            continue
        series = [{"name": _text(name), "rows": rows} for name, rows in _series(axes) if rows]
        if series:
            fx, fy = _maps(axes, drawn.dpi, height)
            names = axes.get_title(), axes.get_xlabel(), axes.get_ylabel()
            titles = dict(zip(("name", "x", "y"), map(_text, names), strict=True))
            places = {axis: labels for axis in "xy" if (labels := _places(getattr(axes, f"{axis}axis")))}
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
    return [[_number(value) for value in row] for row in zip(*columns, strict=True)]


def _maps(axes: Axes, dpi: float, height: float) -> tuple[list[float], list[float]]:
    """Return the maps from values to points of the SVG, whose origin is at the top left."""
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
    """Return the names on an axis by their place; empty if its labels are numbers."""
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
    """Return cells of hexagons with their counts, points, intervals, and bands with their ends."""
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
    cells = ([x, y, None, None, _number(v)] for y, row in enumerate(values) for x, v in enumerate(row))
    return [cell for cell in cells if cell[4] is not None]


@dataclass
class FigureFile:
    """The request of `write_figure` for the figure that is being drawn."""

    format: str  #: svg, pdf or png
    size: tuple[float, float] | None  #: inches; None: as the figure has it
    data: bytes = b""  #: of formats other than SVG
    font_size: float | None = None  #: points; None: as the figure has it
    only: str | None = None  #: the figure of this name; the others are not drawn. None: any
    svg: str = ""  #: of the figure of this name


def write_figure(path: Path, draw: Callable[[], str], size: tuple[float, float] | None = None) -> None:
    """Draw one figure to a file, on white.

    Args:
        path: its ending says the format: .svg, .pdf (text stays text) or .png (300 dots an inch).
        draw: makes the figure with `figure` and `to_svg`.
        size: width and height in inches; None: as the figure has it.
    """
    file = FigureFile(path.suffix.lower().removeprefix("."), size)
    with drawing_for(file):
        svg = draw()
    if file.format == "svg":
        write_text(path, standalone(without_marks(svg)))
        return
    with atomic_path(path) as partial:
        partial.write_bytes(file.data)


@contextmanager
def drawing_for(file: FigureFile) -> Iterator[None]:
    """Let `figure` and `to_svg` draw what ``file`` needs inside the block: its one figure, or any."""
    token = _FILE.set(file)
    try:
        yield
    finally:
        _FILE.reset(token)


@contextmanager
def figure(width: float, height: float, salt: str) -> Iterator[Figure]:
    """Open an empty figure of a size in inches in the report's style, without window system or pyplot."""
    with extras_for("a figure"):
        import matplotlib
        from matplotlib.figure import Figure

    file = _FILE.get()
    size = (width, height) if file is None or file.size is None or file.only not in (None, salt) else file.size
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": salt}):
        yield Figure(figsize=size, layout="constrained")


def step_axis(axes: Any, steps: FloatArray) -> None:
    """Make an axis of steps logarithmic, with a place for step 0: ln(1 + step)."""
    last = float(steps[-1])
    ticks = [t for t in (0, 1, 3, *(m * 10**k for k in range(1, 9) for m in (1, 3))) if t <= 1.02 * last]
    ticks = [t for i, t in enumerate(ticks) if t in (0, 1) or len(ticks) <= 9 or str(t)[0] == "1" or i == 0]
    axes.set_xticks(np.log1p(ticks), [f"{t:,}" if t < 10_000 else f"{t / 1000:g}k" for t in ticks])
    axes.set_xlabel("training step (logarithmic)")


def to_svg(drawn: Figure, salt: str, title: str) -> str:
    """Return the figure as an ``<svg>`` element for a page with others.

    Labels, names and words are taken literally: control characters are shown as escapes, long words are shortened.
    The same figure gives the same text: no date, ids from ``salt`` and numbers. Coordinates are rounded to a hundredth
    of a point, which halves the size.
    """
    file = _FILE.get()
    label = escape(terminal(title))
    if file is not None and file.only not in (None, salt):
        return f'<svg aria-label="{label}" data-name="{escape(salt)}"></svg>'
    if file is not None and file.font_size is not None:
        _set_text(drawn, file.font_size)
    _make_printable(drawn)
    if file is not None and file.only is not None and (file.size, file.font_size) != (None, None):
        _fit_text(drawn)
    if file is not None and file.format != "svg":
        file.data = figure_data(drawn, file.format)
    stream = io.StringIO()
    with warnings.catch_warnings():  # the reader's fonts draw the text, and may have glyphs that ours lack
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from", UserWarning)
        drawn.savefig(stream, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
        marks = escape(marks_of(drawn))
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    hashed = dict.fromkeys(re.findall(r'\bid="([a-zA-Z]*[0-9a-f]{10})"', text))
    # matplotlib hashes all digits of positions, the last of which differ between layouts
    short = {name: f"{name[:-10]}{number}" for number, name in enumerate(hashed, start=1)}
    text = re.sub(
        r'(\bid="|url\(#|href="#)([^")]*)', lambda match: f"{match[1]}{salt}-{short.get(match[2], match[2])}", text
    )
    text = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(?<=\d\.\d\d)\d+", "", tag[0]), text)
    text = re.sub(r"\n\s*", "\n", text)
    head, rest = text.split(">", 1)
    size = re.search(r'viewBox="[^"]*"', head)
    assert size is not None
    named = f'data-name="{escape(salt)}"' + ("" if marks == "[]" else f' data-marks="{marks}"')
    opening = f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" {size[0]} role="img" aria-label="{label}" {named}>'
    svg = f"{opening}{rest}".strip()
    if file is not None and file.only == salt:
        file.svg = svg
    return svg


def _set_text(drawn: Figure, size: float) -> None:
    """Set the size of the usual text of a figure in points, and scale all other text with it."""
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    factor = size / float(_STYLE["font.size"])  # type: ignore[arg-type]
    texts: list[tuple[Text, Any]] = [(text, text.get_fontsize()) for text in drawn.findobj(Text)]
    for axes in drawn.findobj(Axes):
        axes.tick_params(labelsize=size)
    for text, before in texts:
        text.set_fontsize(before * factor)


def _fit_text(drawn: Figure) -> None:
    """Break too long lines of titles, labels of axes, remarks and legends of a figure.

    Raises:
        InputError: there is not enough room for all text, or for the marks.
    """
    for axes in drawn.axes:
        for text in (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts):
            text.set_wrap(True)
    legends: list[Any] = drawn.legends
    for legend in legends:
        columns = legend._ncols
        while columns > 1 and legend.get_window_extent().width > drawn.bbox.width:
            columns -= 1
            _set_columns(legend, columns)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        drawn.draw_without_rendering()
    box, (width, height) = drawn.get_tightbbox(), drawn.get_size_inches()
    inside = min(box.x0, box.y0) > -_BEYOND and box.x1 < width + _BEYOND and box.y1 < height + _BEYOND
    if not inside or any("constrained_layout" in str(each.message) for each in caught):
        raise InputError("not all text fits into a figure of this size; choose a larger size, or smaller text")


def _set_columns(legend: Any, columns: int) -> None:
    """Lay out a legend of a figure anew; matplotlib sets the number of columns only when it makes a legend."""
    texts = [(text.get_text(), text.get_fontsize()) for text in legend.get_texts()]
    legend._ncols = columns
    legend._init_legend_box(legend.legend_handles, [text for text, _ in texts])
    legend._legend_box.set_offset(legend._findoffset)
    legend.set_title(legend.get_title().get_text() or None)
    for text, (_, size) in zip(legend.get_texts(), texts, strict=True):
        text.set_fontsize(size)


def figure_data(drawn: Figure, kind: str) -> bytes:
    """Return a figure as PDF or PNG; the same figure gives the same bytes."""
    metadata = {"pdf": {"CreationDate": None, "Creator": None, "Producer": None}, "png": {"Software": None}}[kind]
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from", UserWarning)
        drawn.savefig(stream, format=kind, metadata=metadata, dpi=RESOLUTION)
    return stream.getvalue()


def _make_printable(drawn: Figure) -> None:
    """Escape every text of a figure, and the labels of its ticks, which do not exist before it is drawn."""
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    for text in drawn.findobj(Text):
        text.set_text(_label(text.get_text()))
    for axes in drawn.findobj(Axes):
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(_printable_ticks(axis.get_major_formatter()))
            axis.set_minor_formatter(_printable_ticks(axis.get_minor_formatter()))


def _printable_ticks(wrapped: Any) -> Any:
    """Wrap the formatter of an axis: labels are escaped, and powers of ten in plain characters instead of mathtext."""
    from matplotlib.ticker import Formatter, LogFormatter

    class Printable(Formatter):
        def format_ticks(self, values: Any) -> list[str]:
            labels: list[str] = wrapped.format_ticks(values)
            return [_label(_powers(label) if isinstance(wrapped, LogFormatter) else label) for label in labels]

        def get_offset(self) -> str:
            return str(wrapped.get_offset())

    return Printable()


def _powers(label: str) -> str:
    r"""Return ``10⁻³`` for ``$\mathdefault{10^{-3}}$``."""
    plain = label.removeprefix(r"$\mathdefault{").removesuffix("}$").replace(r"\times", "\N{MULTIPLICATION SIGN}")
    return re.sub(r"\^\{([^}]*)\}", lambda power: superscript(power[1]), plain)


def superscript(number: int | str) -> str:
    """Return an integer in superscript characters."""
    return str(number).translate(_SUPERSCRIPT)


def _label(text: str) -> str:
    return shortened(terminal(text), LONGEST_LABEL)


def without_marks(svg: str) -> str:
    """Return the figure without the attributes that only a page uses."""
    return re.sub(r' data-(?:name|marks)="[^"]*"', "", svg)


def standalone(svg: str) -> str:
    """Return the figure as a separate file, on white."""
    head, rest = svg.split(">", 1)
    opening = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f'{opening}>\n<rect width="100%" height="100%" fill="white"/>{rest}\n'


def plain_log_axis(axis: Any, ticks: list[float]) -> None:
    """Show these values as plain numbers on a logarithmic axis (matplotlib's ``xaxis`` or ``yaxis``)."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([f"{t:,.10g}" for t in ticks]))
    axis.set_minor_locator(NullLocator())


def ratio_axis(axes: Any, low: float, high: float) -> None:
    """Set the limits of a horizontal axis of ratios from ``low`` to ``high``, logarithmic if they are far apart."""
    if high / low > FAR_APART:
        axes.set_xscale("log")
        axes.set_xlim(0.95 * low, 1.08 * high)
        plain_log_axis(axes.xaxis, round_ticks(0.95 * low, 1.08 * high))
    else:
        margin = 0.06 * max(high - low, 0.02)
        axes.set_xlim(low - margin, high + margin)


def round_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Return a few round numbers inside a range of positive values, for a logarithmic axis."""
    import math

    for steps in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high]
        if len(ticks) <= most:
            break
    return ticks if len(ticks) > 1 else [float(f"{low:.3g}"), float(f"{high:.3g}")]


def binned(counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean share of the tokens in bins of ranks, zeros included, against the bins' geometric middle."""
    import numpy as np

    edges = np.unique(np.geomspace(1, len(counts) + 1, BINS + 1).round().astype(np.int64))
    share = np.add.reduceat(counts / counts.sum(), edges[:-1] - 1) / np.diff(edges)
    middle = np.sqrt(edges[:-1] * (edges[1:] - 1.0))
    return middle[share > 0.0], share[share > 0.0]
