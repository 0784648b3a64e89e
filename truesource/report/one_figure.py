"""Single figures of a report, drawn for a paper."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mode
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

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
from truesource.report.shown_figures import title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from truesource.run.evaluator import Evaluator


_TOKEN = re.compile(r"[MLHVQCZmlhvqcz]|-?\d*\.?\d+(?:e-?\d+)?")
_MOVE = re.compile(r"(translate|rotate|scale)\(([^)]*)\)")
_SIZE = re.compile(r"(?:^|[ :])([\d.]+)px")
_NUMBERS = {"M": 2, "L": 2, "H": 1, "V": 1, "Q": 4, "C": 6, "Z": 0}


@dataclass(frozen=True)
class _DrawnElement:
    """A path or a text, with all that it takes from the elements around it."""

    element: ElementTree.Element
    style: dict[str, str]
    move: Any  #: transform of matplotlib
    clip: str


def redraw(svg: str, size: tuple[float, float] | None, font_size: float | None) -> Figure:
    """The figure of an ``<svg>`` of this package.

    Args:
        svg: as the page has it, see `truesource.report.finished_run.read_svg`.
        size: in inches; the figure is scaled to it as a whole. None: as it is.
        font_size: points of the most frequent size of text; None: as it is.
    """
    from matplotlib.figure import Figure

    root = ElementTree.fromstring(re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href"))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    inches = size or (width / 72.0, height / 72.0)
    scale = min(inches[0] * 72.0 / width, inches[1] * 72.0 / height)
    drawn = Figure(figsize=inches)
    axes = drawn.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0.0, inches[0] * 72.0 / scale)
    axes.set_ylim(inches[1] * 72.0 / scale, 0.0)
    axes.set_axis_off()
    named = {each.get("id"): each for each in root.iter() if each.get("id")}
    drawings = list(_drawings(root, named))
    sizes = [_font(drawing.style) for drawing in drawings if drawing.element.tag == "text"]
    text_scale = scale if font_size is None or not sizes else font_size / mode(sizes)
    for order, drawing in enumerate(drawings):
        if drawing.element.tag == "text":
            _text(axes, drawing, text_scale, order)
        else:
            _path(axes, drawing, named, scale, order)
    return drawn


def _drawings(root: ElementTree.Element, named: dict[str | None, ElementTree.Element]) -> Iterator[_DrawnElement]:
    from matplotlib.transforms import Affine2D

    waiting = [_DrawnElement(root, {}, Affine2D(), "")]
    while waiting:
        around = waiting.pop()
        inside = []
        for child in around.element:
            if child.tag in ("defs", "style", "clipPath"):
                continue
            style = {**around.style, **_style(child.get("style", ""))}
            clip = child.get("clip-path", "").removeprefix("url(#").removesuffix(")") or around.clip
            move = _moved(child.get("transform", "")) + around.move
            if child.tag == "use":
                at = Affine2D().translate(float(child.get("x", 0)), float(child.get("y", 0)))
                found = named.get(child.get("href", "").removeprefix("#"))
                if found is None:
                    continue
                style = {**_style(found.get("style", "")), **style}
                child, move = found, _moved(found.get("transform", "")) + at + move
            inside.append(_DrawnElement(child, style, move, clip))
        yield from (each for each in inside if each.element.tag in ("path", "text"))
        waiting += [each for each in reversed(inside) if each.element.tag in ("g", "svg")]


def _style(text: str) -> dict[str, str]:
    return {name.strip(): value.strip() for name, _, value in (part.partition(":") for part in text.split(";")) if name}


def _moved(text: str) -> Any:
    """The transform of an element; the last one of a list comes first."""
    from matplotlib.transforms import Affine2D

    made = Affine2D()
    for name, values in reversed(_MOVE.findall(text)):
        numbers = [float(value) for value in re.split(r"[ ,]+", values.strip())]
        if name == "translate":
            made.translate(numbers[0], numbers[1] if len(numbers) > 1 else 0.0)
        elif name == "scale":
            made.scale(*numbers)
        elif len(numbers) == 3:
            made.rotate_deg_around(numbers[1], numbers[2], numbers[0])
        else:
            made.rotate_deg(numbers[0])
    return made


def _path_of(text: str) -> Any:
    """A path of matplotlib; commands are absolute, as matplotlib and trees write them."""
    from matplotlib.path import Path

    codes = {"M": Path.MOVETO, "L": Path.LINETO, "Q": Path.CURVE3, "C": Path.CURVE4}
    points: list[tuple[float, float]] = []
    made: list[Any] = []
    command, numbers = "", list[float]()
    for token in _TOKEN.findall(text):
        if token.isalpha():
            command, numbers = token.upper(), []
            if command == "Z":
                points.append(points[-1])
                made.append(Path.CLOSEPOLY)
            continue
        numbers.append(float(token))
        if len(numbers) < _NUMBERS[command]:
            continue
        if command == "H":
            numbers = [numbers[0], points[-1][1]]
        if command == "V":
            numbers = [points[-1][0], numbers[0]]
        points += list(zip(numbers[::2], numbers[1::2], strict=True))
        made += [codes.get(command, Path.LINETO)] * (len(numbers) // 2)
        command, numbers = "L" if command == "M" else command, []
    return Path(points, made)


def _path(
    axes: Axes, drawing: _DrawnElement, named: dict[str | None, ElementTree.Element], scale: float, order: int
) -> None:
    from matplotlib.patches import PathPatch, Rectangle

    style = drawing.style
    path = _path_of(drawing.element.get("d", "")).transformed(drawing.move)
    fill, stroke = style.get("fill", "#000000"), style.get("stroke", "none")
    alpha = float(style.get("opacity", 1.0))
    dashes = [float(value) * scale for value in re.findall(r"[\d.]+", style.get("stroke-dasharray", ""))]
    patch = PathPatch(
        path,
        facecolor=_colour(fill, alpha * float(style.get("fill-opacity", 1.0))),
        edgecolor=_colour(stroke, alpha * float(style.get("stroke-opacity", 1.0))),
        linewidth=float(style.get("stroke-width", 1.0)) * scale if stroke != "none" else 0.0,
        linestyle=(0.0, dashes) if dashes else "solid",
        capstyle={"square": "projecting"}.get(style.get("stroke-linecap", ""), style.get("stroke-linecap", "butt")),
        zorder=order,
    )
    axes.add_patch(patch)
    frame = next(iter(named[drawing.clip]), None) if drawing.clip in named else None
    if frame is not None and frame.tag == "rect":
        x, y, width, height = (float(frame.get(name, 0)) for name in ("x", "y", "width", "height"))
        patch.set_clip_path(Rectangle((x, y), width, height, transform=axes.transData))


def _colour(name: str, alpha: float) -> Any:
    return "none" if name == "none" else (name, alpha)


def _font(style: dict[str, str]) -> float:
    found = _SIZE.search(style.get("font-size") or style.get("font", ""))
    return float(found[1]) if found else 10.0


def _text(axes: Axes, drawing: _DrawnElement, scale: float, order: int) -> None:
    style, font = drawing.style, drawing.style.get("font", "")
    at = float(drawing.element.get("x", 0)), float(drawing.element.get("y", 0))
    x, y = drawing.move.transform(at)
    angle = drawing.move.get_matrix()
    axes.text(
        x,
        y,
        "".join(drawing.element.itertext()),
        fontsize=_font(style) * scale,
        color=style.get("fill", "#000000"),
        horizontalalignment={"middle": "center", "end": "right"}.get(style.get("text-anchor", ""), "left"),
        verticalalignment="baseline",
        rotation=-math.degrees(math.atan2(angle[1, 0], angle[0, 0])),
        rotation_mode="anchor",
        fontstyle="italic" if "italic" in font else "normal",
        fontweight="bold" if "600" in font else "normal",
        parse_math=False,
        zorder=order,
    )


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
