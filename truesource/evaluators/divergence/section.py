"""The section on full distributions: records, tables, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.score import ScoreRecord
from truesource.evaluation.divergence.blocks import END
from truesource.evaluation.divergence.compare import BreakdownRow, ModelDivergence
from truesource.evaluation.divergence.contexts import Reliability
from truesource.grammar.support.records import STRICT, Count
from truesource.report.figures import MODEL, QUIET, TRUTH, figure, to_svg
from truesource.report.finished_run import FinishedRun
from truesource.report.records import Record
from truesource.report.table import Cell, ReportTable, TableRow, number_cell, score_cell, shown

#: measure, its name, what it means
MEASURES = (
    ("kl", "KL(P‖Q)", "mean over contexts of Σ P ln P/Q, nats a token; 0 is perfect"),
    ("kl_paired", "KL(P‖Q), sampled", "estimated from the tokens that occurred; the same expectation, more variance"),
    ("variance_ratio", "variance ratio", "how many times more tokens the sampled KL(P‖Q) needs"),
    ("reverse_kl", "KL(Q‖P)", "nats; infinite if the model expects the impossible"),
    ("reverse_kl_possible", "KL(Q‖P), possible tokens", "nats a token, Q restricted to what the grammar allows"),
    ("js", "Jensen-Shannon", "divergence, nats, 0 to 0.693"),
    ("tv", "total variation", "probability that would have to move, 0 to 1"),
    ("entropy_truth", "entropy of P", "nats a token"),
    ("entropy_model", "entropy of Q", "nats a token; above the entropy of P, the model is vaguer than the truth"),
    ("agreement", "same most probable token", "share of contexts"),
    ("top_k_overlap", "most probable tokens shared", "share of the set of k"),
    ("impossible_mass", "Q of the impossible", "probability on tokens that cannot follow"),
    ("special_mass", "Q of no token", "probability on special tokens, or missing to 1"),
    ("calibration_error", "calibration error", "mean distance of the model's and the true probability, in bins"),
    ("calibration_error_top", "calibration error, first guess", "the same for the model's most probable token"),
)
OF_SAMPLES = (
    ("samples_impossible", "impossible sentences", "share of the model's sentences"),
    ("samples_reverse_kl", "KL(Q‖P)", "nats a token; infinite if the model expects the impossible"),
    ("samples_reverse_kl_paired", "KL(Q‖P), sampled", "estimated from the tokens of the model's sentences"),
    ("samples_reverse_kl_of_possible", "KL(Q‖P), possible sentences", "nats a token, without the impossible sentences"),
    (
        "samples_reverse_kl_possible",
        "KL(Q‖P), possible tokens",
        "Q restricted, word by word, to what the grammar allows",
    ),
    ("samples_impossible_mass", "Q of the impossible", "probability, in the model's own contexts"),
)
BY = {
    "position": "position",
    "length": "words in the sentence",
    "class": "class of the next word",
    "frequency": "probability of the next word",
}
OF_GROUPS = {"kl": "KL(P‖Q)", "js": "JS", "tv": "TV", "agreement": "same first"}


def measures_table(
    models: Mapping[str, Sequence[Record]], rows: Sequence[tuple[str, str, str]] = MEASURES, title: str = ""
) -> ReportTable:
    """A row for each measure, a column for each model.

    Args:
        models: records by the heading of the column.
        rows: measure, name, meaning.
        title: of the table.
    """
    named = [{record["name"]: record for record in records if "by" not in record} for records in models.values()]
    shown_rows = [(label, [_cell(name, scores) for scores in named], meaning) for name, label, meaning in rows]
    return ReportTable(
        title=title,
        columns=("measure", *models, "meaning"),
        text=(0, -1),
        rows=[
            TableRow((label, *cells, meaning))
            for label, cells, meaning in shown_rows
            if any(cell is not None for cell in cells)
        ],
        note="P: the truth, Q: the model; 95% intervals from resampling sentences",
    )


def group_table(by: str, models: Mapping[str, Sequence[Record]]) -> ReportTable:
    """A row for each group: all measures of one model, KL of several."""
    names = OF_GROUPS if len(models) == 1 else {"kl": OF_GROUPS["kl"]}
    found = {
        (name, record["name"], record["group"]): record
        for name, records in models.items()
        for record in records
        if record.get("by") == by
    }
    tokens = {group: record["tokens"] for (_, _, group), record in reversed(found.items())}
    columns = [(model, name) for model in models for name in names if any(k[:2] == (model, name) for k in found)]
    groups = list(dict.fromkeys(group for _, _, group in found))
    return ReportTable(
        title=f"By {BY[by]}",
        columns=(
            BY[by],
            "tokens",
            *(names[name] if len(models) == 1 else f"{model}\n{names[name]}" for model, name in columns),
        ),
        rows=[
            TableRow(
                (
                    "sentence ends" if group == END else group,
                    number_cell(tokens[group], ",.0f"),
                    *(score_cell(found.get((model, name, group)), ".4f") for model, name in columns),
                )
            )
            for group in groups
        ],
        note="nats a token, and shares of contexts; tokens are those expected under the truth"
        if by in ("class", "frequency")
        else "nats a token, and shares of contexts",
    )


def _cell(name: str, scores: Mapping[str, Record]) -> Cell | None:
    """The value of a measure, or in what share of the contexts it is infinite; None where it was not measured."""
    if name in scores:
        return score_cell(scores[name], ".4f")
    share, finite = scores.get(f"{name}_infinite"), scores.get(f"{name}_where_finite")
    if share is None:
        return None
    rest = "" if finite is None else f"{shown(finite['value'], '.4f')} in the other contexts"
    part = f"{share['value']:.2%}"
    if part == "100.00%" and finite is not None:
        part = "over 99.99%"
    return Cell(f"infinite in {part} of contexts", small=rest)


@with_config(STRICT)
class DivergenceRecord(TypedDict):
    """``divergence/<model>.json``."""

    model: str
    objective: str
    contexts: Count
    excluded: Count
    records: list[ScoreRecord]


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Tables and figures for the template; None where no full distributions were compared."""
    models = run.of_models("divergence", DivergenceRecord)
    if not models:
        return None
    records = {name: found["records"] for name, found in models.items()}
    classes = group_table("class", records)
    return {
        "models": [{**found, "signature": _signature(found)} for found in models.values()],
        "measures": measures_table(records),
        "classes": classes if classes.rows else None,
        "figures": [(name, run.figure(f"divergence/{name}.svg")) for name in models],
    }


def _signature(found: Record) -> str:
    """The signature of the divergence."""
    return next(str(r["signature"]) for r in found["records"] if r["name"] in ("kl", "kl_infinite") and "by" not in r)


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
    """True if a position or length has an interval: a divergence, in so many sentences that resampling them says one.

    A sentence has one context at a position, and one a word (and one for its end, if the model is causal) in all.
    """
    each = 1 if by == "position" else int(row.group) + (found.objective == "causal")
    return "kl" in row.scores and row.tokens >= LEAST_SENTENCES * each
