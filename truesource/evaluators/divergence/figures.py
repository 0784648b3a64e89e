"""Figures of the divergence from the truth: reliability of probabilities, and where the divergence is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from truesource.evaluation.divergence.compare import BreakdownRow, ModelDivergence
from truesource.evaluation.divergence.contexts import Reliability
from truesource.report.figures import MODEL, QUIET, TRUTH, figure, to_svg

LEAST_SENTENCES = 10  #: positions and lengths of fewer are not drawn
LEAST = 1e-8  #: lower end of the axes of the reliability diagram


def divergence_figure(found: ModelDivergence, salt: str = "divergence") -> str:
    """The reliability diagram, and where it is finite the divergence by position and sentence length, as ``<svg>``."""
    tables = [
        (by, [row for row in found.tables.get(by, []) if _enough(found, by, row)]) for by in ("position", "length")
    ]
    tables = [(by, rows) for by, rows in tables if rows]
    with figure(9.4 if tables else 4.8, 4.2, salt) as drawn:
        if tables:
            parts: Any = drawn.subfigures(1, 2, width_ratios=(1.0, 1.05))
            _reliability(parts[0], found.reliability)
            _places(parts[1], found, tables)
        else:
            _reliability(drawn, found.reliability)
        return to_svg(drawn, salt, f"Divergence of {found.model} from the truth")


def _reliability(drawn: Any, made: Reliability) -> None:
    q, p, number = made.curve()
    kept = q >= LEAST
    q, p, number = q[kept], p[kept], number[kept]
    axes, below = drawn.subplots(2, 1, sharex=True, height_ratios=(3.2, 1.0))
    axes.plot([LEAST, 1], [LEAST, 1], color=TRUTH, linewidth=1.3, label="calibrated")
    seen = p >= LEAST
    axes.plot(q[seen], p[seen], color=MODEL, linestyle="none", marker="o", markersize=4, label="model")
    if not seen.all():
        axes.plot(
            q[~seen],
            np.full(int((~seen).sum()), LEAST),
            linestyle="none",
            marker="v",
            color=MODEL,
            markerfacecolor="white",
            markersize=5,
            clip_on=False,
            label=f"truth below {LEAST:.0e}",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(LEAST, 1.6)
    axes.set_ylabel("true probability")
    axes.legend(loc="upper left")
    below.step(q, q * number / made.contexts, where="mid", color=MODEL, linewidth=1.4, label="model")
    below.step(q, p * number / made.contexts, where="mid", color=TRUTH, linewidth=1.1, label="truth")
    below.legend(loc="upper left", ncols=2)
    below.set_xlim(LEAST, 1.6)
    below.set_ylim(bottom=0.0)
    below.set_ylabel("mass of bin")
    below.set_xlabel("probability the model gives (bins of a quarter nat)")
    for panel in (axes, below):
        panel.grid(which="major")
        panel.minorticks_off()
    axes.set_title(f"calibration error {made.error:.4f}", fontsize=9, color=QUIET)


def _places(drawn: Any, found: ModelDivergence, tables: Sequence[tuple[str, Sequence[BreakdownRow]]]) -> None:
    from matplotlib.ticker import MaxNLocator

    panels = drawn.subplots(len(tables), 1, squeeze=False)[:, 0]
    whole = found.scores.get("kl") or found.scores.get("kl_where_finite")
    for axes, (by, rows) in zip(panels, tables, strict=True):
        there = [(int(row.group), row.scores["kl"]) for row in rows]
        x = [place for place, _ in there]
        value = [score.value for _, score in there]
        ends = np.array([[score.low, score.high] for _, score in there], dtype=np.float64)
        if whole is not None:
            axes.axhline(whole.value, color=QUIET, linewidth=1.1, linestyle=(0, (4, 3)))
        axes.fill_between(x, ends[:, 0], ends[:, 1], color=MODEL, alpha=0.18, linewidth=0)
        axes.plot(x, value, color=MODEL, marker="o", markersize=3.6, linewidth=1.4)
        axes.set_ylim(bottom=0.0)
        axes.set_xlim(x[0] - 0.5, x[-1] + 0.5)
        axes.set_xlabel("position in the sentence" if by == "position" else "words in the sentence")
        axes.set_ylabel("KL, nats a token")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y")
    if whole is not None:
        panels[0].set_title(f"dashed: mean {whole.value:.4f}; bands: 95%", fontsize=9, color=QUIET)


def _enough(found: ModelDivergence, by: str, row: BreakdownRow) -> bool:
    """Whether a position or length has an interval: a divergence, in so many sentences that resampling them says one.

    A sentence has one context at a position, and one a word (and one for its end, if the model is causal) in all.
    """
    each = 1 if by == "position" else int(row.group) + (found.objective == "causal")
    return "kl" in row.scores and row.tokens >= LEAST_SENTENCES * each
