"""The section on models trained on the treebank: records and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.score import ScoreRecord
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell, score_cell
from truesource.generator.objectives import OBJECTIVES
from truesource.grammar.support.records import STRICT, Count, FileName, InnerPath, Positive

REAL, EQUAL, SAMPLED = "treebank", "sampled-equal", "sampled"  #: names of models, by training text
GRAMMAR = "grammar"
#: text, sentences, measures (of a model, of the grammar), heading
COLUMNS: tuple[Column, ...] = (
    ("real", "common", ("ppl", "reference_ppl"), "real text\nPPL"),
    ("real", "common", ("ratio",), "real text\nPPL over {first}"),
    ("real", "common", ("ratio_to_reference",), "real text\nPPL over grammar"),
    ("real", "all", ("ppl", "reference_ppl"), "real text, all sentences\nPPL"),
    ("sampled", "common", ("ppl", "bound"), "sampled text\nPPL"),
    ("sampled", "common", ("relative_ppl",), "sampled text\nPPL over bound"),
)
REMARKS = {"reference_ppl": "no bound", "bound": "bound"}
#: names of training texts in rows
NAMES = {REAL: "the treebank", EQUAL: "as much sampled text", SAMPLED: "the corpus"}


@with_config(STRICT)
class Trained(TypedDict):
    """The record of the second training of a model."""

    sentences: Positive
    words: Positive
    steps: Count
    epochs: float | None
    scored_step: Count  #: step of the scored checkpoint
    folder: InnerPath  #: folder of this checkpoint


@with_config(STRICT)
class TextCounts(TypedDict):
    """The numbers of sentences of a text that are possible for each side."""

    given: Positive
    impossible: dict[str, Count]
    common: Count
    lacking: NotRequired[Count]  #: possible in the grammar although it lacks a word


@with_config(STRICT)
class BaselineScore(ScoreRecord):
    """The record of one number."""

    model: str
    text: str
    sentences: str
    words: str
    against: NotRequired[str]


@with_config(STRICT)
class BaselineRecord(TypedDict):
    """``treebank_baseline/<model>.json``."""

    model: str
    objective: str
    trained: dict[str, Trained]
    texts: dict[str, TextCounts]
    records: list[BaselineScore]


Records = Sequence[Mapping[str, Any]]
Column = tuple[str, str, tuple[str, ...], str]


def baseline_table(
    groups: Mapping[str, Records],
    *,
    title: str = "",
    words: str = "all",
    names: Mapping[str, str] | None = None,
) -> ReportTable:
    """Build a row for the grammar and for each model of each group.

    Args:
        groups: records of `score_on_text` (`truesource.evaluation.treebank_baseline.measure`), perhaps of both texts,
            by model of a run; a single group without a name has no column for it.
        title: title of the table.
        words: which words count: all, or those in the vocabulary (known).
        names: names of rows, by name of the model in the records.
    """
    counted = {group: [r for r in records if r["words"] == words] for group, records in groups.items()}
    columns = [c for c in COLUMNS if any(_fits(record, c) for records in counted.values() for record in records)]
    alone = list(groups) == [""]
    rows = []
    for group, records in counted.items():
        models = sorted(dict.fromkeys(record["model"] for record in records), key=lambda name: name != GRAMMAR)
        for number, model in enumerate(models):
            label = (names or {}).get(model, model)
            head = (label,) if alone else (group if number == 0 else "", label)
            cells = (_cell(records, model, column) for column in columns)
            rows.append(TableRow((*head, *cells), kind="oracle" if model == GRAMMAR else ""))
    heads = ("model",) if alone else ("model", "trained on")
    first = next((r["against"] for rs in counted.values() for r in rs if r["name"] == "ratio"), "")
    return ReportTable(
        columns=(*heads, *(column[-1].format(first=(names or {}).get(first, first)) for column in columns)),
        rows=rows,
        title=title,
        text=tuple(range(len(heads))),
        note="95% intervals, from resampling sentences. Numbers are over sentences possible for grammar and models,"
        " unless the column says all. On real text the grammar's perplexity is a reference, not a bound.",
    )


def _fits(record: Mapping[str, Any], column: Column) -> bool:
    text, sentences, measures, _ = column
    return record["text"] == text and record["sentences"] == sentences and record["name"] in measures


def _cell(records: Records, model: str, column: Column) -> Cell | None:
    record = next((record for record in records if record["model"] == model and _fits(record, column)), None)
    if record is None:
        return None
    plain = record["name"] in ("ppl", *REMARKS)
    spec = ".3f" if not plain else ".2f" if record["value"] < 1000 else ",.0f"
    return score_cell(record, spec, small=REMARKS.get(record["name"], ""))


def coverage_line(counts: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    """Describe how many sentences of a text are possible in the grammar and the models.

    Args:
        counts: ``given``, ``impossible`` by side, ``common``, ``lacking``.
        names: names of models, by name in the counts.
    """
    total, lost = counts["given"], dict(counts["impossible"])
    parts = []
    if GRAMMAR in lost:
        possible = total - lost.pop(GRAMMAR)
        lacking = counts.get("lacking", 0)
        unknown = f", {lacking:,} of them with words that it lacks, read as <unk>" if lacking else ""
        parts.append(f"the grammar can make {possible:,} of {total:,} sentences ({possible / total:.1%}){unknown}")
    parts += [f"{(names or {}).get(name, name)} cannot make {number:,}" for name, number in lost.items() if number]
    return "; ".join([*parts, f"{counts['common']:,} are common to all"])


def training_table(groups: Mapping[str, Mapping[str, Mapping[str, Any]]], names: Mapping[str, str]) -> ReportTable:
    """Build a table of the trainings of the further models.

    Args:
        groups: by model of the run and training text: records that `truesource.evaluation.treebank_baseline.report`
            calls `Trained`.
        names: names of training texts in the table.
    """
    rows = []
    for group, trained in groups.items():
        for number, (name, about) in enumerate(trained.items()):
            passes = "" if about["epochs"] is None else number_cell(about["epochs"], ".1f")
            steps = number_cell(about["steps"], ",") if about["steps"] else "counted"
            scored = number_cell(about["scored_step"], ",") if about["steps"] else ""
            size = (number_cell(about["sentences"], ","), number_cell(about["words"], ","))
            rows.append(TableRow((group if number == 0 else "", names.get(name, name), *size, steps, passes, scored)))
    columns = ("model", "trained on", "sentences", "words", "steps", "passes", "scored\nat step")
    return ReportTable(columns=columns, rows=rows, text=(0, 1))


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables for the template; None if no model was trained on the treebank."""
    results = run.of_models("treebank_baseline", BaselineRecord)
    text = run.record("treebank_baseline/text/text.json", TextRecord)
    if not results or text is None:
        return None
    objectives = [o for o in OBJECTIVES if any(record["objective"] == o for record in results.values())]
    groups = {
        o: {name: record["records"] for name, record in results.items() if record["objective"] == o} for o in objectives
    }
    known_words = {
        o: records
        for o, records in groups.items()
        if any(score["words"] == "known" for scores in records.values() for score in scores)
    }
    return {
        "text": text,
        "tables": {o: baseline_table(records, names=NAMES) for o, records in groups.items()},
        "known": {o: baseline_table(records, words="known", names=NAMES) for o, records in known_words.items()},
        "coverage": {name: coverage_line(record["texts"]["real"], NAMES) for name, record in results.items()},
        "training": training_table({name: record["trained"] for name, record in results.items()}, NAMES),
        "equal": any(EQUAL in record["trained"] for record in results.values()),
        "signatures": {name: record["records"][0]["signature"] for name, record in results.items()},
    }


@with_config(STRICT)
class TextSplitRecord(TypedDict):
    """The record of one split of the text."""

    file: FileName
    trees: Count  #: number of trees before sentences are excluded by length or repetition
    outside: Count  #: sentences outside the length range
    repeated: Count  #: sentences excluded because they are also in the training text
    sentences: Positive
    words: Positive
    sha256: str  #: SHA-256 of the file


@with_config(STRICT)
class TextRecord(TypedDict):
    """The content of ``text.json``: source of the sentences."""

    format: Literal["truesource treebank text"]
    source: str
    lengths: str | None
    seed: Count
    dev: float  #: share of the training trees
    splits: dict[str, TextSplitRecord]
    shared_trees: Count  #: held-out trees that are also training trees
    shared_sentences: Count  #: held-out sentences, including excluded ones, that are also in the training text
    held_out: NotRequired[float | str]  #: share of the treebank, or source of these trees
