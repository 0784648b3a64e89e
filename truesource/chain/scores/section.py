"""What the sections on scores show: models against their bounds, and token by token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from truesource.chain.scores import figures
from truesource.chain.scores.token_view import token_view
from truesource.evaluation.measures.contrast import SeedSums, difference, may_be_chance
from truesource.report import words
from truesource.report.finished_run import FinishedRun
from truesource.report.part import Part
from truesource.report.records import Record
from truesource.report.replicates import differences
from truesource.report.table import ReportTable, TableRow, score_cell


def section(run: FinishedRun) -> Part:
    """A table for each objective, and intervals of the relative perplexities."""
    table = result_table(run)
    content = {
        "table": table,
        "alarms": words.below_bound(run.models),
        "other_words": _other_words(table),
        "left_out": words.left_out,
        "too_few": words.too_few,
        "differences": {objective: _differences(run, objective) for objective, _ in table},
        "replicated": any("replicates" in row for _, rows in table for row in rows),
        "forest": figures.forest_figure([row for _, rows in table for row in rows]) if run.models else None,
    }
    return Part("models", "Models against bounds", Path(__file__).with_name("section.html.j2"), content)


def tokens(run: FinishedRun) -> Part:
    """A picture of every token for each model."""
    content = {"scatters": _scatters(run), "view": token_view(run)}
    return Part("tokens", "Token by token", Path(__file__).with_name("tokens.html.j2"), content)


def _scatters(run: FinishedRun) -> list[tuple[Record, str, dict[str, float]]]:
    drawn = []
    for number, model in enumerate(run.models):
        row = model["replicates"][0] if "replicates" in model else model  # one figure a model
        table = run.scores.get(row["model"])
        if table is not None and len(table["model"]):
            gap = table["model"] - table["oracle"]
            note = {
                "mean": float(gap.mean()),
                "median": float(np.median(gap)),
                "near": float((np.abs(gap) <= 0.5).mean()),
            }
            drawn.append((row, figures.scatter_figure(number, row["model"], table["model"], table["oracle"]), note))
    return drawn


def _differences(run: FinishedRun, objective: str) -> ReportTable | None:
    """The models less the first of the configuration, paired sentence by sentence; None where nothing was compared."""
    found = differences(run.comparison, objective)
    if not found:
        return None
    rows = [
        TableRow(
            [r["model"], score_cell(r, "+.4f"), words.p_value(r["p"]), words.p_value(r["p_adjusted"])], r["signature"]
        )
        for r in found
    ]
    columns = ("model", f"KL less the KL of {found[0]['baseline']}\n(nats per token)", "p", "p (Holm)")
    return ReportTable(columns=columns, rows=rows, title=f"Differences from {found[0]['baseline']}")


def surely_nearer(run: FinishedRun, best: Record, other: Record, among: int) -> bool:
    """Whether a model is nearer to the truth than another, and that is no chance; False without scores of tokens.

    Args:
        run: that both are of.
        best: row of the model that came out nearest.
        other: row of the next one.
        among: number of models that the two were picked from.
    """
    seeds = [[seed["model"] for seed in row.get("replicates", [row])] for row in (best, other)]
    if any(name not in run.scores or not len(run.scores[name]["model"]) for name in seeds[0] + seeds[1]):
        return False
    known = [[run.scores[name] for name in names] for names in seeds]
    n = 1 + max(int(table["sentence"].max()) for tables in known for table in tables)
    gaps, counts = (
        [np.stack([np.bincount(t["sentence"], of(t), n).astype(np.float64) for t in tables]) for tables in known]
        for of in (lambda t: t["oracle"] - t["model"], lambda t: np.ones(len(t["model"])))
    )
    common = np.all(np.concatenate(counts), axis=0)
    if not common.any():
        return False
    nearest, next_one = (SeedSums(gap[:, common], count[:, common]) for gap, count in zip(gaps, counts, strict=True))
    found = difference(next_one, nearest)
    return found.value > 0.0 and not may_be_chance(found, math.comb(among, 2))


def _other_words(table: Sequence[tuple[str, list[Record]]]) -> bool:
    """Whether a model has another bound than the oracle's own row: it has fewer words, or other sentences."""
    return any(
        abs(row["bound"] / rows[0]["bound"] - 1.0) > words.PERFECT
        for _, rows in table
        for row in rows
        if rows[0]["model"] == "oracle"
    )


def result_table(run: FinishedRun) -> list[tuple[str, list[Record]]]:
    """Rows by objective, the oracle first, then by relative perplexity."""
    tables = []
    for objective in ("causal", "masked"):
        rows = [row for row in run.summaries if row["objective"] == objective]
        rows.sort(key=lambda row: (row["model"] != "oracle", words.partial(row), row["relative_ppl"]))
        if rows:
            tables.append((objective, rows))
    return tables
