"""Tables of parse scores."""

from __future__ import annotations

import pytest

from truesource.cli.parse import MOST, parse_tables
from truesource.evaluation.parsing import score_parses
from truesource.evaluation.show.table_files import csv_text
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.brackets import read_text
from truesource.terminal.tables import show


def chain(labels: list[str], tag: str = "NN") -> Tree:
    """A chain of phrases over two words."""
    text = f"({tag} a) (VB b)"
    for label in labels:
        text = f"({label} {text})"
    (found,) = [found for _, found in read_text(f"(ROOT {text})")]
    return found


LABELS = [f"L{i:02}" for i in range(MOST + 3)]
GOLD = [chain(LABELS[: i + 1]) for i in range(len(LABELS))]
PARSED = [chain(["X", *LABELS[1 : i + 1]], "JJ" if i else "NN") for i in range(len(LABELS))]


def test_short_tables_have_lengths_and_the_most_frequent_labels() -> None:
    records = score_parses(GOLD, [*PARSED[:-1], None]).records()
    lengths, labels = parse_tables(records)
    assert [row.cells[0] for row in lengths.rows] == ["all", "1..40", "1..10"]
    assert [str(cell) for cell in lengths.rows[0].cells[:3]] == ["all", "13", "1"]
    recall = 100 * sum(range(12)) / sum(range(1, 14))
    assert str(lengths.rows[0].cells[5]) == f"{recall:.2f}"
    assert str(lengths.rows[0].cells[3]).count("[") == 1  # the interval of F1, and of nothing else
    assert not any("[" in str(cell) for cell in lengths.rows[0].cells[4:])
    assert [row.cells[0] for row in labels.rows] == LABELS[:MOST]
    assert labels.title == "Most frequent labels"
    assert [str(cell) for cell in labels.rows[1].cells] == ["L01", "12", "11", "11", "100.00", "91.67", "95.65"]
    assert [str(cell) for cell in labels.rows[0].cells[:4]] == ["L00", "13", "0", "0"]
    assert labels.rows[0].cells[4] is None  # never proposed: no precision
    assert all(row.signature for table in (lengths, labels) for row in table.rows)


def test_full_tables_have_all_labels_and_tags_and_confusions() -> None:
    records = score_parses(GOLD, PARSED).records()
    lengths, unlabelled, labels, tags, confusions = parse_tables(records, full=True)
    assert str(unlabelled.rows[0].cells[4]) == "100.00"
    assert len(labels.rows) == len(LABELS) + 1  # X is only proposed
    assert {row.cells[0] for row in tags.rows} == {"NN", "VB", "JJ"}
    assert [[str(cell) for cell in row.cells] for row in confusions.rows] == [["NN", "JJ", "12"]]
    assert lengths.columns[0] == "length"


def test_nothing_confused_leaves_no_table() -> None:
    records = score_parses(GOLD, GOLD).records()
    assert "Most frequent confusions of tags" not in [table.title for table in parse_tables(records, full=True)]


def test_tables_fit_on_the_terminal_and_into_files(capsys: pytest.CaptureFixture[str]) -> None:
    tables = parse_tables(score_parses(GOLD, PARSED).records())
    for table in tables:
        show(table)
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= 120
    first = csv_text(tables[:1]).splitlines()[0].split(",")
    assert first[:8] == [
        "table", "length", "sentences", "unparsed", "labelled_f1", "labelled_f1_low", "labelled_f1_high",
        "labelled_precision",
    ]  # fmt: skip
    assert float(csv_text(tables[:1]).splitlines()[1].split(",")[4]) <= 1.0  # files have shares
