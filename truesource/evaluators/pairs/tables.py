"""Tables of `truesource evaluate pairs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from truesource.cli.console import console, echo

if TYPE_CHECKING:
    from truesource.evaluation.pairs.pair import Pair

STRATA_SHOWN = 40  #: rows of the table of strata


def print_pairs(pairs: Sequence[Pair]) -> None:
    """An example and the number of each phenomenon."""
    from rich.table import Table

    table = Table()
    for name, justify in (
        ("phenomenon", "left"),
        ("pairs", "right"),
        ("impossible", "right"),
        ("the first one", "left"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for name in dict.fromkeys(pair.phenomenon for pair in pairs):
        own = [pair for pair in pairs if pair.phenomenon == name]
        odds = own[0].log_odds
        shown = f"{' '.join(own[0].a)}\n{' '.join(own[0].b)}\n" + (
            "one is impossible" if odds is None else f"{odds:.2f} nats"
        )
        table.add_row(name, str(len(own)), str(sum(not pair.possible for pair in own)), shown)
    console(130).print(table)


def print_measures(records: Sequence[dict[str, Any]]) -> None:
    """A row a phenomenon."""
    from rich.table import Table

    table = Table(
        caption="accuracy: the model prefers what the truth prefers; slope, correlation: of its log odds on the true"
        " ones; choice: sigma(log odds) of what the truth prefers; impossible: pairs with a side that the grammar"
        " cannot make; neither: the model can make neither side, which counts as no preference"
    )
    table.add_column("phenomenon")
    for name in (
        "pairs",
        "impossible",
        "neither",
        "accuracy",
        "of frequencies",
        "slope",
        "correlation",
        "choice",
        "of the truth",
    ):
        table.add_column(name, justify="right")
    for phenomenon in dict.fromkeys(r["phenomenon"] for r in records):
        own = {r["name"]: r for r in records if r["phenomenon"] == phenomenon and "by" not in r}
        accuracy = own.get("accuracy")
        table.add_row(
            phenomenon,
            f"{own['pairs']['value']:,}",
            f"{own['impossible']['value']:,}",
            f"{own['impossible_for_model']['value']:,}",
            "-" if accuracy is None else f"{accuracy['value']:.3f} [{accuracy['low']:.3f}, {accuracy['high']:.3f}]",
            *(
                _number(own.get(name))
                for name in ("unigram_accuracy", "slope", "correlation", "choice", "choice_truth")
            ),
        )
    console(130).print(table)


def print_parts(records: Sequence[dict[str, Any]]) -> None:
    """Accuracy by the size of the true log odds, then by stratum."""
    from rich.table import Table

    table = Table(caption="accuracy by |log odds| of the truth (nats), and by what the best tree shows")
    for name, justify in (("phenomenon", "left"), ("of", "left"), ("pairs", "right"), ("accuracy", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    parts = [r for r in records if "by" in r and r["by"] != "choice"]
    counts = {(r["phenomenon"], r["by"], r["group"]): r["value"] for r in parts if r["name"] == "pairs"}
    rows = [r for r in parts if r["name"] == "accuracy" and (r["by"] != "log_odds" or r["phenomenon"] == "all")]
    for r in rows[:STRATA_SHOWN]:
        n = counts[r["phenomenon"], r["by"], r["group"]]
        by = r["by"].replace("_", " ")
        table.add_row(
            r["phenomenon"], f"{by}: {r['group']}", f"{n:,}", f"{r['value']:.3f} [{r['low']:.3f}, {r['high']:.3f}]"
        )
    console(130).print(table)
    if len(rows) > STRATA_SHOWN:
        echo(f"{len(rows) - STRATA_SHOWN} more rows: --json FILE has all")


def _number(record: dict[str, Any] | None) -> str:
    return "-" if record is None else f"{record['value']:.3f}"
