"""Figures of the corpus: sentence lengths and word frequencies, against what the grammar says exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.report.figures import BARS, QUIET, SAMPLE, TRUTH, figure, to_svg

POINTS = 250  #: of a rank-frequency curve, at ranks evenly spread on the logarithmic axis


def length_figure(counts: IntArray, exact: FloatArray, free: FloatArray, lengths: LengthRange | None) -> str:
    """Share of sentences by length: bars sampled, points exact under ``lengths``, thin line exact without it.

    Args:
        counts: (n,) sampled sentences of each length.
        exact: (n,) probability of each length in the corpus.
        free: (n,) the same without the length condition.
        lengths: the condition.
    """
    x = np.arange(len(counts))
    with figure(9.4, 3.3, "lengths") as drawn:
        axes = drawn.subplots()
        axes.bar(x[1:], counts[1:] / counts.sum(), width=0.82, color=SAMPLE, label="sampled sentences (share)")
        if lengths is None:
            axes.plot(x[1:], exact[1:], color=TRUTH, marker="o", markersize=3.5, linewidth=1, label="exact probability")
        else:
            within = x[(x >= lengths.low) & (x <= lengths.high)]
            axes.plot(
                within,
                exact[within],
                color=TRUTH,
                marker="o",
                markersize=3.5,
                linewidth=1,
                label=f"exact, given {lengths.low} to {lengths.high} tokens",
            )
            axes.plot(x[1:], free[1:], color=QUIET, linewidth=1.2, linestyle=":", label="exact, any length")
        axes.set_xlabel("sentence length (tokens)")
        axes.set_ylabel("probability")
        axes.set_xlim(0.3, len(counts) - 0.5)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        axes.legend(loc="upper right")
        return to_svg(drawn, "lengths", "Sentence lengths, sampled and exact")


def treebank_length_figure(counts: Sequence[int], free: FloatArray) -> str:
    """Share of treebank trees by length, against the exact distribution of the grammar without a condition."""
    shown = np.zeros(len(free))
    given = np.asarray(counts, dtype=np.float64)[: len(free)]
    shown[: len(given)] = given / max(1, sum(counts))
    x = np.arange(len(free))
    with figure(9.4, 2.9, "banklengths") as drawn:
        axes = drawn.subplots()
        axes.bar(x[1:], shown[1:], width=0.82, color=BARS, label="trees of the treebank (share)")
        axes.plot(
            x[1:], free[1:], color=TRUTH, marker="o", markersize=2.5, linewidth=1, label="exact, from the grammar"
        )
        axes.set_xlabel("sentence length (tokens)")
        axes.set_ylabel("probability")
        axes.set_xlim(0.3, len(free) - 0.5)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        axes.legend(loc="upper right")
        return to_svg(drawn, "banklengths", "Sentence lengths of the treebank and of the grammar")


def zipf_figure(counts: IntArray, exact: FloatArray | None) -> str:
    """Relative frequency against rank of words, log-log: sampled, and expected from the grammar.

    Args:
        counts: (types,) occurrences of each sampled word, in any order.
        exact: (V,) expected occurrences of each word in a sentence of the corpus; None where they are infinite.
    """
    sampled = np.sort(counts)[::-1] / counts.sum()
    with figure(9.4, 3.5, "zipf") as drawn:
        axes = drawn.subplots()
        ranks = _spread(len(sampled))
        axes.loglog(
            ranks, sampled[ranks - 1], linestyle="none", marker="o", markersize=4, color=SAMPLE, label="sampled words"
        )
        if exact is not None:
            expected = np.sort(exact[exact > 0.0])[::-1]
            expected = expected / expected.sum()
            ranks = _spread(len(expected))
            axes.loglog(ranks, expected[ranks - 1], color=TRUTH, linewidth=1.3, label="exact expectation")
        axes.set_xlabel("rank of the word")
        axes.set_ylabel("share of tokens")
        axes.set_ylim(bottom=0.5 * sampled[-1])
        axes.grid(which="major")
        axes.legend(loc="upper right")
        return to_svg(drawn, "zipf", "Word frequency against rank, sampled and exact")


def _spread(n: int) -> IntArray:
    """Ranks 1 to n, thinned evenly on a logarithmic axis."""
    return np.unique(np.round(np.geomspace(1, n, min(n, POINTS))).astype(np.int64))
