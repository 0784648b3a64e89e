"""Tables of models compared with the truth, and of a model alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell, score_cell
from truesource.evaluation.show.words import unchecked_note, vocabulary_note
from truesource.grammar.support.printable import listed

if TYPE_CHECKING:
    from truesource.evaluation.core.comparison import AloneScores


#: column, its heading and how it is shown, after the model and its objective
_MEASURES = (
    ("ppl", "PPL", ".2f"),
    ("bound", "bound", ".2f"),
    ("relative_ppl", "relative PPL", ".4f"),
    ("rho", "rho", ".4f"),
    ("r2_pearson", "R2", ".4f"),
)
_WITH_INTERVAL = "relative_ppl"  #: the others have theirs in files only


def results_table(records: Sequence[Mapping[str, Any]]) -> ReportTable:
    """Return a row for each model: perplexity, bound, relative perplexity with interval, rho, R2, tokens."""
    over = " (and seeds, of a mean over seeds)" if any("replicates" in r for r in records) else ""
    words = "".join(f". {note}" for note in vocabulary_notes(records))
    if any(parts_of(each.get("signature") or "").get("reading", "").startswith("pieces") for each in records):
        words = f"; tokens of models of pieces are words, and sentence ends if they count{words}"
    return ReportTable(
        columns=("model", "objective", *(heading for _, heading, _ in _MEASURES), "tokens"),
        keys=("model", "objective", *(name for name, _, _ in _MEASURES), "tokens"),
        text=(0, 1),
        rows=[TableRow(_cells(record), record.get("signature") or "") for record in records],
        note=f"intervals: 95%, sentences resampled{over}; bound: the exact perplexity of the truth on the tokens that"
        f" the model is scored on{words}",
    )


def vocabulary_notes(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return sentences on the vocabularies that the models of each objective are scored in."""
    groups: dict[str, list[str]] = {}
    for record in records:
        if record["model"] != "oracle" and record.get("signature"):
            groups.setdefault(record["objective"], []).append(record["signature"])
    notes: dict[str, list[str]] = {}
    for objective, signed in groups.items():
        if len({parts_of(each).get("vocab", "") for each in signed}) > 1:
            note = "Each model is scored on its own words, all others <unk>, so these rows do not compare"
        else:
            note = vocabulary_note(signed)
        if note:
            notes.setdefault(note, []).append(objective)
    several = len(groups) > 1
    unchecked = unchecked_note((record["model"], record.get("signature") or "") for record in records)
    of_words = [f"{listed(names).capitalize()}: {note}" if several else note for note, names in notes.items()]
    return [*of_words, *filter(None, [unchecked])]


def _cells(record: Mapping[str, Any]) -> list[Cell | str | None]:
    measured = record["relative_ppl"] is not None
    seeds = f"{len(record['replicates'])} seeds" if measured and "replicates" in record else ""
    cells: list[Cell | str | None] = [Cell(record["model"], small=seeds), record["objective"]]
    for name, _, spec in _MEASURES:
        cells.append(_measure(record, name, spec) if measured else None)
    return [*cells, number_cell(record["tokens"] if measured else 0, ",")]


def _measure(record: Mapping[str, Any], name: str, spec: str) -> Cell | None:
    if record[name] is None:
        return None
    score = {"value": record[name], "low": record.get(f"{name}_low"), "high": record.get(f"{name}_high")}
    cell = score_cell(score, spec)
    if cell is None or (name == _WITH_INTERVAL and cell.ends is not None):
        return cell
    return Cell(f"{cell.text} [-]" if name == _WITH_INTERVAL else cell.text, score=cell.score)


def lines_table(lines: Sequence[Mapping[str, Any]], bound: float) -> ReportTable:
    """Return perplexity and relative perplexity of the best predictors that see 0, 1, 2, ... words."""
    from truesource.evaluation.core.windows import window_name

    rows = []
    for seen, line in enumerate(lines):
        over = {key: None if line.get(key) is None else line[key] / bound for key in ("value", "low", "high")}
        cells = [window_name(seen), score_cell(line, ".2f"), score_cell({"value": over["value"]}, ".4f")]
        rows.append(TableRow(cells, line.get("signature") or ""))
    return ReportTable(
        columns=("best predictor that sees", "PPL", "relative PPL"),
        keys=("seen", "ppl", "relative_ppl"),
        text=(0,),
        rows=rows,
        title="Best predictors that see k words",
        note="of all predictors that see the last k words and no more, the perplexity of the best; exact, over all the"
        " words of the grammar",
    )


def alone_table(scored: AloneScores) -> ReportTable:
    """Return a model on text with an unknown truth: perplexity with interval, tokens, sentences."""
    scores = scored.scores
    sentences = scores.n_sentences - len(scores.impossible)
    return ReportTable(
        columns=("model", "objective", "PPL", "tokens", "sentences"),
        keys=("model", "objective", "ppl", "tokens", "sentences"),
        text=(0, 1),
        rows=[
            TableRow(
                [
                    scored.model,
                    scored.objective,
                    score_cell({**scored.ppl._asdict(), "signature": scored.signature}, ".2f"),
                    number_cell(len(scores.log_prob), ","),
                    number_cell(sentences, ","),
                ],
                scored.signature,
            )
        ],
        note="interval: 95%, sentences resampled; the true distribution of the text is not known",
    )
