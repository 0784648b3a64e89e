"""Figure of minimal pairs: accuracy by phenomenon and by the true log odds, log odds and choices beside the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truesource.evaluation.pairs.evaluate import IMPOSSIBLE, ODDS_BINS
from truesource.evaluation.pairs.pair import ALL
from truesource.report.figures import QUIET, TRUTH, figure, to_svg
from truesource.report.records import Record

# Okabe & Ito (2008), and darker kin; one a model
COLOURS = ("#0066A6", "#E69F00", "#00805F", "#8C4A73", "#56B4E9", "#7A5C00", "#5B3F8C", "#B03A2E")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
FEWEST = 5  #: pairs of a bin that is drawn


def pairs_figure(objective: str, models: Mapping[str, Sequence[Record]]) -> str:
    """Four panels as ``<svg>``.

    Args:
        objective: of the models; one figure each, as the truth of masked models is another.
        models: `truesource.evaluation.pairs.evaluate.PairEvaluation.records` of each.
    """
    salt = f"pairs-{objective}"
    phenomena = list(dict.fromkeys(r["phenomenon"] for records in models.values() for r in records))
    with figure(9.8, 3.5 + 0.42 * max(7, len(phenomena)) + 0.02 * len(models), salt) as drawn:
        panels: Any = drawn.subplots(2, 2, width_ratios=[1.15, 1.0])
        _phenomena(panels[0][0], phenomena, models)
        _by_size(panels[0][1], models)
        _odds(panels[1][0], models)
        _choices(panels[1][1], models)
        handles, labels = panels[0][1].get_legend_handles_labels()
        extra = panels[0][0].get_legend_handles_labels()
        drawn.legend(
            [*handles, *extra[0]],
            [*labels, *extra[1]],
            loc="outside lower center",
            ncols=min(6, len(labels) + len(extra[1])),
        )
        return to_svg(drawn, salt, "What models prefer in minimal pairs, and how far their log odds are from the truth")


def _phenomena(axes: Any, phenomena: Sequence[str], models: Mapping[str, Sequence[Record]]) -> None:
    names = [*(name for name in phenomena if name != ALL), ALL]
    step = 0.6 / max(1, len(models))
    for k, records in enumerate(models.values()):
        own = _named(records, "accuracy")
        rows = [(i, own[name]) for i, name in enumerate(names) if name in own]
        at = [i + (k - (len(models) - 1) / 2) * step for i, _ in rows]
        _bars(axes, [r for _, r in rows], at, k, across=True)
    base = _named(next(iter(models.values())), "unigram_accuracy")
    at_base = [(i, base[name]["value"]) for i, name in enumerate(names) if name in base]
    axes.plot(
        *([x for _, x in at_base], [i for i, _ in at_base], "|"),
        color=QUIET,
        markersize=15,
        markeredgewidth=1.6,
        label="by word frequency alone",
        zorder=1,
    )
    axes.axvline(1.0, color=TRUTH, linewidth=1.0)
    axes.axvline(0.5, color=QUIET, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(min(0.4, axes.get_xlim()[0]), 1.02)
    axes.set_xlabel("accuracy: prefers what the truth prefers")
    axes.set_title("By phenomenon", loc="left")
    axes.grid(axis="x")


def _by_size(axes: Any, models: Mapping[str, Sequence[Record]]) -> None:
    bins = [*ODDS_BINS, IMPOSSIBLE]
    met = [name for name in bins if any(name in _groups(r, "log_odds", "accuracy") for r in models.values())]
    step = 0.36 / max(1, len(models))
    for k, (model, records) in enumerate(models.items()):
        own = _groups(records, "log_odds", "accuracy")
        rows = [(i, own[name]) for i, name in enumerate(met) if name in own]
        at = [i + (k - (len(models) - 1) / 2) * step for i, _ in rows]
        _bars(axes, [r for _, r in rows], at, k, label=model, line=True)
    axes.axhline(1.0, color=TRUTH, linewidth=1.0)
    axes.axhline(0.5, color=QUIET, linewidth=0.8, linestyle=":")
    shown = [name.replace("-", "\N{EN DASH}") if name != IMPOSSIBLE else "one is\nimpossible" for name in met]
    axes.set_xticks(range(len(met)), shown)
    axes.set_ylim(min(0.4, axes.get_ylim()[0]), 1.03)
    axes.set_xlabel("|log odds| of the truth, nats")
    axes.set_ylabel("accuracy")
    axes.set_title("By the size of the true log odds", loc="left")
    axes.grid(axis="y")


def _odds(axes: Any, models: Mapping[str, Sequence[Record]]) -> None:
    most = 1.0
    for k, records in enumerate(models.values()):
        truth, model = (_groups(records, "log_odds", f"{side}_log_odds") for side in ("truth", "model"))
        met = [name for name in truth if name != IMPOSSIBLE]
        _bars(axes, [model[n] for n in met], [truth[n]["value"] for n in met], k, line=True)
        most = max([most, *(truth[n]["value"] for n in met)])
    axes.plot([0, most], [0, most], color=TRUTH, linewidth=1.2)
    axes.annotate(
        "truth", (most, most), color=TRUTH, ha="right", va="bottom", xytext=(-8, 0), textcoords="offset points"
    )
    axes.axhline(0.0, color=QUIET, linewidth=0.8, linestyle=":")
    axes.set_xlabel("mean log odds of the truth, nats")
    axes.set_ylabel("mean log odds of the model")
    axes.set_title("Log odds of what the truth prefers", loc="left")
    axes.grid()


def _choices(axes: Any, models: Mapping[str, Sequence[Record]]) -> None:
    for k, records in enumerate(models.values()):
        own, truth = (_groups(records, "choice", f"choice_of_{side}") for side in ("model", "truth"))
        counts = _groups(records, "choice", "pairs")
        met = [name for name in own if counts[name]["value"] >= FEWEST]
        _bars(axes, [truth[n] for n in met], [own[n]["value"] for n in met], k, line=True)
    axes.plot([0.5, 1.0], [0.5, 1.0], color=TRUTH, linewidth=1.2)
    axes.set_xlim(0.49, 1.01)
    axes.set_xlabel("probability with which the model chooses a side")
    axes.set_ylabel("the truth's probability of it")
    axes.set_title("Calibration of the choice", loc="left")
    axes.grid()


def _bars(
    axes: Any,
    records: Sequence[Record],
    at: Sequence[float],
    number: int,
    *,
    label: str | None = None,
    line: bool = False,
    across: bool = False,
) -> None:
    """Values with their intervals, in the colour and with the marker of model ``number``."""
    values = [r["value"] for r in records]
    known = [r if r["low"] is not None else {**r, "low": r["value"], "high": r["value"]} for r in records]
    ends = [[max(0.0, r["value"] - r["low"]) for r in known], [max(0.0, r["high"] - r["value"]) for r in known]]
    colour = COLOURS[number % len(COLOURS)]
    x, y = (values, at) if across else (at, values)
    axes.errorbar(
        *(x, y),
        **{"xerr" if across else "yerr": ends},
        color=colour,
        marker=MARKERS[number % len(MARKERS)],
        markersize=4.5,
        linestyle="-" if line else "none",
        linewidth=1.1,
        elinewidth=1.0,
        label=label,
    )


def _named(records: Sequence[Record], name: str) -> dict[str, Record]:
    """One measure of whole phenomena."""
    return {r["phenomenon"]: r for r in records if r["name"] == name and "by" not in r}


def _groups(records: Sequence[Record], by: str, name: str) -> dict[str, Record]:
    """One measure of all phenomena together, by group."""
    return {r["group"]: r for r in records if r["name"] == name and r.get("by") == by and r["phenomenon"] == ALL}
