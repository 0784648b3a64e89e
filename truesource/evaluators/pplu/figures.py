"""Figure of PPL and PPLu when the vocabulary is made smaller (Roh et al. 2020, figure 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truesource.evaluation.pplu.experiments import PROTOCOLS, ReducedVocabulary
from truesource.report.figures import MODEL, TRUTH, figure, plain_log_axis, round_ticks, to_svg

WHAT = {
    "skip": "skip: other words left out",
    "merge": "merge: other words are <unk>",
    "renormalise": "renormalise: left out, the rest in proportion",
}


def reduction_figure(curves: Mapping[str, Sequence[ReducedVocabulary]], salt: str = "reduction") -> str:
    """Relative change (equation 15) against vocabulary size, a panel a protocol, as ``<svg>``.

    Args:
        curves: of the model first, then of the truth where it is known.
        salt: of the identifiers in the figure.
    """
    with figure(9.6, 3.4, salt) as drawn:
        panels: Any = drawn.subplots(1, len(PROTOCOLS), sharey=True, sharex=True)
        sizes = sorted({row.words for rows in curves.values() for row in rows})
        for axes, protocol in zip(panels, PROTOCOLS, strict=True):
            for (name, rows), colour in zip(curves.items(), (MODEL, TRUTH), strict=False):
                of = sorted((row for row in rows if row.protocol == protocol), key=lambda row: row.words)
                x = [row.words for row in of]
                for label, values, style in (
                    ("PPL", [100 * row.change_ppl for row in of], "-"),
                    ("PPLu", [100 * row.change_pplu for row in of], (0, (3, 2))),
                ):
                    axes.plot(
                        x, values, color=colour, linestyle=style, marker="o", markersize=3, label=f"{label}, {name}"
                    )
            axes.set_xscale("log")
            axes.set_title(WHAT[protocol], fontsize=9)
            axes.set_xlabel("words kept, most frequent first")
            axes.grid()
        if sizes[-1] > sizes[0]:
            panels[0].set_xlim(0.8 * sizes[0], 1.25 * sizes[-1])
            for axes in panels:
                plain_log_axis(axes.xaxis, round_ticks(sizes[0], sizes[-1], 5))
        panels[0].set_ylim(bottom=0.0)
        panels[0].set_ylabel("change against all words, %")
        drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return to_svg(drawn, salt, "Change of PPL and PPLu against vocabulary size")
