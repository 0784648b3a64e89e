"""Tables of parses compared with a treebank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from truesource.report.table import Cell, ReportTable, TableRow, number_cell, score_cell

Record = Mapping[str, Any]
MOST = 10  #: labels, tags and confusions that are shown unless all are asked for
#: measure, its heading, and whether it is a share, which is shown in per cent
LABELLED = (
    ("labelled_f1", "labelled F1", True),
    ("labelled_precision", "precision", True),
    ("labelled_recall", "recall", True),
    ("exact_match", "exact\nmatch", True),
    ("tagging_accuracy", "tags", True),
    ("crossing_brackets", "crossing\nbrackets", False),
    ("no_crossing", "no\ncrossing", True),
)
UNLABELLED = (
    ("unlabelled_f1", "unlabelled F1", True),
    ("unlabelled_precision", "precision", True),
    ("unlabelled_recall", "recall", True),
    ("at_most_two_crossing", "two or fewer\ncrossing", True),
)
GROUPS = {"label": "Most frequent labels", "tag": "Most frequent tags"}


def parse_tables(records: Sequence[Record], *, full: bool = False) -> list[ReportTable]:
    """Scores of all sentences and by length, and of the most frequent labels.

    Args:
        records: the ``summary`` of `truesource.evaluation.parsing.ParseScores.records`.
        full: show all labels, and also unlabelled brackets, tags, and the most frequent confusions of tags.
    """
    tables = [_lengths(records, "Labelled brackets, by sentence length", LABELLED)]
    if full:
        tables.append(_lengths(records, "Unlabelled brackets, by sentence length", UNLABELLED))
    tables.append(_groups(records, "label", full))
    if full:
        tables += [_groups(records, "tag", full), _confusions(records)]
    return [table for table in tables if table.rows]


def _lengths(records: Sequence[Record], title: str, measures: Sequence[tuple[str, str, bool]]) -> ReportTable:
    """A row for all sentences and one for each range of lengths; the first measure with its interval."""
    groups: dict[str, dict[str, Record]] = {}
    for record in records:
        if record.get("by", "length") == "length":
            groups.setdefault(_length(record), {})[record["name"]] = record
    main = measures[0][0]
    return ReportTable(
        title=title,
        columns=("length", "sentences", "without\na parse", *(heading for _, heading, _ in measures)),
        keys=("length", "sentences", "unparsed", *(name for name, _, _ in measures)),
        rows=[
            TableRow(
                (
                    length,
                    *(number_cell(found[name]["value"], ",") for name in ("sentences", "unparsed")),
                    *(_cell(found.get(name), share, ends=name == main) for name, _, share in measures),
                ),
                found[main if main in found else "sentences"]["signature"],
            )
            for length, found in groups.items()
        ],
        note="per cent, counted as evalb counts, but sentences without a parse count too; crossing brackets: mean"
        " number in a sentence with a parse; 95% interval of F1 from resampling sentences",
    )


def _groups(records: Sequence[Record], by: str, full: bool) -> ReportTable:
    """A row for each label or tag, the most frequent of the treebank first."""
    groups: dict[str, dict[str, Record]] = {}
    for record in records:
        if record.get("by") == by:
            groups.setdefault(record["group"], {})[record["name"]] = record
    chosen = groups if full else dict(list(groups.items())[:MOST])
    return ReportTable(
        title=f"All {by}s" if full or len(groups) <= MOST else GROUPS[by],
        columns=(by, "gold", "proposed", "matched", "precision", "recall", "F1"),
        keys=(by, "gold", "proposed", "matched", "precision", "recall", "f1"),
        rows=[
            TableRow(
                (
                    group,
                    *(number_cell(found["f1"][count], ",") for count in ("gold", "proposed", "matched")),
                    *(_cell(found.get(name), True, ends=False) for name in ("precision", "recall", "f1")),
                ),
                found["f1"]["signature"],
            )
            for group, found in chosen.items()
        ],
        note="per cent; gold: in the treebank, proposed: in the parses",
    )


def _confusions(records: Sequence[Record]) -> ReportTable:
    found = [record for record in records if record.get("by") == "confusion"][:MOST]
    return ReportTable(
        title="Most frequent confusions of tags",
        columns=("tag of the treebank", "tag of the parse", "words"),
        keys=("gold", "proposed", "words"),
        text=(0, 1),
        rows=[
            TableRow((record["gold"], record["proposed"], number_cell(record["value"], ",")), record["signature"])
            for record in found
        ],
    )


def _length(record: Record) -> str:
    return str(record.get("group", "all"))


def _cell(record: Record | None, share: bool, *, ends: bool) -> Cell | None:
    found = None if record is None else _percent(record) if share else score_cell(record, ".2f")
    return found if found is None or ends else replace(found, ends=None, no_interval="")


def _percent(record: Record) -> Cell | None:
    """A share in per cent; in files as it is."""
    value, low, high = (record[key] for key in ("value", "low", "high"))
    scaled = {key: None if record[key] is None else 100.0 * record[key] for key in ("value", "low", "high")}
    found = score_cell({**record, **scaled}, ".2f")
    return None if found is None else replace(found, score=(value, low, high))
