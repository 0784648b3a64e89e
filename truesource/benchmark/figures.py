"""Figures of the benchmark: shares of every model on every language, and learning curves against the exact bound."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, product
from typing import Any, Literal

import numpy as np

from truesource.benchmark.results import BenchmarkResults
from truesource.benchmark.standings import THRESHOLDS, Standing, Standings
from truesource.benchmark.tables import is_reference, remarks
from truesource.grammar.support.printable import one_line
from truesource.report.figures import QUIET, SERIES, TRUTH, figure, plain_log_axis, round_ticks, to_svg
from truesource.report.table import ABSENT, shown
from truesource.report.words import brief

#: of shares: where a colour begins, its name and the colour; what the model has learned is blue, the rest is not
SHADES = (
    (-np.inf, "below \N{MINUS SIGN}1", "#A8508F"),
    (-1.0, "\N{MINUS SIGN}1 to 0", "#E8C4DC"),
    (0.0, "0 to .25", "#F7FBFF"),
    (0.25, "to .5", "#DCEBF7"),
    (0.5, "to .75", "#B3D3EA"),
    (0.75, "to .9", "#7FB2D5"),
    (0.9, "to .95", "#4A90C2"),
    (0.95, "to .99", "#1F6BA5"),
    (0.99, "to 1", "#0B3F70"),
)
NOTHING = "#F1F2F4"  #: colour of a cell that was not measured
INK, PAPER = "#111827", "#FFFFFF"  #: of numbers on pale and on dark colours
DARK = ("#A8508F", "#1F6BA5", "#0B3F70")
WIDTH = 9.4  #: inches, at least
COLUMN, NAMES = 0.56, 1.9  #: inches that a language and the names of models need
UPRIGHT = 10  #: languages, whose names stand aslant where there are more
PANELS = 4  #: of learning curves in a row
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
FREQUENCIES: dict[str, Any] = {"linestyle": (0, (6, 4)), "linewidth": 1.0}  #: the line of the word frequencies
PLACES = 3  #: of shares, which are coloured as they are written


def heat_map(standings: Standings, part: Literal["test", "longer"] = "test", *, own: Sequence[str] = ()) -> str | None:
    """Share of information learned: a row a model, a column a language, with the number in each cell.

    Args:
        standings: of models of one objective.
        part: ``test``, or ``longer`` for strings longer than those of training.
        own: names of models that are marked as the reader's.

    Returns:
        An ``<svg>`` element; None: nothing of this part was measured.
    """
    shares = [[_share(row, name, part) for name in standings.languages] for row in standings.rows]
    if all(value is None for row in shares for value in row):
        return None
    height = 0.27 * len(shares)
    salt = f"shares{standings.objective}{part}"
    with figure(heat_map_width(standings), height + 1.3, salt) as drawn:
        axes, legend = drawn.subplots(2, 1, height_ratios=[height, 0.2])
        for (y, row), (x, _) in product(enumerate(shares), enumerate(standings.languages)):
            _square(axes, x, y, row[x])
        axes.set_xlim(-0.5, len(standings.languages) - 0.5)
        axes.set_ylim(len(shares) - 0.5, -0.5)
        axes.xaxis.tick_top()
        _name_columns(axes, standings.languages)
        axes.set_yticks(range(len(shares)), [_label(row, standings, own) for row in standings.rows])
        _bare(axes)
        _shade_legend(legend)
        what = "longer strings" if part == "longer" else "test strings"
        return to_svg(drawn, salt, f"Share of information learned by {standings.objective} models, {what}")


def heat_map_width(standings: Standings) -> float:
    """Of a heat map, inches."""
    return max(WIDTH, NAMES + COLUMN * len(standings.languages))


def learning_curves(results: BenchmarkResults, standings: Standings, *, own: Sequence[str] = ()) -> str | None:
    """KL in nats a token over training tokens: a panel a language, a line a model, logarithms on both axes.

    Args:
        results: whose standings these are.
        standings: of models of one objective.
        own: names of models whose lines are thick.

    Returns:
        An ``<svg>`` element; None: no model has a curve.
    """
    lines = dict(zip(_trained(standings), cycle(product(DASHES, SERIES)), strict=False))
    models = [row for row in standings.rows if row.name in lines]
    if not models:
        return None
    across = min(PANELS, len(standings.languages))
    down = -(-len(standings.languages) // across)
    salt = f"curves{standings.objective}"
    with figure(WIDTH, 2.1 * down + 0.35 + 0.2 * -(-len(models) // 6), salt) as drawn:
        panels = drawn.subplots(down, across, squeeze=False).ravel()
        for axes in panels[len(standings.languages) :]:
            axes.set_visible(False)
        for number, (axes, name) in enumerate(zip(panels, standings.languages, strict=False)):
            _panel(axes, models, name, lines, own)
            _bounds(axes, results, name, standings)
            axes.set_title(name)
            if number % across == 0:
                axes.set_ylabel("KL, nats a token")
            if number >= len(standings.languages) - across:
                axes.set_xlabel("training tokens")
        _line_legend(drawn, models, standings, lines, own)
        return to_svg(drawn, salt, f"Learning curves of {standings.objective} models on each language")


def shade(share: float) -> str:
    """The colour of a share."""
    return next(colour for low, _, colour in reversed(SHADES) if round(share, PLACES) >= low)


def _share(row: Standing, language: str, part: str) -> float | None:
    found = row.languages.get(language)
    contrast = None if found is None else found.longer_share if part == "longer" else found.share
    return None if contrast is None else contrast.value


def _square(axes: Any, x: int, y: int, share: float | None) -> None:
    from matplotlib.patches import Rectangle

    colour = NOTHING if share is None else shade(share)
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor=PAPER, linewidth=1.2))
    text = ABSENT if share is None else shown(share, f".{PLACES}f" if abs(share) < 10.0 else ".4g")
    ink = PAPER if colour in DARK else INK
    axes.text(x, y, text, ha="center", va="center_baseline", color=ink, fontsize=8.5)


def _name_columns(axes: Any, names: Sequence[str]) -> None:
    if len(names) > UPRIGHT:
        axes.set_xticks(range(len(names)), names, rotation=35, ha="left", rotation_mode="anchor")
    else:
        axes.set_xticks(range(len(names)), [name.replace("-", "-\n") for name in names])


def _shade_legend(axes: Any) -> None:
    from matplotlib.patches import Rectangle

    for x, (_, text, colour) in enumerate(SHADES):
        axes.add_patch(Rectangle((x - 0.5, -0.5), 1, 1, facecolor=colour, edgecolor="#9CA3AF", linewidth=0.5))
        ink = PAPER if colour in DARK else INK
        axes.text(x, 0, text, ha="center", va="center_baseline", color=ink, fontsize=8)
    axes.set_xlim(-0.5, len(SHADES) - 0.5)
    axes.set_ylim(-0.5, 0.5)
    axes.set_xticks([])
    axes.set_yticks([])
    _bare(axes)


def _bare(axes: Any) -> None:
    axes.tick_params(length=0, labelcolor="#1f2937")
    for spine in axes.spines.values():
        spine.set_visible(False)


def _label(row: Standing, standings: Standings, own: Sequence[str]) -> str:
    said = remarks(row, standings, own)
    return one_line(row.name) + (f" ({', '.join(said)})" if said else "")


def _trained(standings: Standings) -> list[str]:
    """Names of the models with curves that can be drawn, the best first."""
    rows = [row for row in standings.rows if not is_reference(row)]
    return [row.name for row in rows if any(_points(found.curve) for found in row.languages.values())]


def _points(curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those that logarithmic axes can show."""
    return [(tokens, kl) for tokens, kl in curve if tokens > 0 and kl > 0.0]


def _panel(axes: Any, models: Sequence[Standing], language: str, lines: Any, own: Sequence[str]) -> None:
    shown_points: list[tuple[float, float]] = []
    for row in models:
        found = row.languages.get(language)
        points = [] if found is None else _points(found.curve)
        if not points:
            continue
        shown_points += points
        dashes, colour = lines[row.name]
        marker = "o" if len(points) == 1 else ""
        width = 2.6 if row.name in own else 1.3
        axes.plot(
            *zip(*points, strict=True), color=colour, linestyle=dashes, linewidth=width, marker=marker, markersize=4
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    if not shown_points:
        return
    for axis, limits, values in (
        (axes.xaxis, axes.set_xlim, [x for x, _ in shown_points]),
        (axes.yaxis, axes.set_ylim, [*(y for _, y in shown_points), *THRESHOLDS[:1]]),
    ):
        margin = max(1.15, (max(values) / min(values)) ** 0.06)
        low, high = min(values) / margin, max(values) * margin
        limits(low, high)
        _ticks(axis, round_ticks(low, high, most=4))


def _ticks(axis: Any, ticks: list[float]) -> None:
    from matplotlib.ticker import FixedFormatter

    plain_log_axis(axis, ticks)
    axis.set_major_formatter(FixedFormatter([brief(tick) for tick in ticks]))


def _bounds(axes: Any, results: BenchmarkResults, language: str, standings: Standings) -> None:
    """The line of the word frequencies, those of the thresholds, and where the truth would be."""
    record = results["languages"].get(language)
    truth = None if record is None else record["truth"].get(standings.objective)
    if truth is None or not axes.lines:
        axes.text(0.5, 0.5, "not measured", ha="center", color=QUIET, transform=axes.transAxes)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    information = sum(truth["test"]["information"]) / sum(truth["test"]["contexts"])
    low, high = axes.get_ylim()
    axes.set_ylim(low, max(high, information * 1.2))
    axes.axhline(information, color=INK, **FREQUENCIES)
    axes.grid(axis="y")
    axes.text(0.03, 0.03, "\N{DOWNWARDS ARROW} the truth: 0", color=TRUTH, fontsize=8, transform=axes.transAxes)


def _line_legend(drawn: Any, models: Sequence[Standing], standings: Standings, lines: Any, own: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], color=lines[row.name][1], linestyle=lines[row.name][0], linewidth=2.6 if row.name in own else 1.3
        )
        for row in models
    ]
    handles.append(Line2D([], [], color=INK, **FREQUENCIES))
    names = [*(_label(row, standings, own) for row in models), "word frequencies of the truth"]
    legend = drawn.legend(
        handles, [str(i) for i in range(len(names))], loc="outside upper center", ncols=min(6, len(names))
    )
    for text, name in zip(legend.get_texts(), names, strict=True):  # a name may begin with _, which hides a label
        text.set_text(name)
