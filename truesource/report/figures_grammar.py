"""Figure of the induction: likelihood of the treebank while the grammar is split, merged and smoothed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from truesource.report.figures import MODEL, PHASES, QUIET, TRUTH, figure, to_svg
from truesource.report.folder import Record


def trace_figure(trace: Sequence[Record]) -> str | None:
    """Log-likelihood per token against EM steps, phases shaded, number of states below; None without a trace."""
    rows = [row for row in trace if row["log_likelihood"] is not None]
    if not rows:
        return None
    at = range(len(rows))
    with figure(9.4, 3.9, "trace") as drawn:
        top, below = drawn.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        _shade(top, below, rows)
        top.plot(
            at, [row["log_likelihood"] for row in rows], color=MODEL, marker="o", markersize=2.5, label="training trees"
        )
        held = [(i, row["held_out"]) for i, row in enumerate(rows) if row.get("held_out") is not None]
        if held:
            top.plot(*zip(*held, strict=True), color=TRUTH, linestyle="--", linewidth=1.5, label="held-out trees")
        top.set_ylabel("log-likelihood\n(nats per token)")
        top.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.2)
        top.grid(axis="y")
        if all(row.get("substates") is not None for row in rows):
            below.step(at, [row["substates"] for row in rows], color=QUIET, where="post")
        below.set_ylabel("states")
        below.set_ylim(bottom=0)
        below.set_xlabel("steps of expectation-maximisation")
        below.set_xlim(-0.5, len(rows) - 0.5)
        below.grid(axis="y")
        return to_svg(drawn, "trace", "Log-likelihood of the treebank during induction")


def _shade(top: object, below: object, rows: Sequence[Record]) -> None:
    begin = 0
    for (cycle, phase), group in groupby(rows, key=lambda row: (row["cycle"], row["phase"])):
        end = begin + len(list(group))
        for axes in (top, below):
            axes.axvspan(begin - 0.5, end - 0.5, color=PHASES.get(phase, "#F3F4F6"), linewidth=0)  # type: ignore[attr-defined]
        if phase in ("split", "merge", "smooth") and (end - begin) >= len(rows) / 60:
            top.text(  # type: ignore[attr-defined]
                (begin + end - 1) / 2,
                1.015,
                f"{phase} {cycle}" if phase == "split" else phase,
                transform=top.get_xaxis_transform(),  # type: ignore[attr-defined]
                ha="center",
                va="bottom",
                fontsize=8 if len(rows) <= 150 else 6.5,
                color="#4B5563",
            )
        begin = end
