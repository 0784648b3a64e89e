"""Tables of learning dynamics, the same on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truesource.evaluation.divergence.groups import END
from truesource.grammar.support.printable import few_code
from truesource.report.table import Cell, ReportTable, TableRow, number_cell, score_cell

Record = Mapping[str, Any]
HEADS = {
    "class": "class",
    "length": "words in sentence",
    "position": "position",
    "frequency": "frequency",
    "depth": "constituents above",
    "all": "",
}


def groups_table(record: Record, by: str) -> ReportTable:
    """The groups at the last checkpoint, classes in the order in which they were learned, all tokens last.

    Args:
        record: as `truesource.evaluators.dynamics.measure.report_record`.
        by: what the groups are.
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
        f" within {level}: closer than {level} nats; intervals: the checkpoints around that step",
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
    """A step with the checkpoints around it; None where the group is not there at the last checkpoint."""
    step, low, high = steps
    if step is None:
        return None
    if low is None:
        return number_cell(step, ",.0f")
    ends = f"{low:,.0f}", "..." if high is None else f"{high:,.0f}"
    return Cell(f"{step:,.0f}", ends, score=(step, low, high))
