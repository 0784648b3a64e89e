"""Results as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truesource.cli.console import console


def print_results(records: Sequence[dict[str, Any]]) -> None:
    """Model, objective, perplexity, bound, relative perplexity with interval, rho, R2, tokens.

    Below it stands what is to be known of models that cannot make all sentences.
    """
    from rich.table import Table

    from truesource.report.words import interval, left_out, too_few

    table = Table(caption="intervals: 95%, sentences resampled; bound: the exact perplexity of the language itself")
    for name in ("model", "objective"):
        table.add_column(name)
    for name in ("PPL", "bound", "relative PPL", "rho", "R2", "tokens"):
        table.add_column(name, justify="right")
    for r in records:
        if r["relative_ppl"] is None:
            table.add_row(r["model"], r["objective"], *["-"] * 5, "0")
            continue
        table.add_row(
            r["model"],
            r["objective"],
            f"{r['ppl']:.2f}",
            f"{r['bound']:.2f}",
            interval(r, "relative_ppl", 4),
            f"{r['rho']:.4f}",
            f"{r['r2_pearson']:.4f}",
            f"{r['tokens']:,}",
        )
    console().print(table)
    for sentence in (*left_out(records), *too_few(records)):
        console().print(sentence)
