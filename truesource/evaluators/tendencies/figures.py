"""Figures of tendencies: types, ranks, lengths, shares and chance, a small panel a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.evaluation.tendencies.findings import SampleCurves, Tendencies
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.report.figures import MODEL, QUIET, SAMPLE, SECOND, TRUTH, binned, figure, to_svg

if TYPE_CHECKING:
    from truesource.evaluation.tendencies.laws import LengthDistances


ACROSS = 5  #: most panels in a row
TALL = 1.75  #: inches of a row of panels
ROW = 0.27  #: inches of a row where a sample is a row
LEGEND = 0.55  #: inches of headings and labels around panels
LEAST = 5  #: sentences of one length that a mean is drawn of
FONT = 9.0


@dataclass(frozen=True)
class _Shown:
    """The samples and values of a figure."""

    found: Tendencies
    names: list[str]  #: samples
    base: SampleCurves | None  #: of the reference, if that is a text

    @property
    def other(self) -> str:
        """The name of the text or truth that samples are compared with."""
        return "the truth" if self.found.truth is not None else "the reference"

    @property
    def colour(self) -> str:
        """Of what they are compared with."""
        return TRUTH if self.found.truth is not None else "#111827"

    def curves(self, name: str) -> SampleCurves:
        """The curves of a sample."""
        return self.found.curves[name]

    def expected_types(self) -> FloatArray | None:
        """Different words at each length, NaN where there is no such sentence; None if there is no reference."""
        if self.found.truth is not None:
            return np.where(self.found.truth.types > 0, self.found.truth.types, np.nan)
        return None if self.base is None else self.base.types.means()


def tendencies_figure(found: Tendencies, salt: str = "tendencies") -> str:
    """All of them in one ``<svg>``: lengths, types by length, their distances, ranks, shares, and chance.

    Args:
        found: at most a dozen samples can be read.
        salt: of the ids, another one for each figure of a page.
    """
    names = [name for name in found.curves if name != found.reference]
    shown = _Shown(found, names, found.curves.get(found.reference))
    panels = _rows(len(names)) * TALL + LEGEND
    parts: list[tuple[float, Any]] = [(panels, _lengths)]
    if any(_drawable(shown, name) for name in names):
        parts += [(panels, _types), (panels, _type_gaps)]
    if any(shown.curves(name).by_length for name in names):
        parts.append((panels, _distances))
    parts += [(panels, _ranks), (LEGEND + 0.35 + ROW * (len(names) + 1), _shares)]
    if any("unigram_tv" in shown.curves(name).null for name in names):
        parts.append((LEGEND + 0.35 + 1.3 * ROW * len(names), _chance))
    if not any(shown.curves(name).shares for name in names):
        parts = [part for part in parts if part[1] is not _shares]
    with figure(9.4, sum(height for height, _ in parts), salt) as drawn:
        rows: Any = drawn.subfigures(len(parts), 1, squeeze=False, height_ratios=[height for height, _ in parts])
        for row, (_, draw) in zip(rows[:, 0], parts, strict=True):
            draw(row, shown)
        return to_svg(drawn, salt, "Lengths, types, ranks, shares and chance of samples")


# -- a panel a sample ---------------------------------------------------------------------------------------


def _lengths(drawn: Any, shown: _Shown) -> None:
    panels = _panels(drawn, shown, f"Sentence lengths: bars the sample, line {shown.other}", "tokens", "share")
    for axes, name in zip(panels, shown.names, strict=True):
        counts = shown.curves(name).lengths
        axes.bar(np.arange(len(counts)), counts / counts.sum(), width=0.9, color=SAMPLE)
        truth = shown.found.truth
        if truth is not None:
            at = np.flatnonzero(truth.lengths > 0)
            axes.plot(at, truth.lengths[at], color=shown.colour, linewidth=1.3)
        elif shown.base is not None:
            at, whole = np.arange(len(shown.base.lengths)), shown.base.lengths.sum()
            axes.plot(at, shown.base.lengths / whole, color=shown.colour, linewidth=1.1)
    panels[0].set_ylim(bottom=0.0)
    _common_lengths(panels, shown)


def _types(drawn: Any, shown: _Shown) -> None:
    title = f"Different words in a sentence: points the sample, line {shown.other}, dashed Heaps' law of the sample"
    panels = _panels(drawn, shown, title, "tokens", "types")
    for axes, name in zip(panels, shown.names, strict=True):
        curves = shown.curves(name)
        at = np.flatnonzero(curves.types.sentences >= LEAST)
        axes.plot(at, curves.types.means()[at], linestyle="none", marker="o", markersize=2.8, color=MODEL)
        wanted = shown.expected_types()
        if wanted is not None:
            axes.plot(np.arange(len(wanted)), wanted, color=shown.colour, linewidth=1.3)
        if curves.heaps is not None:
            every = np.arange(1, len(curves.lengths))
            axes.plot(every, curves.heaps.mean(every), color=QUIET, linewidth=1.1, linestyle=(0, (3, 2)))
    _common_lengths(panels, shown)
    low, high = panels[0].get_xlim()
    panels[0].set_ylim(max(0.0, 0.7 * low), high)


def _type_gaps(drawn: Any, shown: _Shown) -> None:
    title = f"Different words in a sentence, minus those of {shown.other} at the same length (bars: 95%)"
    panels = _panels(drawn, shown, title, "tokens", "types, difference")
    for axes, name in zip(panels, shown.names, strict=True):
        axes.axhline(0.0, color=shown.colour, linewidth=1.3)
        at, gap, error = _gap(shown, name)
        bars: Any = {"linestyle": "none", "marker": "o", "markersize": 2.8, "linewidth": 0.9, "color": MODEL}
        axes.errorbar(at, gap, yerr=1.96 * error, **bars)
    _common_lengths(panels, shown)
    limit = max(abs(end) for axes in panels for end in axes.get_ylim())
    panels[0].set_ylim(-limit, limit)


def _distances(drawn: Any, shown: _Shown) -> None:
    title = "Types at each length, KS distances to"
    panels = _panels(drawn, shown, title, "tokens", "KS distance")
    truth = shown.found.truth
    lines = (
        ("reference", shown.other, MODEL, "-", "to_reference"),
        ("reference_law", f"Heaps' law of {shown.other}", SECOND, "-", "to_reference_law"),
        ("own", "Heaps' law of the sample", QUIET, (0, (3, 2)), "to_own_law"),
    )
    for number, (axes, name) in enumerate(zip(panels, shown.names, strict=True)):
        if truth is not None:
            for kind, colour in (("reference", MODEL), ("reference_law", SECOND)):
                low, high = truth.floor[kind]
                at = np.flatnonzero(np.isfinite(low))
                axes.fill_between(at, low[at], high[at], color=colour, alpha=0.2, linewidth=0)
        for _, label, colour, style, field in lines:
            x, values = _values(shown.curves(name).by_length, field)
            shade = " (shaded: 95% of samples of the truth)" if truth is not None and field == "to_reference" else ""
            axes.plot(
                x, values, color=colour, linestyle=style, linewidth=1.3, label=label + shade if number == 0 else None
            )
    panels[0].set_ylim(bottom=0.0)
    _common_lengths(panels, shown)
    _legend(drawn, panels[0], 3)


def _ranks(drawn: Any, shown: _Shown) -> None:
    truth = shown.found.truth
    by = "ranks of the truth" if truth is not None else "each by its own ranks"
    title = f"Word frequency against rank ({by}); s: exponent of the sample's Zipf law"
    panels = _panels(drawn, shown, title, "rank", "share of tokens")
    for number, (axes, name) in enumerate(zip(panels, shown.names, strict=True)):
        curves, first = shown.curves(name), number == 0
        at, share = binned(curves.by_rank)
        axes.loglog(
            at, share, linestyle="none", marker="o", markersize=2.6, color=MODEL, label="sample" if first else None
        )
        whole = truth.by_rank if truth is not None else None
        if whole is None and shown.base is not None:
            whole = shown.base.by_rank / shown.base.by_rank.sum()
        if whole is not None:
            rank = np.unique(np.geomspace(1, len(whole), 300).round().astype(np.int64))
            axes.loglog(rank, whole[rank - 1], color=shown.colour, linewidth=1.3, label=shown.other if first else None)
        if curves.ranks is not None:
            rank = np.unique(np.geomspace(1, curves.ranks.ranks, 100).round())
            for s, colour, label in (
                (curves.ranks.reference_exponent, SECOND, f"Zipf law of {shown.other}"),
                (curves.ranks.exponent, QUIET, "Zipf law of the sample"),
            ):
                law = rank**-s / (np.arange(1, curves.ranks.ranks + 1) ** -s).sum()
                style: Any = "-" if colour == SECOND else (0, (3, 2))
                axes.loglog(rank, law, color=colour, linewidth=1.1, linestyle=style, label=label if first else None)
            words = f"s = {curves.ranks.exponent:.3f}"
            axes.text(0.96, 0.94, words, transform=axes.transAxes, ha="right", va="top", fontsize=8)
        axes.minorticks_off()
    _legend(drawn, panels[0], 4)


# -- a row a sample -----------------------------------------------------------------------------------------


def _shares(drawn: Any, shown: _Shown) -> None:
    classes = list(shown.curves(shown.names[0]).shares)
    panels = drawn.subplots(1, len(classes), sharey=True, squeeze=False)[0]
    drawn.suptitle(
        "Shares in a sentence: median, quartiles, middle 90% (line); point: mean; shaded: quartiles of " + shown.other,
        fontsize=FONT,
    )
    truth = shown.found.truth
    for axes, label in zip(panels, classes, strict=True):
        rows: list[tuple[str, FloatArray, FloatArray, str]] = []
        if truth is not None and label in truth.shares:
            rows.append(("truth (exact)", *truth.shares[label], TRUTH))
        elif shown.base is not None and truth is None:
            values, counts = shown.base.shares[label]
            rows.append((shown.found.reference, values, counts / counts.sum(), QUIET))
        for name in shown.names:
            values, counts = shown.curves(name).shares[label]
            rows.append((name, values, counts / counts.sum(), MODEL))
        for y, (_, values, weight, colour) in enumerate(rows):
            _box(axes, y, values, weight, colour)
        low, high = _quantiles(rows[0][1], rows[0][2], (0.25, 0.75))
        axes.axvspan(low, high, color=rows[0][3], alpha=0.1, linewidth=0)
        axes.set_yticks(range(len(rows)), [row[0] for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel(f"share of {label}")
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
        axes.set_xlim(left=0.0)
        axes.grid(axis="x")
        axes.tick_params(axis="y", length=0)


def _chance(drawn: Any, shown: _Shown) -> None:
    axes = drawn.subplots()
    drawn.suptitle(
        "Word frequencies, total variation: grey what chance gives (its draws), point the sample", fontsize=FONT
    )
    ends: list[float] = []
    for y, name in enumerate(shown.names):
        null = shown.curves(name).null.get("unigram_tv")
        finding = shown.found.findings[name].get("unigram_tv")
        if null is None or finding is None:
            continue
        counts, edges = np.histogram(null, bins=24)
        height = -0.75 * counts / counts.max()  # the axis points down
        axes.bar(edges[:-1], height, width=np.diff(edges), bottom=y + 0.38, align="edge", color=QUIET, alpha=0.55)
        value = finding.score.value
        ends += [float(null.min()), float(null.max()), value]
        axes.plot([null.mean(), value], [y, y], color=SAMPLE, linewidth=1.0, zorder=1)
        axes.plot([value], [y], marker="D", markersize=5, linestyle="none", color=MODEL, zorder=3)
        p = "" if finding.test is None else f", p = {finding.test.p:.2g}"
        axes.annotate(f"{value:.4f}{p}", (value, y), (7, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(shown.names)), shown.names)
    axes.set_ylim(len(shown.names) - 0.4, -0.6)
    axes.set_xlabel(f"total variation distance to {shown.other}")
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    if high > low:
        left = low - 0.1 * (high - low) if low > 0.6 * high else 0.0  # from 0 on, unless all lie close together
        axes.set_xlim(left, high + 0.2 * (high - left))
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)


# -- what they share ----------------------------------------------------------------------------------------


def _rows(count: int) -> int:
    return -(-count // ACROSS)


def _panels(drawn: Any, shown: _Shown, title: str, x: str, y: str) -> list[Any]:
    """A panel a sample, all with the same axes."""
    count = len(shown.names)
    across = -(-count // _rows(count))
    grid = drawn.subplots(-(-count // across), across, sharex=True, sharey=True, squeeze=False)
    for i, axes in enumerate(grid.flat):
        axes.set_visible(i < count)
        axes.tick_params(labelbottom=i + across >= count)
        axes.grid()
        if i + across >= count:
            axes.set_xlabel(x, fontsize=FONT, labelpad=1.5)
        if i < count:
            axes.set_title(shown.names[i], fontsize=FONT)
    drawn.suptitle(title, fontsize=FONT)
    drawn.supylabel(y, fontsize=FONT)
    return list(grid.flat[:count])


def _common_lengths(panels: Sequence[Any], shown: _Shown) -> None:
    """The possible lengths, and those that all but the longest 2.5% of the sentences of every sample have."""
    from matplotlib.ticker import MaxNLocator

    ends = []
    for curves in shown.found.curves.values():
        cumulated = np.cumsum(curves.lengths) / curves.lengths.sum()
        ends.append((int(np.flatnonzero(curves.lengths)[0]), int(np.searchsorted(cumulated, 0.975))))
    truth = shown.found.truth
    if truth is not None:
        cumulated = np.cumsum(truth.lengths)
        ends.append((int(np.flatnonzero(truth.lengths)[0]), int(np.searchsorted(cumulated, 0.99))))
    panels[0].set_xlim(min(low for low, _ in ends) - 0.8, max(high for _, high in ends) + 0.8)
    panels[0].xaxis.set_major_locator(MaxNLocator(6, integer=True))


def _legend(drawn: Any, axes: Any, columns: int) -> None:
    drawn.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns)


def _drawable(shown: _Shown, name: str) -> bool:
    return len(_gap(shown, name)[0]) > 0


def _gap(shown: _Shown, name: str) -> tuple[IntArray, FloatArray, FloatArray]:
    """Lengths, mean number of types minus the expected one, and its standard error."""
    types = shown.curves(name).types
    there = types.sentences >= LEAST
    error = types.errors()
    truth = shown.found.truth
    if truth is not None:
        wanted = truth.types
        there &= wanted > 0
    elif shown.base is not None:
        wanted = shown.base.types.means()
        there &= shown.base.types.sentences >= LEAST
        error = np.hypot(error, shown.base.types.errors())
    else:
        there[:] = False
        wanted = error
    at = np.flatnonzero(there)
    return at, (types.means() - wanted)[at], error[at]


def _values(rows: Sequence[LengthDistances], field: str) -> tuple[list[int], list[float]]:
    there = [(row.length, getattr(row, field)) for row in rows]
    return [length for length, test in there if test is not None], [test.value for _, test in there if test is not None]


def _box(axes: Any, y: int, values: FloatArray, weight: FloatArray, colour: str) -> None:
    low, first, middle, third, high = _quantiles(values, weight, (0.05, 0.25, 0.5, 0.75, 0.95))
    axes.plot([low, high], [y, y], color=colour, linewidth=1.0)
    axes.barh(y, third - first, 0.55, left=first, color=colour, alpha=0.35, linewidth=0)
    axes.plot([middle, middle], [y - 0.28, y + 0.28], color=colour, linewidth=2.0, solid_capstyle="butt")
    axes.plot([float(values @ weight)], [y], marker="o", markersize=3.6, linestyle="none", color=colour)


def _quantiles(values: FloatArray, weight: FloatArray, at: Sequence[float]) -> FloatArray:
    """Smallest values that so much of the weight does not exceed."""
    cumulated = np.cumsum(weight) / weight.sum()
    return values[np.minimum(np.searchsorted(cumulated, np.array(at) - 1e-12), len(values) - 1)]
