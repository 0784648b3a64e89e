"""Figures of tendencies: types, ranks, lengths, shares and chance, a small panel a sample.

`drawn_of` takes what is drawn from a comparison, as JSON; `tendencies_figure` draws that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.evaluation.show.figures import MODEL, QUIET, SAMPLE, SECOND, TRUTH, binned, figure, to_svg
from truesource.evaluation.tendencies.findings import SampleCurves, Tendencies
from truesource.grammar.support.arrays import FloatArray

if TYPE_CHECKING:
    from truesource.evaluation.tendencies.type_token import LengthDistances


ACROSS = 5  #: most panels in a row
TALL = 1.75  #: inches of a row of panels
ROW = 0.27  #: inches of a row where a sample is a row
LEGEND = 0.55  #: inches of headings and labels around panels
LEAST = 5  #: sentences of one length that a mean is drawn of
FONT = 9.0
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
DISTANCES = ("to_reference", "to_reference_law", "to_own_law")  #: at each length
OTHER = "beside"  #: key of the curves of the text or truth that samples are compared with
Drawn = Mapping[str, Any]  #: see `drawn_of`


def drawn_of(found: Tendencies) -> dict[str, object]:
    """Return the content of the figure of a comparison: JSON values.

    ``samples`` has an entry for each sample, and another entry is for the text or truth that they are compared with:
    curves as lists of x and of y. ``ends`` are the shortest and the longest sentence that panels show.
    """
    base = found.curves.get(found.reference)
    names = [name for name in found.curves if name != found.reference]
    return {
        "truth": found.truth is not None,
        "other": "the truth" if found.truth is not None else "the reference",
        "ends": _ends(found),
        OTHER: _truth(found) if found.truth is not None else None if base is None else _text(found.reference, base),
        "samples": {name: _sample(found, name, base) for name in names},
    }


def _truth(found: Tendencies) -> dict[str, object]:
    truth = found.truth
    assert truth is not None
    floor = {kind: np.flatnonzero(np.isfinite(truth.floor[kind][0])) for kind in ("reference", "reference_law")}
    rank = np.unique(np.geomspace(1, len(truth.by_rank), 300).round().astype(np.int64))
    lengths, types = np.flatnonzero(truth.lengths > 0), np.flatnonzero(truth.types > 0)
    return {
        "name": "truth (exact)",
        "lengths": _curve(lengths, truth.lengths[lengths]),
        "types": _curve(types, truth.types[types]),
        "floor": {kind: [at.tolist(), *truth.floor[kind][:, at].tolist()] for kind, at in floor.items()},
        "ranks": _curve(rank, truth.by_rank[rank - 1]),
        "shares": {label: _box(*share) for label, share in truth.shares.items()},
    }


def _text(name: str, base: SampleCurves) -> dict[str, object]:
    means = base.types.means()
    rank = np.unique(np.geomspace(1, len(base.by_rank), 300).round().astype(np.int64))
    there = np.flatnonzero(np.isfinite(means))
    return {
        "name": name,
        "lengths": _curve(np.arange(len(base.lengths)), base.lengths / base.lengths.sum()),
        "types": _curve(there, means[there]),
        "floor": {},
        "ranks": _curve(rank, base.by_rank[rank - 1] / base.by_rank.sum()),
        "shares": {label: _box(*share) for label, share in base.shares.items()},
    }


def _sample(found: Tendencies, name: str, base: SampleCurves | None) -> dict[str, object]:
    curves = found.curves[name]
    at = np.flatnonzero(curves.types.sentences >= LEAST)
    every = np.arange(1, len(curves.lengths))
    ranks = curves.ranks
    return {
        "lengths": (curves.lengths / curves.lengths.sum()).tolist(),
        "types": _curve(at, curves.types.means()[at]),
        "heaps": None if curves.heaps is None else _curve(every, curves.heaps.mean(every)),
        "gap": _gap(found, curves, base),
        "distances": {field: _values(curves.by_length, field) for field in DISTANCES} if curves.by_length else None,
        "ranks": _curve(*binned(curves.by_rank)),
        "zipf": None if ranks is None else [ranks.ranks, ranks.reference_exponent, ranks.exponent],
        "shares": {label: _box(*share) for label, share in curves.shares.items()},
        "chance": _chance_of(found, name),
    }


def _curve(x: Any, y: Any) -> list[list[float]]:
    return [np.asarray(side).tolist() for side in (x, y)]


def _box(values: FloatArray, weight: Any) -> dict[str, list[float] | float]:
    """Return the quantiles `QUANTILES` of a share, smallest values that so much does not exceed, and its mean."""
    weight = weight / weight.sum()
    at = np.searchsorted(np.cumsum(weight), np.array(QUANTILES) - 1e-12)
    return {"quantiles": values[np.minimum(at, len(values) - 1)].tolist(), "mean": float(values @ weight)}


def _gap(found: Tendencies, curves: SampleCurves, base: SampleCurves | None) -> list[list[float]]:
    """Return lengths, mean number of types minus the expected one, and its standard error."""
    types, truth = curves.types, found.truth
    there, error = types.sentences >= LEAST, types.errors()
    if truth is not None:
        expected = truth.types
        there = there & (expected > 0)
    elif base is not None:
        expected = base.types.means()
        there = there & (base.types.sentences >= LEAST)
        error = np.hypot(error, base.types.errors())
    else:
        return [[], [], []]
    at = np.flatnonzero(there)
    return [at.tolist(), (types.means() - expected)[at].tolist(), error[at].tolist()]


def _values(rows: Sequence[LengthDistances], field: str) -> list[list[float]]:
    there = [(row.length, test.value) for row in rows if (test := getattr(row, field)) is not None]
    return [[length for length, _ in there], [value for _, value in there]]


def _chance_of(found: Tendencies, name: str) -> dict[str, list[float] | float | None] | None:
    """Return the draws of chance as a histogram, and the sample's own total variation."""
    null, finding = found.curves[name].null.get("unigram_tv"), found.findings[name].get("unigram_tv")
    if null is None:
        return None
    if finding is None:
        return {}
    counts, edges = np.histogram(null, bins=24)
    return {
        "counts": counts.tolist(),
        "edges": edges.tolist(),
        "ends": [float(null.min()), float(null.max())],
        "mean": float(null.mean()),
        "value": finding.score.value,
        "p": None if finding.test is None else finding.test.p,
    }


def _ends(found: Tendencies) -> list[int]:
    """Return the possible lengths, and those that all but the longest 2.5% of the sentences of every sample have."""
    ends = []
    for curves in found.curves.values():
        cumulated = np.cumsum(curves.lengths) / curves.lengths.sum()
        ends.append((int(np.flatnonzero(curves.lengths)[0]), int(np.searchsorted(cumulated, 0.975))))
    if found.truth is not None:
        cumulated = np.cumsum(found.truth.lengths)
        ends.append((int(np.flatnonzero(found.truth.lengths)[0]), int(np.searchsorted(cumulated, 0.99))))
    return [min(low for low, _ in ends), max(high for _, high in ends)]


def tendencies_figure(shown: Drawn, salt: str = "tendencies") -> str:
    """Return all of them in one ``<svg>``: lengths, types by length, their distances, ranks, shares, and chance.

    Args:
        shown: of `drawn_of`; at most a dozen samples can be read.
        salt: of the ids, another one for each figure of a page.
    """
    samples = shown["samples"].values()
    panels = _rows(len(samples)) * TALL + LEGEND
    parts: list[tuple[float, Any]] = [(panels, _lengths)]
    if any(sample["gap"][0] for sample in samples):
        parts += [(panels, _types), (panels, _type_gaps)]
    if any(sample["distances"] for sample in samples):
        parts.append((panels, _distances))
    parts.append((panels, _ranks))
    if any(sample["shares"] for sample in samples):
        parts.append((LEGEND + 0.35 + ROW * (len(samples) + 1), _shares))
    if any(sample["chance"] is not None for sample in samples):
        parts.append((LEGEND + 0.35 + 1.3 * ROW * len(samples), _chance))
    with figure(9.4, sum(height for height, _ in parts), salt) as canvas:
        rows: Any = canvas.subfigures(len(parts), 1, squeeze=False, height_ratios=[height for height, _ in parts])
        for row, (_, draw) in zip(rows[:, 0], parts, strict=True):
            draw(row, shown)
        return to_svg(canvas, salt, "Lengths, types, ranks, shares and chance of samples")


# -- a panel a sample ---------------------------------------------------------------------------------------


def _colour(shown: Drawn) -> str:
    """Return the colour of what samples are compared with."""
    return TRUTH if shown["truth"] else "#111827"


def _lengths(drawn: Any, shown: Drawn) -> None:
    panels = _panels(drawn, shown, f"Sentence lengths: bars the sample, line {shown['other']}", "tokens", "share")
    for axes, sample in zip(panels, shown["samples"].values(), strict=True):
        axes.bar(np.arange(len(sample["lengths"])), sample["lengths"], width=0.9, color=SAMPLE)
        if shown[OTHER] is not None:
            axes.plot(*shown[OTHER]["lengths"], color=_colour(shown), linewidth=1.3 if shown["truth"] else 1.1)
    panels[0].set_ylim(bottom=0.0)
    _common_lengths(panels, shown)


def _types(drawn: Any, shown: Drawn) -> None:
    other = shown["other"]
    title = f"Different words in a sentence: points the sample, line {other}, dashed Heaps' law of the sample"
    panels = _panels(drawn, shown, title, "tokens", "types")
    for axes, sample in zip(panels, shown["samples"].values(), strict=True):
        axes.plot(*sample["types"], linestyle="none", marker="o", markersize=2.8, color=MODEL)
        if shown[OTHER] is not None:
            axes.plot(*shown[OTHER]["types"], color=_colour(shown), linewidth=1.3)
        if sample["heaps"] is not None:
            axes.plot(*sample["heaps"], color=QUIET, linewidth=1.1, linestyle=(0, (3, 2)))
    _common_lengths(panels, shown)
    low, high = panels[0].get_xlim()
    panels[0].set_ylim(max(0.0, 0.7 * low), high)


def _type_gaps(drawn: Any, shown: Drawn) -> None:
    title = f"Different words in a sentence, minus {shown['other']} at the same length (bars: 95%)"
    panels = _panels(drawn, shown, title, "tokens", "types, difference")
    for axes, sample in zip(panels, shown["samples"].values(), strict=True):
        axes.axhline(0.0, color=_colour(shown), linewidth=1.3)
        at, gap, error = sample["gap"]
        bars: Any = {"linestyle": "none", "marker": "o", "markersize": 2.8, "linewidth": 0.9, "color": MODEL}
        axes.errorbar(at, gap, yerr=1.96 * np.array(error), **bars)
    _common_lengths(panels, shown)
    limit = max(abs(end) for axes in panels for end in axes.get_ylim())
    panels[0].set_ylim(-limit, limit)


def _distances(drawn: Any, shown: Drawn) -> None:
    panels = _panels(drawn, shown, "Types at each length, KS distances to", "tokens", "KS distance")
    floor = {} if shown[OTHER] is None else shown[OTHER]["floor"]
    labels = (shown["other"], f"Heaps' law of {shown['other']}", "Heaps' law of the sample")
    looks = ((MODEL, "-"), (SECOND, "-"), (QUIET, (0, (3, 2))))
    for number, (axes, sample) in enumerate(zip(panels, shown["samples"].values(), strict=True)):
        for kind, colour in (("reference", MODEL), ("reference_law", SECOND)):
            if kind in floor:
                axes.fill_between(*floor[kind], color=colour, alpha=0.2, linewidth=0)
        for field, label, (colour, style) in zip(DISTANCES, labels, looks, strict=True):
            shade = " (shaded: 95% of samples of the truth)" if shown["truth"] and field == "to_reference" else ""
            curve = sample["distances"][field] if sample["distances"] else [[], []]
            named = label + shade if number == 0 else None
            axes.plot(*curve, color=colour, linestyle=style, linewidth=1.3, label=named)
    panels[0].set_ylim(bottom=0.0)
    _common_lengths(panels, shown)
    _legend(drawn, panels[0], 3)


def _ranks(drawn: Any, shown: Drawn) -> None:
    by = "ranks of the truth" if shown["truth"] else "each by its own ranks"
    title = f"Word frequency against rank ({by}); s: exponent of the sample's Zipf law"
    panels = _panels(drawn, shown, title, "rank", "share of tokens")
    for number, (axes, sample) in enumerate(zip(panels, shown["samples"].values(), strict=True)):
        first = number == 0
        points: Any = {"linestyle": "none", "marker": "o", "markersize": 2.6, "color": MODEL}
        axes.loglog(*sample["ranks"], **points, label="sample" if first else None)
        if shown[OTHER] is not None:
            label = shown["other"] if first else None
            axes.loglog(*shown[OTHER]["ranks"], color=_colour(shown), linewidth=1.3, label=label)
        if sample["zipf"] is not None:
            most, of_other, own_exponent = sample["zipf"]
            rank = np.unique(np.geomspace(1, most, 100).round())
            for s, colour, label in (
                (of_other, SECOND, f"Zipf law of {shown['other']}"),
                (own_exponent, QUIET, "Zipf law of the sample"),
            ):
                law = rank**-s / (np.arange(1, most + 1) ** -s).sum()
                style: Any = "-" if colour == SECOND else (0, (3, 2))
                axes.loglog(rank, law, color=colour, linewidth=1.1, linestyle=style, label=label if first else None)
            axes.text(0.96, 0.94, f"s = {own_exponent:.3f}", transform=axes.transAxes, ha="right", va="top", fontsize=8)
        axes.minorticks_off()
    _legend(drawn, panels[0], 4)


# -- a row a sample -----------------------------------------------------------------------------------------


def _shares(drawn: Any, shown: Drawn) -> None:
    samples, beside = shown["samples"], shown[OTHER]
    classes = list(next(iter(samples.values()))["shares"])
    panels = drawn.subplots(1, len(classes), sharey=True, squeeze=False)[0]
    drawn.suptitle(
        "Shares in a sentence: median, quartiles, middle 90% (line); point: mean; shaded: quartiles of "
        + shown["other"],
        fontsize=FONT,
    )
    for axes, label in zip(panels, classes, strict=True):
        rows = [(name, sample["shares"][label], MODEL) for name, sample in samples.items()]
        if beside is not None and label in beside["shares"]:
            rows.insert(0, (beside["name"], beside["shares"][label], TRUTH if shown["truth"] else QUIET))
        for y, (_, box, colour) in enumerate(rows):
            _draw_box(axes, y, box, colour)
        _, low, _, high, _ = rows[0][1]["quantiles"]
        axes.axvspan(low, high, color=rows[0][2], alpha=0.1, linewidth=0)
        axes.set_yticks(range(len(rows)), [row[0] for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel(f"share of {label}")
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
        axes.set_xlim(left=0.0)
        axes.grid(axis="x")
        axes.tick_params(axis="y", length=0)


def _draw_box(axes: Any, y: int, box: Mapping[str, Any], colour: str) -> None:
    low, first, middle, third, high = box["quantiles"]
    axes.plot([low, high], [y, y], color=colour, linewidth=1.0)
    axes.barh(y, third - first, 0.55, left=first, color=colour, alpha=0.35, linewidth=0)
    axes.plot([middle, middle], [y - 0.28, y + 0.28], color=colour, linewidth=2.0, solid_capstyle="butt")
    axes.plot([box["mean"]], [y], marker="o", markersize=3.6, linestyle="none", color=colour)


def _chance(drawn: Any, shown: Drawn) -> None:
    axes, names = drawn.subplots(), list(shown["samples"])
    drawn.suptitle(
        "Word frequencies, total variation: grey what chance gives (its draws), point the sample", fontsize=FONT
    )
    ends: list[float] = []
    for y, sample in enumerate(shown["samples"].values()):
        chance = sample["chance"]
        if not chance:
            continue
        counts, edges, value = np.array(chance["counts"]), np.array(chance["edges"]), chance["value"]
        height = -0.75 * counts / counts.max()  # the axis points down
        axes.bar(edges[:-1], height, width=np.diff(edges), bottom=y + 0.38, align="edge", color=QUIET, alpha=0.55)
        ends += [*chance["ends"], value]
        axes.plot([chance["mean"], value], [y, y], color=SAMPLE, linewidth=1.0, zorder=1)
        axes.plot([value], [y], marker="D", markersize=5, linestyle="none", color=MODEL, zorder=3)
        p = "" if chance["p"] is None else f", p = {chance['p']:.2g}"
        axes.annotate(f"{value:.4f}{p}", (value, y), (7, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(f"total variation distance to {shown['other']}")
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    if high > low:
        left = low - 0.1 * (high - low) if low > 0.6 * high else 0.0  # from 0 on, unless all lie close together
        axes.set_xlim(left, high + 0.2 * (high - left))
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)


# -- what they share ----------------------------------------------------------------------------------------


def _rows(count: int) -> int:
    return -(-count // ACROSS)


def _panels(drawn: Any, shown: Drawn, title: str, x: str, y: str) -> list[Any]:
    """Return a panel a sample, all with the same axes."""
    names = list(shown["samples"])
    across = -(-len(names) // _rows(len(names)))
    grid = drawn.subplots(-(-len(names) // across), across, sharex=True, sharey=True, squeeze=False)
    for i, axes in enumerate(grid.flat):
        axes.set_visible(i < len(names))
        axes.tick_params(labelbottom=i + across >= len(names))
        axes.grid()
        if i + across >= len(names):
            axes.set_xlabel(x, fontsize=FONT, labelpad=1.5)
        if i < len(names):
            axes.set_title(names[i], fontsize=FONT)
    drawn.suptitle(title, fontsize=FONT)
    drawn.supylabel(y, fontsize=FONT)
    return list(grid.flat[: len(names)])


def _common_lengths(panels: Sequence[Any], shown: Drawn) -> None:
    from matplotlib.ticker import MaxNLocator

    low, high = shown["ends"]
    panels[0].set_xlim(low - 0.8, high + 0.8)
    panels[0].xaxis.set_major_locator(MaxNLocator(6, integer=True))


def _legend(drawn: Any, axes: Any, columns: int) -> None:
    drawn.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns)
