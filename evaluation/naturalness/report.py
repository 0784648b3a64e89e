"""The section on naturalness: records, tables, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.score import ScoreRecord
from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.naturalness.compare import Naturalness
from truesource.evaluation.show.figures import MODEL, QUIET, SAMPLE, SECOND, TRUTH, binned, figure, to_svg
from truesource.evaluation.show.table import ReportTable, TableRow, score_cell
from truesource.evaluation.show.words import count
from truesource.grammar.support.records import STRICT, Count

Drawn = Mapping[str, Any]  #: see `drawn_of`
#: measure, its name, what it means
MEASURES = (
    ("mean_length", "mean length", "tokens per sentence"),
    ("type_token_ratio", "type-token ratio", "different words per token, in equally many tokens"),
    ("zipf_alpha", "Zipf-Mandelbrot alpha", "exponent of the fitted law"),
    ("zipf_beta", "Zipf-Mandelbrot beta", "shift of the ranks"),
    ("zipf_kl", "  KL of the fit", "nats; 0 if the frequencies follow the law"),
    ("zipf_alpha_paper", "  alpha, published recipe", "fitted as in Jumelet & Zuidema (2023)"),
    ("zipf_beta_paper", "  beta, published recipe", "fitted as in Jumelet & Zuidema (2023)"),
    ("length_tv", "lengths: total variation", "distance from the lengths of the reference"),
    ("length_tv_null", "  by chance", "mean distance if both have one distribution"),
    ("length_tv_p", "  p-value", "probability of such a distance, or a larger one, by chance"),
    ("length_tv_exact", "  exact against reference", "distance of the grammar's exact lengths"),
    *(
        (f"ngram_spearman_{n}", f"{n}-grams: Spearman", "correlation of counts with half of the reference")
        for n in range(1, 5)
    ),
    *(
        (f"ngram_shared_tokens_{n}", f"{n}-grams: shared tokens", "share that half of the reference has too")
        for n in range(1, 5)
    ),
)
HEADLINE = "ngram_shared_tokens_2"  #: the measure that the head of the report shows
COLOURS = (
    SAMPLE,
    MODEL,
    SECOND,
    "#A36AA5",
    "#B8860B",
    "#8C510A",
    "#3E9A8F",
)  #: of the sources but the reference, in turn
REFERENCE = "#8B94A3"  #: bars of the reference
ACROSS = 4  #: panels of frequencies in a row
BELOW = 3  #: panels of lengths in a row


def measures_table(records: Sequence[Mapping[str, Any]], sentences: Mapping[str, int]) -> ReportTable:
    """Return a row for each measure, a column for each source.

    Args:
        records: of all sources.
        sentences: their number by source, the reference first.
    """
    scores = {(record["source"], record["name"]): record for record in records}
    rows = [
        (label, [score_cell(scores.get((source, name)), ".4f") for source in sentences], meaning)
        for name, label, meaning in MEASURES
    ]
    return ReportTable(
        columns=("measure", *(f"{source}\n{count(n, 'sentence')}" for source, n in sentences.items()), "meaning"),
        keys=("measure", *sentences, "meaning"),
        text=(0, -1),
        rows=[TableRow((label, *cells, meaning)) for label, cells, meaning in rows if any(cells)],
        note="95% intervals; of n-grams the range over random choices of sentences. N-grams of the reference: one half"
        f" against the other, {_ceiling(records)}.",
    )


def _ceiling(records: Sequence[Mapping[str, Any]]) -> str:
    """Return what the agreement of the halves of the reference means."""
    signatures = (record.get("signature") or "" for record in records if record["name"].startswith("ngram_"))
    documents = next((parts_of(text).get("documents") for text in signatures), None)
    if documents is None:
        return "of sentences in random order; both have sentences of the same documents, so other documents reach less"
    return f"divided by document ({documents} in all), which is what a perfect source would reach"


@with_config(STRICT)
class NaturalnessRecord(TypedDict):
    """``naturalness/naturalness.json``."""

    reference: str
    sentences: dict[str, Count]
    figure: dict[str, object]  #: what is drawn
    records: list[ScoreRecord]


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return the table and figure for the template; None if the corpus was not compared with trees."""
    comparison = run.record("naturalness/naturalness.json", NaturalnessRecord)
    if comparison is None:
        return None
    of_reference = {r["name"]: r for r in comparison["records"] if r["source"] == comparison["reference"]}
    return {
        "opening": headline(comparison),
        "reference": comparison["reference"],
        "raw": "raw grammar" in comparison["sentences"],
        "measures": measures_table(comparison["records"], comparison["sentences"]),
        "figure": naturalness_figure(comparison["figure"]),
        "signature": (of_reference.get("ngram_spearman_1") or of_reference["zipf_alpha"])["signature"],
    }


def headline(found: Mapping[str, Any]) -> list[str]:
    """Return a sentence on the naturalness of the corpus, compared with a perfect source; empty if unknown."""
    shares = {r["source"]: r for r in found["records"] if r["name"] == HEADLINE}
    corpus, ceiling = shares.get("corpus"), shares.get(found["reference"])
    if corpus is None or ceiling is None:
        return []
    raw = f"; of the plain grammar, {_range(shares['raw grammar'])}" if "raw grammar" in shares else ""
    return [
        f"Of the bigrams of the corpus, {_range(corpus)} occur in one half of the {found['reference']}; of the bigrams"
        f" of the other half, {_range(ceiling)}, which is the ceiling{raw}."
    ]


def _range(record: Mapping[str, Any]) -> str:
    """Write a share with its range over random halves."""
    low, high = record.get("low"), record.get("high")
    return f"{record['value']:.1%}" + ("" if low is None or high is None else f" ({low:.1%} to {high:.1%} by halves)")


def drawn_of(found: Naturalness) -> dict[str, object]:
    """Return the content of the figure of a comparison: JSON values, by source, the reference first."""
    seen = np.flatnonzero(sum(found.lengths.values()))
    first, last = int(seen[0]), int(seen[-1]) + 1
    return {
        "reference": found.reference,
        "first": first,
        "sources": {
            name: {
                "ranks": [side.tolist() for side in binned(found.fits[name][0].counts)],
                **_law(found, name),
                "lengths": (found.lengths[name] / found.lengths[name].sum())[first:last].tolist(),
                "exact": None if name not in found.exact else found.exact[name][first:last].tolist(),
                "ngrams": [
                    [n, score.value]
                    for n in range(1, 5)
                    if (score := scores.get(f"ngram_shared_tokens_{n}")) is not None
                ],
            }
            for name, scores in found.scores.items()
        },
    }


def _law(found: Naturalness, name: str) -> dict[str, list[list[float]] | float]:
    """Return the fitted law of a source: its curve, and its parameters."""
    fit, released = found.fits[name]
    ranks = np.unique(np.geomspace(1, fit.law.types, 200).round())
    if found.variant == "paper" and released is not None:
        curve = (ranks - 1 + released.beta) ** -released.alpha
        share = curve / ((np.arange(fit.law.types) + released.beta) ** -released.alpha).sum()
        alpha, beta = released.alpha, released.beta
    else:
        share = fit.law.pmf(ranks)
        alpha, beta = fit.parameters  # of the law; the curve is by estimated ranks, as the points are
    return {"law": [ranks.tolist(), share.tolist()], "alpha": float(alpha), "beta": float(beta)}


def naturalness_figure(shown: Drawn) -> str:
    """Return all three figures, one above the other, as ``<svg>``; of `drawn_of`."""
    count = len(shown["sources"])
    heights = [2.9 * -(-count // ACROSS), 2.9 * -(-(count - 1) // BELOW), 3.2]
    with figure(9.4, sum(heights), "naturalness") as canvas:
        parts: Any = canvas.subfigures(3, 1, height_ratios=heights)
        for part, draw in zip(parts, (_rank_frequency, _lengths, _ngrams), strict=True):
            draw(part, shown)
        return to_svg(canvas, "naturalness", "Word frequencies, sentence lengths and n-grams against the reference")


def _colour(shown: Drawn, name: str) -> str:
    names = list(shown["sources"])
    return QUIET if name == shown["reference"] else COLOURS[(names.index(name) - 1) % len(COLOURS)]


def _others(shown: Drawn) -> dict[str, Drawn]:
    return {name: source for name, source in shown["sources"].items() if name != shown["reference"]}


def _rank_frequency(drawn: Any, shown: Drawn) -> None:
    sources = shown["sources"]
    across = min(ACROSS, len(sources))
    panels = drawn.subplots(-(-len(sources) // across), across, sharex=True, sharey=True, squeeze=False)
    for axes, (name, source) in zip(panels.flat, sources.items(), strict=False):
        axes.loglog(*source["ranks"], linestyle="none", marker="o", markersize=3.2, color=_colour(shown, name))
        axes.loglog(*source["law"], color=TRUTH, linewidth=1.3)
        alpha, beta = source["alpha"], source["beta"]
        label = f"\N{GREEK SMALL LETTER ALPHA} = {alpha:.3f}, \N{GREEK SMALL LETTER BETA} = {beta:.2f}"
        axes.set_title(name)
        axes.text(0.97, 0.95, label, transform=axes.transAxes, ha="right", va="top", fontsize=8.5)
        axes.grid(which="major")
    _hide(panels, len(sources))
    drawn.supxlabel("rank of the word in the other half", fontsize=9.5)
    drawn.supylabel("share of tokens", fontsize=9.5)


def _hide(panels: Any, used: int) -> None:
    """Take away the panels that nothing is drawn in; those above them show the ticks."""
    across = panels.shape[1]
    for i, axes in enumerate(panels.flat):
        axes.set_visible(i < used)
        axes.tick_params(labelbottom=i + across >= used)


def _lengths(drawn: Any, shown: Drawn) -> None:
    from matplotlib.ticker import MaxNLocator

    others, first = _others(shown), shown["first"]
    across = min(BELOW, len(others))
    panels = drawn.subplots(-(-len(others) // across), across, sharex=True, sharey=True, squeeze=False)
    reference = shown["sources"][shown["reference"]]["lengths"]
    x = np.arange(first, first + len(reference))
    for axes, (name, source) in zip(panels.flat, others.items(), strict=False):
        exact = source["exact"]
        axes.bar(x, reference, width=0.85, color=REFERENCE, label=f"{shown['reference']} (reference)")
        points: Any = {"linestyle": "none", "marker": "D", "markersize": 3.6, "color": _colour(shown, name)}
        axes.plot(x, source["lengths"], **points, label=None if exact is None else "sampled")
        axes.set_title(name)
        if exact is not None:
            axes.plot(x[: len(exact)], exact, color=TRUTH, linewidth=1.2, label="exact, from the grammar")
        axes.set_xlim(x[0] - 0.8, x[-1] + 0.8)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y")
    panels.flat[0].set_ylim(bottom=0)  # of all, once all that they share is drawn
    _hide(panels, len(others))
    most = max(panels.flat[: len(others)], key=lambda axes: len(axes.get_legend_handles_labels()[1]))
    drawn.legend(*most.get_legend_handles_labels(), loc="outside upper right", ncols=3)
    drawn.supxlabel("sentence length (tokens)", fontsize=9.5)
    drawn.supylabel("share of sentences", fontsize=9.5)


def _ngrams(drawn: Any, shown: Drawn) -> None:
    axes, others = drawn.subplots(), _others(shown)
    width = 0.8 / len(others)
    for i, (name, source) in enumerate(others.items()):
        at = [n - 0.4 + width * (i + 0.5) for n, _ in source["ngrams"]]
        values = [value for _, value in source["ngrams"]]
        axes.bar(at, values, width=0.92 * width, color=_colour(shown, name), label=name)
    for n, value in shown["sources"][shown["reference"]]["ngrams"]:
        label = f"{shown['reference']}, one half against the other" if n == 1 else None
        axes.plot([n - 0.46, n + 0.46], [value] * 2, color="#111827", linewidth=1.6, label=label)
    axes.set_xticks(range(1, 5), [f"{n}-grams" for n in range(1, 5)])
    axes.set_ylabel("share of tokens in common")
    axes.set_ylim(0.0, 1.0)
    axes.set_xlim(0.45, 4.55)
    axes.grid(axis="y")
    drawn.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=4)
