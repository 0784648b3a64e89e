"""The section on PPLu: records, tables, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.score import ScoreRecord
from truesource.evaluation.pplu.experiments import PROTOCOLS, ReducedVocabulary
from truesource.grammar.support.records import STRICT
from truesource.report.figures import MODEL, TRUTH, figure, plain_log_axis, round_ticks, to_svg
from truesource.report.finished_run import FinishedRun
from truesource.report.records import Record
from truesource.report.table import Cell, ReportTable, TableRow, number_cell, score_cell

#: measure, its name, how it is shown, what it means
MEASURES = (
    ("ppl", "PPL", ",.2f", "per token; lower is better"),
    ("bound", "  of the truth", ",.2f", "the lowest that a model can have on average"),
    (
        "ppl_unigram",
        "PPL of word frequencies",
        ",.2f",
        "what PPL is divided by; PPLu compares only where this is equal",
    ),
    ("pplu", "PPLu", ".4f", "PPL over that; lower is better, below 1 is better than word frequencies"),
    ("pplu_bound", "  of the truth", ".4f", ""),
    ("mutual_information", "mutual information", ".4f", "of a token and its context in the language, nats"),
    ("information_learned", "  of the model", ".4f", "-ln PPLu of the model, nats"),
    ("share_learned", "  share learned", ".4f", "1 - KL / mutual information"),
)
SOURCES = {
    "oracle": "exact, of the language",
    "train": "counts of training text",
    "test": "counts of the scored text, so PPLu is the largest possible, its interval of texts of this size",
    "model": "counts of the model's samples",
}
RANKINGS = {
    "ppl": "by PPL of the model",
    "pplu": "by PPLu of the model",
    "truth_ppl": "by PPL of the truth",
    "truth_pplu": "by PPLu of the truth",
}
LONGEST = 90  #: characters of a sentence that are shown


def scores_table(models: Mapping[str, Sequence[Record]], unigram: str | None, title: str = "") -> ReportTable:
    """A row for each measure, a column for each model.

    Args:
        models: records by the heading of the column.
        unigram: source of the word frequencies; None where it is not recorded.
        title: of the table.
    """
    scores = [{record["name"]: record for record in records if "table" not in record} for records in models.values()]
    alone = not any("mutual_information" in found for found in scores)
    rows = []
    for name, label, spec, meaning in MEASURES:
        if name == "information_learned" and alone:
            label, meaning = "-ln PPLu", "nats per token that the model gains over these word frequencies"
        cells = [score_cell(found.get(name), spec) for found in scores]
        if any(cells):
            rows.append(TableRow((label, *cells, meaning)))
    note = "95% intervals from resampling sentences"
    if unigram is not None:
        note += f"; word frequencies: {SOURCES[unigram]}"
    return ReportTable(title=title, columns=("measure", *models, "meaning"), text=(0, -1), rows=rows, note=note)


def further_tables(records: Sequence[Record]) -> list[ReportTable]:
    """Tables of further measurements of one model: smaller vocabularies, split words, rankings of sentences."""
    of = {
        name: [record for record in records if record.get("table") == name]
        for name in ("reduction", "random-split", "senses", "ranking")
    }
    sides = {side: [r for r in of["reduction"] if r["side"] == side] for side in ("model", "truth")}
    made = [_reduction_table(rows) for rows in sides.values() if rows]
    if of["random-split"]:
        made.append(_split_table(of["random-split"], {r["name"]: r for r in records if "table" not in r}))
    if of["senses"]:
        made.append(_senses_table(of["senses"]))
    return made + (_ranking_tables(of["ranking"]) if of["ranking"] else [])


def _grouped(records: Sequence[Record], *keys: str) -> dict[tuple[Any, ...], dict[str, Record]]:
    """Records by the values of some keys, then by name."""
    found: dict[tuple[Any, ...], dict[str, Record]] = {}
    for record in records:
        found.setdefault(tuple(record.get(key) for key in keys), {})[record["name"]] = record
    return found


def _reduction_table(records: Sequence[Record]) -> ReportTable:
    side = records[0]["model"] if records[0]["side"] == "model" else "the truth"
    return ReportTable(
        title=f"Only the most frequent words: {side}",
        columns=("words", "protocol", "tokens", "PPL", "change", "PPLu", "change"),
        keys=("words", "protocol", "tokens", "ppl", "change_ppl", "pplu", "change_pplu"),
        text=(1,),
        rows=[
            TableRow(
                (
                    number_cell(words, ","),
                    protocol,
                    number_cell(tokens, ","),
                    _number(row["ppl"]),
                    number_cell(row["change_ppl"]["value"], ".1%"),
                    _number(row["pplu"]),
                    number_cell(row["change_pplu"]["value"], ".1%"),
                )
            )
            for (words, protocol, tokens), row in _grouped(records, "words", "protocol", "counted").items()
        ],
        note="change: against all words. Other words: skip: left out; merge: one word <unk>; renormalise: left out, the"
        " rest in proportion",
    )


def _split_table(records: Sequence[Record], whole: Mapping[str, Record]) -> ReportTable:
    names = {"true": "known probabilities", "counts": "counted"}
    beta = records[0]["beta"]
    return ReportTable(
        title=f"Words split at random, {beta:g} to {1 - beta:g}: {records[0]['occurrences']:,} tokens",
        columns=("halves for the model", "for word frequencies", "PPL", "after", "PPLu", "after"),
        keys=("model_knows", "unigram_knows", "ppl", "ppl_split", "pplu", "pplu_split"),
        text=(0, 1),
        rows=[
            TableRow(
                (
                    names[model],
                    names[unigram],
                    *map(_number, (whole["ppl"], row["ppl_split"], whole["pplu"], row["pplu_split"])),
                )
            )
            for (model, unigram), row in _grouped(records, "model_knows", "unigram_knows").items()
        ],
        note="A random split adds no information: with known probabilities PPL changes and PPLu does not. Counting the"
        " halves in the text fits them to it",
    )


def _senses_table(records: Sequence[Record]) -> ReportTable:
    names = {"ppl": "PPL", "ppl_unigram": "PPL of word frequencies", "pplu": "PPLu"}
    sides = _grouped(records, "side")
    whole, split = sides["whole",], sides["split",]
    gained = split["mutual_information"]["value"] - whole["mutual_information"]["value"]
    rows = [
        TableRow((label, _number(whole[name]), _number(split[name])))
        for name, label in (*names.items(), ("mutual_information", "mutual information, nats"))
    ]
    head = records[0]
    return ReportTable(
        title=f"The truth on {head['sentences']:,} sentences of its own, {head['words']:,} words split by their tags",
        columns=("measure", "before", "after"),
        rows=[*rows, TableRow(("  gained, nats per token", None, number_cell(gained, ".4f")))],
        note="A split by meaning adds information about the context, so PPLu falls",
    )


def _ranking_tables(records: Sequence[Record]) -> list[ReportTable]:
    ends: dict[tuple[str, str], list[dict[str, Record]]] = {}
    for (by, end, _), row in _grouped([r for r in records if "by" in r], "by", "end", "sentence").items():
        ends.setdefault((by, end), []).append(row)
    taus = [record for record in records if record["name"] == "kendall_tau"]
    agreement = ReportTable(
        title="Agreement of the rankings",
        columns=("ranking", "ranking", "tau"),
        keys=("ranking", "other_ranking", "kendall_tau"),
        text=(0, 1),
        rows=[TableRow((*(RANKINGS[name] for name in tau["of"]), number_cell(tau["value"], ".4f"))) for tau in taus],
        note="Kendall's tau-b: 1 the same, 0 unrelated, -1 reversed",
    )
    return [*(_sentences_table(rows, by, end) for (by, end), rows in ends.items()), agreement]


def _sentences_table(rows: Sequence[Mapping[str, Record]], by: str, end: str) -> ReportTable:
    known = "rank_truth_ppl" in rows[0]["ppl"]
    truth = {"truth: PPL rank": "rank_truth_ppl", "PPLu rank": "rank_truth_pplu"} if known else {}
    return ReportTable(
        title=f"{end.capitalize()} {len(rows)} {RANKINGS[by]}",
        columns=("PPL", "rank", "PPLu", "rank", *truth, "sentence"),
        keys=("ppl", "rank_ppl", "pplu", "rank_pplu", *truth.values(), "sentence"),
        text=(-1,),
        rows=[
            TableRow(
                (
                    _number(row["ppl"]),
                    number_cell(row["ppl"]["rank_ppl"], ","),
                    _number(row["pplu"]),
                    number_cell(row["ppl"]["rank_pplu"], ","),
                    *(number_cell(row["ppl"][rank], ",") for rank in truth.values()),
                    _shortened(row["ppl"]["text"]),
                )
            )
            for row in rows
        ],
    )


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _number(score: Record) -> Cell | None:
    return number_cell(score["value"], ",.2f" if abs(score["value"]) >= 10 else ".4f")


@with_config(STRICT)
class PpluRecord(TypedDict):
    """``pplu/<model>.json``."""

    model: str
    objective: str
    unigram: NotRequired[Literal["oracle", "train", "test", "model"]]  #: source of the word frequencies
    records: list[ScoreRecord]


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Tables and figures for the template; None where no model was measured."""
    models = {name: found for name, found in run.of_models("pplu", PpluRecord).items() if found["records"]}
    if not models:
        return None
    unigram = next(iter(models.values())).get("unigram")
    return {
        "scores": scores_table(
            {f"{n}\n{found['objective']}": found["records"] for n, found in models.items()}, unigram
        ),
        "signatures": {
            name: next(r["signature"] for r in found["records"] if r["name"] == "pplu" and "table" not in r)
            for name, found in models.items()
        },
        "further": {name: tables for name, found in models.items() if (tables := further_tables(found["records"]))},
        "figures": {name: figure for name in models if (figure := run.figure(f"pplu/{name}.svg")) is not None},
    }


WHAT = {
    "skip": "skip: other words left out",
    "merge": "merge: other words are <unk>",
    "renormalise": "renormalise: left out, the rest in proportion",
}


def reduction_figure(curves: Mapping[str, Sequence[ReducedVocabulary]], salt: str = "reduction") -> str:
    """Relative change (equation 15) against vocabulary size, a panel a protocol, as ``<svg>``.

    Args:
        curves: of the model first, then of the truth where it is known.
        salt: of the identifiers in the figure.
    """
    with figure(9.6, 3.4, salt) as drawn:
        panels: Any = drawn.subplots(1, len(PROTOCOLS), sharey=True, sharex=True)
        sizes = sorted({row.words for rows in curves.values() for row in rows})
        for axes, protocol in zip(panels, PROTOCOLS, strict=True):
            for (name, rows), colour in zip(curves.items(), (MODEL, TRUTH), strict=False):
                of = sorted((row for row in rows if row.protocol == protocol), key=lambda row: row.words)
                x = [row.words for row in of]
                for label, values, style in (
                    ("PPL", [100 * row.change_ppl for row in of], "-"),
                    ("PPLu", [100 * row.change_pplu for row in of], (0, (3, 2))),
                ):
                    axes.plot(
                        x, values, color=colour, linestyle=style, marker="o", markersize=3, label=f"{label}, {name}"
                    )
            axes.set_xscale("log")
            axes.set_title(WHAT[protocol], fontsize=9)
            axes.set_xlabel("words kept, most frequent first")
            axes.grid()
        if sizes[-1] > sizes[0]:
            panels[0].set_xlim(0.8 * sizes[0], 1.25 * sizes[-1])
            for axes in panels:
                plain_log_axis(axes.xaxis, round_ticks(sizes[0], sizes[-1], 5))
        panels[0].set_ylim(bottom=0.0)
        panels[0].set_ylabel("change against all words, %")
        drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return to_svg(drawn, salt, "Change of PPL and PPLu against vocabulary size")
