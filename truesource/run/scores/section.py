"""The sections on scores: models against their bounds, and token by token."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from truesource.evaluation.core.score import ScoreRecord
from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.measures.contrast import Contrast, PairFamily, PairTest, SeedSums, difference
from truesource.evaluation.show import words
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.score_tables import lines_table
from truesource.evaluation.show.table import ReportTable, TableRow, number_cell, score_cell
from truesource.generator.objectives import OBJECTIVES
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.report.finished_run import FinishedRun, Part, differences
from truesource.run.scores import figures

LINES = "scores/lines.json"  #: scores of optimal k-word predictors in a run folder, k = 0, 1, 2, ...


def _notes(rows: Sequence[Record]) -> str:
    """Return notes on the vocabulary of a table, and on models that may look ahead."""
    signed = [(row["model"], row["signature"]) for row in rows]
    notes = words.vocabulary_note([signature for _, signature in signed]), words.unchecked_note(signed)
    return ". ".join(filter(None, notes))


def section(run: FinishedRun) -> Part:
    """Build a table for each objective, and intervals of relative perplexities."""
    table = result_table(run)
    lines: Sequence[Record] = run.record(LINES, list[ScoreRecord]) or []  # type: ignore[assignment]
    bound = next((row["bound"] for row in run.results if (row["model"], row["objective"]) == ("oracle", "causal")), 1.0)
    of_all = all(vocabulary_of(row).endswith("/all") for row in run.models if row["objective"] == "causal")
    marks = {str(seen): line["value"] / bound for seen, line in enumerate(lines)} if of_all else {}
    content = {
        "table": table,
        "alarms": words.below_bound(run.models),
        "words": [_notes([row for row in rows if not is_oracle(row)]) for _, rows in table],
        "other_words": any(is_oracle(rows[0]) and len({vocabulary_of(row) for row in rows}) > 1 for _, rows in table),
        "own": own_table(run),
        "left_out": words.left_out,
        "too_few": words.too_few,
        "differences": [_differences(run, objective, {row["model"] for row in rows}) for objective, rows in table],
        "replicated": any("replicates" in row for _, rows in table for row in rows),
        "lines": None if not lines else lines_table(lines, bound),
        "forest": figures.forest_figure([row for _, rows in table for row in rows], marks) if run.models else None,
    }
    return Part("models", "Models against bounds", Path(__file__).with_name("section.html.j2"), content)


def _differences(run: FinishedRun, objective: str, models: Collection[str]) -> ReportTable | None:
    """Build paired differences from the first model of the configuration; None if nothing was compared."""
    records = [record for record in differences(run.comparison, objective) if record["model"] in models]
    records = [record for record in records if record["baseline"] == records[0]["baseline"]]
    if not records:
        return None
    rows = [
        TableRow(
            [r["model"], score_cell(r, "+.4f"), words.p_value(r["p"]), words.p_value(r["p_adjusted"])], r["signature"]
        )
        for r in records
    ]
    columns = ("model", f"KL less the KL of {records[0]['baseline']}\n(nats per token)", "p", "p (Holm)")
    return ReportTable(columns=columns, rows=rows, title=f"Differences from {records[0]['baseline']}")


def nearer_test(run: FinishedRun, best: Record, other: Record) -> PairTest | None:
    """Test the KL of a model minus the KL of the best, among all pairs of their objective; None without scores.

    Args:
        run: run of both models.
        best: row of the nearest model.
        other: row of the next model.
    """
    nearest, next_one = best["model"], other["model"]
    for row in differences(run.comparison, best["objective"]):
        if {row["model"], row["baseline"]} == {nearest, next_one}:
            return _tested(row) if row["model"] == next_one else _tested(row).reversed
    rows = [
        row for row in run.models if (row["objective"], vocabulary_of(row)) == (best["objective"], vocabulary_of(best))
    ]
    sums = _gaps(run, rows, words.partial(best))
    if nearest not in sums or next_one not in sums:
        return None
    seed = run.config.get("seed", DEFAULT_SEED)
    return PairFamily.test(list(sums), lambda a, b: difference(sums[a], sums[b], seed=seed)).of(next_one, nearest)


def _tested(row: Record) -> PairTest:
    """Convert a record of ``comparison.json`` to a test."""
    tests = int(parts_of(row["signature"])["adjusted"].partition("/")[2])
    return PairTest(Contrast(row["value"], row["low"], row["high"], row["p"]), row["p_adjusted"], tests)


def _gaps(run: FinishedRun, rows: Sequence[Record], partial: bool) -> dict[str, SeedSums]:
    """Sum ln P - ln Q of the models with scores of tokens, on their common possible sentences.

    Args:
        run: run of the models.
        rows: rows of one objective and vocabulary.
        partial: use models that exclude many sentences, or the other models.
    """
    tables = {}
    for row in rows:
        seeds = [seed["model"] for seed in row.get("replicates", [row])]
        seed_tables = [table for name in seeds if (table := run.tokens_of(name)) is not None and len(table["model"])]
        if words.partial(row) == partial and len(seed_tables) == len(seeds):
            tables[row["model"]] = seed_tables
    n = 1 + max((int(table["sentence"].max()) for of in tables.values() for table in of), default=-1)
    counts = {name: np.stack([np.bincount(t["sentence"], minlength=n) for t in of]) for name, of in tables.items()}
    common = np.all([count.all(axis=0) for count in counts.values()], axis=0)
    if not np.any(common):
        return {}
    gaps = {
        name: np.stack([np.bincount(t["sentence"], t["oracle"] - t["model"], n) for t in of]).astype(np.float64)
        for name, of in tables.items()
    }
    return {name: SeedSums(gaps[name][:, common], counts[name][:, common].astype(np.float64)) for name in tables}


def is_oracle(row: Record) -> bool:
    """Return True for the row of the truth."""
    return bool(row["model"] == "oracle")


def vocabulary_of(row: Record) -> str:
    """Return the vocabulary of a row from its signature."""
    return parts_of(row.get("signature") or "").get("vocab", "")


def own_table(run: FinishedRun) -> ReportTable | None:
    """Build a table of models in their own vocabularies, if compared in another, in configuration order."""
    rows = [
        TableRow(
            [
                row["model"],
                row["objective"],
                number_cell(int(vocabulary_of(row).partition("/")[0]), ","),
                *(number_cell(row[name], spec) for name, spec in (("ppl", ".2f"), ("bound", ".2f"))),
                score_cell({"value": row["relative_ppl"], **_ends(row, "relative_ppl")}, ".4f"),
            ],
            row["signature"],
        )
        for row in run.results
        if row["objective"] in run.compared_objectives and not is_oracle(row)
    ]
    if not rows:
        return None
    return ReportTable(
        columns=("model", "objective", "words", "PPL", "bound", "relative PPL"),
        keys=("model", "objective", "words", "ppl", "bound", "relative_ppl"),
        text=(0, 1),
        rows=rows,
        title="Each model in its own vocabulary",
        note="Not a ranking: rows predict different words, and a smaller vocabulary makes the text easier."
        " Unknown words are <unk>, also for the bound",
    )


def _ends(row: Record, name: str) -> dict[str, object]:
    return {"low": row.get(f"{name}_low"), "high": row.get(f"{name}_high")}


def result_table(run: FinishedRun) -> list[tuple[str, list[Record]]]:
    """Group rows by objective and vocabulary, the oracle first, then by relative perplexity."""
    tables: list[tuple[str, list[Record]]] = []
    for objective in OBJECTIVES:
        rows = [row for row in run.summaries if row["objective"] == objective]
        truth, models = [row for row in rows if is_oracle(row)], [row for row in rows if not is_oracle(row)]
        for group in words.by_vocabulary(models) or [[]]:
            rows = [*truth, *words.ranked(group)]
            if rows:
                tables.append((objective, rows))
            truth = []
    return tables
