"""Measurement, tables and figures of `evaluate dynamics`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NotRequired

import numpy as np
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.evaluator import EvaluatorOutput
from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import require_order
from truesource.evaluation.core.windows import window_name
from truesource.evaluation.divergence.blocks import END, PENN, read_classes, tags_of
from truesource.evaluation.dynamics.compare import learning_dynamics
from truesource.evaluation.dynamics.evaluator import DynamicsSettings
from truesource.evaluation.dynamics.extent import extent
from truesource.evaluation.dynamics.table import findings, left_out
from truesource.evaluation.show.figures import MODEL, QUIET, TRUTH, step_axis, to_svg
from truesource.evaluation.show.figures import figure as new_figure
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell, score_cell
from truesource.generator.abilities import offers, require
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import few_code, track
from truesource.grammar.support.records import STRICT, Count

if TYPE_CHECKING:
    from truesource.grammar.tree import Tree
    from truesource.lmtrain.references import ModelReference

# Okabe & Ito (2008), and darker shades; one per class, in the order of the classes
COLOURS = ("#E69F00", "#0066A6", "#00805F", "#8C4A73", "#56B4E9", "#7A5C00", "#D673AB", "#111827", "#5B3F8C")
NO_EXACT = (
    "No exact KL divergence of {}: it needs distributions over words, or over pieces given the pieces before them"
)
GAP = "ln Q \N{MINUS SIGN} ln P"
MEASURES = {
    "mean": f"mean of {GAP}, nats per token",
    "median": f"median of {GAP}, nats per token",
    "kl": "exact KL(P‖Q), nats per token",
}
PLACES = {
    "length": "words in the sentence",
    "position": "position in the sentence",
    "frequency": "frequency of the word",
    "depth": "constituents above the word",
}
IN_TREES = ("class", "depth")  #: groups that need the rules of a grammar
SMALL = 0.002  #: groups with a smaller share of the tokens are not drawn in figures by place
HEADS = {
    "class": "class",
    "length": "words in sentence",
    "position": "position",
    "frequency": "frequency",
    "depth": "constituents above",
    "all": "",
}


def measure(reference: ModelReference, setting: Setting, settings: DynamicsSettings) -> EvaluatorOutput:
    """Measure all snapshots of a model, the model itself last; see `evaluation.dynamics.compare.learning_dynamics`.

    Tokens of a process have no class and no depth, so these curves are missing.

    Raises:
        InputError: there is no class for a name in ``settings.only``, no exact divergence to show, or no derivations.
        NothingToMeasureError: the model has no snapshots, or its text is transformed.
    """
    from truesource.lmtrain.snapshots import checkpoints_of, snapshots  # torch, after the quick checks

    require_order(setting.transform, "evaluate dynamics")
    if not offers(setting.known, "parses"):
        if settings.only or settings.tags != "expected":
            require(setting.known, "parses", "--only or --tags of evaluate dynamics")
        settings = settings.model_copy(update={"by": tuple(by for by in settings.by if by not in IN_TREES)})
    classes = PENN if settings.classes is None else read_classes(settings.classes)
    frame = setting.frame
    if settings.measure == "kl" and frame != "default":
        raise InputError(f"there is no exact KL divergence in the frame {frame}, which excludes positions")
    if settings.only:
        names = (*classes.table(tags_of(setting.grammar))[0], END)
        unknown = [group for group in settings.only if group not in names]
        if unknown:
            raise InputError(f"there is no class {unknown[0]!r}; choose from {', '.join(names)}")
    if reference.folder is not None and not snapshots(reference.folder):
        raise NothingToMeasureError(f"{reference.title} has no snapshots of its training", "no-snapshots")
    steps = checkpoints_of(reference, "evaluate dynamics")
    result = learning_dynamics(
        ((step, load()) for step, load in track(steps, "comparing checkpoints", len(steps))),
        setting,
        name=reference.title,
        settings=settings,
        classes=classes,
        trees=sampled_trees(setting) if settings.tags == "paper" else None,
    )
    sentences = findings(result)
    measured = "mean" if settings.measure == "kl" and not result.contexts else settings.measure
    notes = []
    if settings.contexts and frame != "default":
        notes = [f"No exact KL divergence: the frame {frame} excludes positions"]
    elif settings.contexts and not result.contexts:
        notes = [NO_EXACT.format(reference.title)]
    return EvaluatorOutput(
        scores=result.as_scores(),
        entries={**result.as_record(), "measure": measured, "only": list(settings.only), "findings": sentences},
        impossible=(result.impossible_model.tolist(), result.impossible_truth.tolist()),
        notes=notes,
        line="\n".join([*sentences, str(result.score("all", 0, len(result.steps) - 1, "log_ratio"))]),
    )


def sampled_trees(setting: Setting) -> list[Tree]:
    """Read the derivations that the sentences of a setting were sampled with.

    Raises:
        InputError: this is not a corpus folder, it was sampled without trees, or its text is transformed: trees have
            the order of the original.
    """
    text = setting.text
    if text is None or text.corpus is None:
        path = None if text is None else text.path
        raise InputError("there are no derivations in this text; use --tags drawn, or a corpus folder", path)
    if text.corpus.transform is not None:
        raise InputError(
            "trees of this corpus have the order of the original sentences, but the text has the order of"
            f" {text.corpus.transform}; use --tags expected or drawn",
            text.corpus.path,
            code="transformed",
        )
    return list(islice(text.corpus.trees(text.split), len(setting.sentences)))


def figure(record: Record, salt: str) -> str:
    """Draw all panels in one ``<svg>``.

    Args:
        record: record of a model.
        salt: salt of the identifiers in the figure.

    Raises:
        InputError: there are no values of the measure.
    """
    by, measure = curves_of(record), _measure(record)
    places = _measured(record)
    if by and not np.isfinite(_rows(record["curves"][by][measure]["value"])).any():
        raise InputError(f"there is no {MEASURES[measure].partition(',')[0]} of {record['model']} to draw")
    parts: list[tuple[float, Callable[[Any], None]]] = []
    if by:
        parts.append((4.3, lambda part: _curves(part, record)))
        parts.append((0.9 + 0.36 * len(_shown(record, by)), lambda part: _bars(part, record)))
    if places:
        parts.append((2.9 * ((len(places) + 1) // 2), lambda part: _places(part, record, places)))
    heights = [height for height, _ in parts]
    with new_figure(9.6, sum(heights), salt) as canvas:
        rows: Any = canvas.subfigures(len(parts), 1, height_ratios=heights, squeeze=False)
        for (_, draw), part in zip(parts, rows[:, 0], strict=True):
            draw(part)
        return to_svg(canvas, salt, f"Learning dynamics of {record['model']}")


def curves_figure(number: int, record: Record) -> str:
    """Draw the curve of every class on a logarithmic axis of steps, as ``<svg>``."""
    with new_figure(9.6, 4.3, f"learning{number}") as canvas:
        _curves(canvas, record)
        return to_svg(canvas, f"learning{number}", f"Divergence of {record['model']} from the truth while it learns")


def bars_figure(number: int, record: Record) -> str:
    """Draw every class at the last checkpoint, with intervals, as ``<svg>``."""
    with new_figure(9.6, 0.9 + 0.36 * len(_shown(record, curves_of(record))), f"classes{number}") as canvas:
        _bars(canvas, record)
        return to_svg(canvas, f"classes{number}", f"Divergence of {record['model']} by class of word at the end")


def places_figure(number: int, record: Record) -> str | None:
    """Draw length, position, frequency and depth at the last checkpoints, as ``<svg>``; None if unmeasured."""
    places = _measured(record)
    if not places:
        return None
    with new_figure(9.6, 2.9 * ((len(places) + 1) // 2), f"places{number}") as canvas:
        _places(canvas, record, places)
        return to_svg(canvas, f"places{number}", f"Divergence of {record['model']} by place and frequency")


def curves_of(record: Record) -> str:
    """Return the grouping of curves and bars: classes if measured, else all tokens, else empty."""
    return next((by for by in ("class", "all") if by in record["curves"]), "")


def _measure(record: Record) -> str:
    """Return a key of `MEASURES`."""
    return str(record.get("measure", "mean"))


def _shown(record: Record, by: str) -> list[int]:
    names, only = record["curves"][by]["names"], record.get("only") if by == "class" else ()
    return [g for g, name in enumerate(names) if not only or name in only]


def _colour(name: str, g: int) -> str:
    return QUIET if name == END else COLOURS[g % len(COLOURS)]


def _name(name: str) -> str:
    return "sentence ends" if name == END else name


def _measured(record: Record) -> list[str]:
    """Return the groups that have values at the last checkpoint."""
    measure = _measure(record)
    curves_by_place = {by: record["curves"][by] for by in PLACES if by in record["curves"]}
    return [by for by, curves in curves_by_place.items() if any(x is not None for x in curves[measure]["value"][-1])]


def _rows(values: Any) -> FloatArray:
    """Convert lists with None for missing numbers to an array with NaN, which is not drawn."""
    return np.array([[np.nan if x is None else x for x in row] for row in values], dtype=np.float64)


def _ends(curves: Record, measure: str) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
    """Return values (C, G), and the ends of their intervals if every checkpoint can have them."""
    values = curves[measure]
    if measure == "median":
        return _rows(values["value"]), None, None
    return _rows(values["value"]), _rows(values["low"]), _rows(values["high"])


def _curves(canvas: Any, record: Record) -> None:
    by, measure = curves_of(record), _measure(record)
    curves = record["curves"][by]
    steps = np.array(record["steps"], dtype=np.float64)
    x = np.log1p(steps)
    value, low, high = _ends(curves, measure)
    groups = _shown(record, by)
    lines = record["lines"] if measure == "mean" else []
    whole, near = canvas.subplots(1, 2, width_ratios=(1.0, 1.15))
    for axes in (whole, near):
        axes.axhline(0.0, color=TRUTH, linewidth=1.5, zorder=1)
        for g in groups:
            name = curves["names"][g]
            colour, dash = _colour(name, g), (0, (4, 2)) if name == END else "solid"
            axes.plot(x, value[:, g], color=colour, linestyle=dash, linewidth=1.7, marker="o", markersize=2.6)
            if low is not None and high is not None:
                axes.fill_between(x, low[:, g], high[:, g], color=colour, alpha=0.16, linewidth=0)
        if by == "class" and "all" in record["curves"] and not record.get("only"):
            total = _ends(record["curves"]["all"], measure)[0][:, 0]
            axes.plot(x, total, color="#111827", linewidth=2.6, alpha=0.85)
        for line in lines:
            axes.axhline(line["value"], color=QUIET, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
        axes.grid(axis="y")
        step_axis(axes, steps)
    whole.set_ylabel(("part of the " if measure == "kl" and by == "class" else "") + MEASURES[measure])
    start = int(np.searchsorted(x, 0.6 * x[-1])) if len(x) > 3 else 0
    start = min(start, max(0, len(x) - 2))
    late = min(int(np.searchsorted(x, 0.88 * x[-1])), max(0, len(x) - 2))
    there = value[late:, groups]
    there = there[np.isfinite(there)]
    if len(there):
        # the last points fill the second panel; curves enter it from the left
        low_end, high_end = min(float(there.min()), 0.0), max(float(there.max()), 0.0)
        margin = 0.07 * max(high_end - low_end, 1e-3)
        near.set_ylim(low_end - margin, high_end + margin)
    near.set_xlim(x[start] - 0.02 * x[-1], x[-1] + 0.02 * x[-1])
    whole.set_title("the whole training", fontsize=9.5, color=QUIET)
    near.set_title("its end, enlarged", fontsize=9.5, color=QUIET)
    labels = [(value[-1, g], _name(curves["names"][g]), _colour(curves["names"][g], g)) for g in groups]
    if by == "class" and "all" in record["curves"] and not record.get("only"):
        labels.append((_ends(record["curves"]["all"], measure)[0][-1, 0], "all tokens", "#111827"))
    labels.append((0.0, "the truth", TRUTH))
    bottom, top = near.get_ylim()
    labels += [(y, window_name(each["words"]), QUIET) for each in lines if bottom < (y := each["value"]) < top]
    _label_ends(near, x[-1], [(float(y), text, colour) for y, text, colour in labels if np.isfinite(y)])


def _label_ends(axes: Any, x: float, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write names next to the last point of each curve, moved apart if they overlap."""
    bottom, top = axes.get_ylim()
    apart = 0.062 * (top - bottom)
    order = sorted(labels)
    places = [min(max(y, bottom), top) for y, _, _ in order]
    for _ in range(200):
        for i in range(len(places) - 1):
            if (short := apart - (places[i + 1] - places[i])) > 0.0:
                places[i] -= short / 2
                places[i + 1] += short / 2
        places = [min(y, top) for y in places]
    for (y, text, colour), place in zip(order, places, strict=True):
        axes.annotate(
            text,
            xy=(x, min(max(y, bottom), top)),
            xytext=(1.06, (place - bottom) / (top - bottom)),
            textcoords="axes fraction",
            va="center",
            fontsize=8.8,
            color=colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2},
        )


def _bars(canvas: Any, record: Record) -> None:
    by = curves_of(record)
    curves = record["curves"][by]
    value, low, high = _ends(curves, "mean")
    median = _rows(curves["median"]["value"])[-1]
    exact = -_rows(curves["kl"]["value"])[-1]
    order = sorted(_shown(record, by), key=lambda g: value[-1, g])
    axes = canvas.subplots()
    axes.axvline(0.0, color=TRUTH, linewidth=1.5)
    for y, g in enumerate(order):
        name = curves["names"][g]
        axes.barh(y, value[-1, g], height=0.62, color=_colour(name, g), alpha=0.75)
        assert low is not None and high is not None
        axes.plot([low[-1, g], high[-1, g]], [y, y], color="#111827", linewidth=1.4)
    at = np.arange(len(order))
    marks = {"markersize": 6, "linestyle": "none", "markeredgecolor": "#111827", "markerfacecolor": "white"}
    axes.plot(median[order], at, marker="d", label="median", **marks)
    if np.isfinite(exact[order]).any():
        axes.plot(
            exact[order],
            at,
            marker="|",
            label="\N{MINUS SIGN}" + ("part of KL" if by == "class" else "KL") + ", exact",
            **{**marks, "markersize": 13, "markeredgewidth": 2},
        )
    share = np.array(curves["tokens"]) / sum(curves["tokens"])
    axes.set_yticks(at, [f"{_name(curves['names'][g])}, {share[g]:.0%} of tokens" for g in order])
    axes.tick_params(axis="y", length=0, labelcolor="#1f2937")
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlabel(f"mean of {GAP} at step {record['steps'][-1]:,}, nats per token, with 95% interval")
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.legend(loc="lower left", frameon=True, facecolor="white", edgecolor="none")


def _places(canvas: Any, record: Record, places: Sequence[str]) -> None:
    measure = _measure(record)
    panels = canvas.subplots((len(places) + 1) // 2, min(2, len(places)), squeeze=False).ravel()
    for axes in panels[len(places) :]:
        axes.set_visible(False)
    for number, (axes, by) in enumerate(zip(panels, places, strict=False)):
        curves = record["curves"][by]
        value, low, high = _ends(curves, measure)
        share = np.array(curves["tokens"]) / sum(curves["tokens"])
        groups = [g for g, name in enumerate(curves["names"]) if share[g] >= SMALL and np.isfinite(value[-1, g])]
        if low is not None:  # groups in fewer than ten sentences have no interval
            groups = [g for g in groups if np.isfinite(low[-1, g])]
        inner = [g for g in groups if curves["names"][g] != END]
        x = np.arange(len(inner))
        axes.axhline(0.0, color=TRUTH, linewidth=1.5)
        earlier = [c for c in (len(record["steps"]) - 3, len(record["steps"]) - 2) if c >= 0]
        for c, alpha in zip(earlier, (0.35, 0.6), strict=False):
            axes.plot(x, value[c, inner], color=QUIET, alpha=alpha, linewidth=1.3, label=_step_name(record, c))
        last = _step_name(record, -1)
        axes.plot(x, value[-1, inner], color=MODEL, marker="o", markersize=3.6, linewidth=1.6, label=last)
        if low is not None and high is not None:
            axes.fill_between(x, low[-1, inner], high[-1, inner], color=MODEL, alpha=0.18, linewidth=0)
        names = [curves["names"][g] for g in inner]
        every = max(1, -(-len(names) // 9)) if by != "frequency" else 1
        axes.set_xticks(x[::every], [_short(name) for name in names][::every])
        if by == "frequency":
            axes.tick_params(axis="x", labelsize=8)
        expected = by == "depth" and record["tags"] == "expected"
        axes.set_xlabel(PLACES[by] + (" (expected)" if expected else ""))
        axes.grid(axis="y")
        if number % 2 == 0:
            axes.set_ylabel({"kl": "KL(P‖Q), or part of it"}.get(measure, f"{measure} {GAP}") + ", nats")
        if number == 0:
            canvas.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)


def _step_name(record: Record, c: int) -> str:
    return f"step {record['steps'][c]:,}"


def _short(name: str) -> str:
    """Split names such as ``1/1,000 to 1/100`` into two lines."""
    return name.replace(" to ", "\nto ").replace("below ", "below\n")


def tables(record: Record, title: str) -> list[ReportTable]:
    """Build all tables of one model: its groups, or else all tokens."""
    return [groups_table(record, by) for by in [by for by in record["curves"] if by != "all"] or ["all"]]


def groups_table(record: Record, by: str) -> ReportTable:
    """Build a table of groups at the last checkpoint, classes in the order of learning, all tokens last.

    Args:
        record: result of `truesource.evaluation.dynamics.table.Dynamics.as_record`.
        by: kind of groups.
    """
    curves, level = record["curves"][by], f"{record['threshold']:g}"
    only = record.get("only") or curves["names"]
    groups = [g for g, name in enumerate(curves["names"]) if by != "class" or name in only]
    if by == "class":
        groups.sort(key=lambda g: float("inf") if curves["half"][g][0] is None else curves["half"][g][0])
    rows = [_row(curves, g) for g in groups]
    if by != "all" and "all" in record["curves"]:
        rows.append(_row(record["curves"]["all"], 0, record["signature"]))
    return ReportTable(
        title=f"{record['model']} ({record['objective']}) at step {record['steps'][-1]:,}, {record['tokens']:,} tokens",
        columns=(
            HEADS[by],
            "tokens",
            "mean of\nln Q \N{MINUS SIGN} ln P",
            "median",
            "part of\nKL(P‖Q)" if by in ("class", "frequency") else "exact\nKL(P‖Q)",
            "half learned\nfrom step",
            f"within {level}\nfrom step",
        ),
        rows=rows,
        note="half learned: the mean stays closer to 0 than half of its first value, from this step on;"
        f" within {level}: closer than {level} nats; intervals: the checkpoints around that step{extent(record)}",
    )


def _row(curves: Record, g: int, signature: str = "") -> TableRow:
    mean, name = curves["mean"], curves["names"][g]
    value, low, high = (mean[end][-1][g] for end in ("value", "low", "high"))
    exact = curves["kl"]["value"][-1][g]
    return TableRow(
        (
            "sentence ends" if name == END else name,
            number_cell(curves["tokens"][g], ",.0f"),
            score_cell(
                {"value": value, "low": low, "high": high, "no_interval": few_code() if low is None else None}, "+.3f"
            ),
            number_cell(curves["median"]["value"][-1][g], "+.3f"),
            number_cell(exact, ".3f"),
            _reached(curves["half"][g]),
            _reached(curves["reached"][g]),
        ),
        signature=signature,
        kind="oracle" if signature else "",
    )


def _reached(steps: Sequence[float | None]) -> Cell | None:
    """Build a cell of a step with the checkpoints around it; None if the group is missing at the last one."""
    step, low, high = steps
    if step is None:
        return None
    if low is None:
        return number_cell(step, ",.0f")
    ends = f"{low:,.0f}", "..." if high is None else f"{high:,.0f}"
    return Cell(f"{step:,.0f}", ends, score=(step, low, high))


@with_config(STRICT)
class DynamicsRecord(TypedDict):
    """``dynamics/<model>.json``."""

    model: str
    objective: str
    steps: list[Count]
    threshold: float
    contexts: Any
    frame: Any
    tags: Any
    tokens: Any
    excluded: Any
    signature: str
    curves: Any
    lines: Any
    findings: Any
    measure: NotRequired[str]
    only: NotRequired[list[str]]


def section(run: MeasuredRun) -> list[dict[str, object]]:
    """Return findings, figures and tables of each model; empty if no snapshots were measured."""
    return [
        {
            **record,
            "left_out": left_out(record["objective"]),
            "classes": "class" in record["curves"],
            "curves": curves_figure(number, record),
            "bars": bars_figure(number, record),
            "places": places_figure(number, record),
            "table": groups_table(record, curves_of(record)),
        }
        for number, record in enumerate(run.of_models("dynamics", DynamicsRecord).values())
    ]
