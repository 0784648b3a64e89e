"""Results as a table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from truesource.cli.console import console

if TYPE_CHECKING:
    from truesource.evaluation.core.alone import ScoredAlone


def print_results(records: Sequence[Mapping[str, Any]]) -> None:
    """Model, objective, perplexity, bound, relative perplexity with interval, rho, R2, tokens.

    Below it stands what is to be known of models that cannot make all sentences.
    """
    from rich.table import Table

    from truesource.report.words import interval, left_out, too_few

    over = " (and seeds, of a mean over seeds)" if any("replicates" in r for r in records) else ""
    table = Table(
        caption=f"intervals: 95%, sentences resampled{over}; bound: the exact perplexity of the language itself"
    )
    for name in ("model", "objective"):
        table.add_column(name)
    for name in ("PPL", "bound", "relative PPL", "rho", "R2", "tokens"):
        table.add_column(name, justify="right")
    for r in records:
        if r["relative_ppl"] is None:
            table.add_row(r["model"], r["objective"], *["-"] * 5, "0")
            continue
        seeds = f" ({len(r['replicates'])} seeds)" if "replicates" in r else ""
        table.add_row(
            f"{r['model']}{seeds}",
            r["objective"],
            _shown(r["ppl"], 2),
            _shown(r["bound"], 2),
            interval(r, "relative_ppl", 4),
            _shown(r["rho"], 4),
            _shown(r["r2_pearson"], 4),
            f"{r['tokens']:,}",
        )
    console().print(table)
    for sentence in (*left_out(records), *too_few(records)):
        console().print(sentence)


def print_alone(found: ScoredAlone) -> None:
    """Model, objective, perplexity with interval, tokens."""
    from rich.table import Table

    from truesource.evaluation.core.score import no_interval
    from truesource.grammar.support.intervals import no_interval_text

    table = Table(caption="interval: 95%, sentences resampled; the true distribution of the text is not known")
    for name in ("model", "objective"):
        table.add_column(name)
    for name in ("PPL", "tokens", "sentences"):
        table.add_column(name, justify="right")
    value, low, high = found.ppl
    ends = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
    scores = found.scores
    sentences = scores.n_sentences - len(scores.impossible)
    table.add_row(found.model, found.objective, f"{value:.2f}{ends}", f"{len(scores.log_prob):,}", f"{sentences:,}")
    console().print(table)
    if low is None and (code := no_interval(found.signature)):
        console().print(no_interval_text([code]))


def _shown(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
