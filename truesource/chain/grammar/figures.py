"""Figures of the grammar: its induction, the substates of each label, and how probable its rules are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.report.figures import MODEL, PHASES, QUIET, SECOND, TRUTH, figure, superscript, to_svg
from truesource.report.records import Record

MOST_LABELS = 60  #: bars
BIN = 0.25  #: width of a step of the spectrum, powers of ten
KINDS = (
    ("binary", "two children", MODEL, "-"),
    ("unary", "one child", TRUTH, "--"),
    ("lexical", "a word", SECOND, "-."),
)


def possible_held_out(trace: Sequence[Record], trees: int | None) -> list[int] | None:
    """How many of the held-out trees the grammar can make at each step; None where a step does not say."""
    missing = [row.get("held_out_impossible") for row in trace if row["log_likelihood"] is not None]
    known = [trees - n for n in missing if trees is not None and n is not None]
    return known if known and len(known) == len(missing) else None


def trace_figure(trace: Sequence[Record], held_out_trees: int | None = None) -> str | None:
    """Log-likelihood per token against EM steps, phases shaded, below it the number of states; None without a trace.

    Args:
        trace: a record a step.
        held_out_trees: how many there are; then the number that is possible at each step is drawn too.
    """
    rows = [row for row in trace if row["log_likelihood"] is not None]
    if not rows:
        return None
    at = range(len(rows))
    possible = possible_held_out(trace, held_out_trees)
    with figure(9.4, 3.9 if possible is None else 4.7, "trace") as drawn:
        top, below, *more = drawn.subplots(
            2 if possible is None else 3, 1, sharex=True, height_ratios=[3, 1] if possible is None else [3, 1, 1]
        )
        phases = _shade(top, below, rows)
        top.plot(
            at, [row["log_likelihood"] for row in rows], color=MODEL, marker="o", markersize=2.5, label="training trees"
        )
        held = [(i, row["held_out"]) for i, row in enumerate(rows) if row.get("held_out") is not None]
        if held:
            top.plot(*zip(*held, strict=True), color=TRUTH, linestyle="--", linewidth=1.5, label="held-out trees")
        top.set_ylabel("log-likelihood\n(nats per token)")
        drawn.legend(handles=[*top.get_lines(), *phases], loc="outside upper right", ncols=5)
        top.grid(axis="y")
        if all(row.get("substates") is not None for row in rows):
            below.step(at, [row["substates"] for row in rows], color=QUIET, where="post")
        below.set_ylabel("states")
        below.set_ylim(bottom=0)
        for axes in more:
            axes.step(at, possible, color=TRUTH, where="post")
            axes.set_ylim(0, 1.05 * (held_out_trees or 1))
            axes.set_title("held-out trees that the grammar can make", loc="left", fontsize=9)
            axes.set_ylabel("trees")
            axes.grid(axis="y")
        (more or [below])[-1].set_xlabel("steps of expectation-maximisation")
        below.set_xlim(-0.5, len(rows) - 0.5)
        below.grid(axis="y")
        return to_svg(drawn, "trace", "Log-likelihood of the treebank during induction")


def _shade(top: Any, below: Any, rows: Sequence[Record]) -> list[Any]:
    """Shade the phases and number the cycles above them; a patch for each kind of phase, for the legend."""
    from matplotlib.patches import Patch

    begin, ends = 0, dict[int, tuple[int, int]]()
    for (cycle, phase), group in groupby(rows, key=lambda row: (row["cycle"], row["phase"])):
        end = begin + len(list(group))
        if phase in PHASES:
            for axes in (top, below):
                axes.axvspan(begin - 0.5, end - 0.5, color=PHASES[phase], linewidth=0)
            ends[cycle] = (ends.get(cycle, (begin, end))[0], end)
        begin = end
    for cycle, (first, last) in ends.items():
        if last - first >= len(rows) / 25:
            name = f"cycle {cycle}" if last - first >= len(rows) / 12 else f"{cycle}"
            place = {"transform": top.get_xaxis_transform(), "ha": "center", "va": "bottom"}
            top.text((first + last - 1) / 2, 1.015, name, fontsize=8, color="#4B5563", **place)
    seen = {row["phase"] for row in rows}
    return [
        Patch(facecolor=colour, edgecolor=QUIET, linewidth=0.5, label=phase)
        for phase, colour in PHASES.items()
        if phase in seen
    ]


def substates_figure(pcfg: PCFG) -> str | None:
    """Number of substates of each label, most split first (Petrov et al. 2006, table 2); None where none is split."""
    of_label = Counter(pcfg.labels)
    if max(of_label.values()) == 1:
        return None
    from matplotlib.ticker import MaxNLocator

    above_words = {pcfg.labels[i] for i in np.unique(pcfg.lexical[:, 0])}
    above_phrases = {pcfg.labels[i] for rules in (pcfg.binary, pcfg.unary) for i in np.unique(rules[:, 0])}

    def kind(label: str) -> str:
        if label.startswith("@"):
            return "intermediate"
        return "word" if label in above_words - above_phrases else "phrase"

    shown = of_label.most_common(MOST_LABELS)
    colours = {"phrase": MODEL, "word": SECOND, "intermediate": QUIET}
    with figure(9.4, 3.2, "substates") as drawn:
        axes = drawn.subplots()
        for name, colour in colours.items():
            at = [i for i, (label, _) in enumerate(shown) if kind(label) == name]
            if at:
                axes.bar(at, [shown[i][1] for i in at], color=colour, width=0.75, label=_BAR_NAMES[name])
        size = 9 if len(shown) <= 30 else 6.5
        names = [label for label, _ in shown]
        axes.set_xticks(range(len(shown)), names, rotation=90, fontsize=size)
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.7, max(len(shown), 24) - 0.3)  # few bars stay slim
        axes.set_ylabel("states")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y")
        axes.legend(loc="upper right")
        return to_svg(drawn, "substates", "Number of states of each label")


_BAR_NAMES = {
    "phrase": "labels of phrases",
    "word": "labels of words",
    "intermediate": "intermediate nodes (@)",
}


def spectrum_figure(pcfg: PCFG) -> str:
    """How many rules of each kind have a probability of each power of ten."""
    found = [(name, getattr(pcfg, f"{kind}_logp") / np.log(10.0), colour, line) for kind, name, colour, line in KINDS]
    least = min(float(values.min()) for _, values, _, _ in found if len(values))
    edges = np.arange(min(np.floor(least / BIN) * BIN, -1.0), BIN / 2, BIN)
    with figure(9.4, 2.9, "spectrum") as drawn:
        axes = drawn.subplots()
        for name, values, colour, line in found:
            if len(values):
                counts, _ = np.histogram(np.clip(values, edges[0], 0.0), edges)
                axes.stairs(counts, edges, color=colour, linestyle=line, linewidth=1.6, label=f"rules to {name}")
        axes.set_xlabel("probability of the rule")
        axes.set_ylabel("rules")
        axes.set_xlim(edges[0], 0.0)
        axes.set_ylim(bottom=0)
        ticks = list(range(int(np.ceil(edges[0])), 1))[:: 1 if edges[0] > -12 else 2]
        axes.set_xticks(ticks, [f"10{superscript(tick)}" if tick else "1" for tick in ticks])
        axes.grid()
        drawn.legend(loc="outside upper right", ncols=3)
        return to_svg(drawn, "spectrum", "Number of rules by probability")
