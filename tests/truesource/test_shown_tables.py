"""Tables on the terminal: no number is cut, however narrow it is."""

from __future__ import annotations

import re

import pytest

from truesource.evaluation.core.score import Score
from truesource.evaluation.show import table as tables
from truesource.evaluation.show.score_tables import results_table
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, score_cell
from truesource.terminal.tables import show

NUMBERS = [f"{i}.{i}{i}{i}" for i in range(1, 10)]


def table() -> ReportTable:
    return ReportTable(
        title="Ten columns",
        columns=("rank", "model", *(f"column\n{i}" for i in range(1, 10))),
        rows=[TableRow(["1", Cell("long-name", small="yours"), *(Cell(n, (n, n)) for n in NUMBERS)])],
        note="All of it",
        text=(1,),
    )


def shown(made: ReportTable, width: int, monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> None:
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")  # is a terminal to rich
    monkeypatch.setenv("COLUMNS", str(width))
    show(made, width)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("width", [40, 80, 120, 300])
def test_every_number_is_printed_whole(
    width: int, terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown(table(), width, monkeypatch, terminal=terminal)
    text = said(capsys)
    for number in NUMBERS:
        assert f"[{number}, {number}]" in text
    assert "long-name" in text and "\N{HORIZONTAL ELLIPSIS}" not in text
    lines = text.splitlines()
    assert not terminal or max(map(len, lines)) <= width
    assert sum("Ten columns" in line for line in lines) == sum("All of it" in line for line in lines) == 1
    parts = sum("rank" in line for line in lines)
    assert parts > 1 if terminal and width < 200 else parts == 1
    assert text.count("long-name") == parts


def test_texts_after_the_first_are_broken_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = ReportTable(columns=("a", "said", "b"), rows=[TableRow(["x", "word " * 30, "1.5"])], text=(0, 1))
    shown(wide, 60, monkeypatch, terminal=True)
    text = said(capsys)
    assert text.count("word") == 30 and "1.5" in text and text.count("said") == 1


def test_a_sentence_says_why_values_have_no_interval(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = Score("ppl", 2.5, "data:ab|ci:none/fewer-than-10-sentences|v:1").as_record()
    old = {key: few[key] for key in ("name", "value", "low", "high", "signature")}  # of an earlier version
    many = Score("ppl", 2.5, "data:ab|ci:sentence-bootstrap-t95/seed1|v:1", 2.0, 3.0).as_record()
    count = Score("tokens", 7, "data:ab|ci:none/fewer-than-10-sentences|v:1").as_record()
    assert few["no_interval"] == "fewer-than-10-sentences"
    assert "no_interval" not in many and "no_interval" not in count
    for record, caption in (
        (few, "Note. Without interval: fewer than 10 sentences."),
        (old, "Note. Without interval: fewer than 10 sentences."),
        (many, "Note"),
        (count, "Note"),
    ):
        cells = ["a", score_cell(record, ".2f")]
        made = ReportTable(columns=("model", "PPL"), rows=[TableRow(cells), TableRow(cells)], note="Note")
        assert made.caption == caption
        shown(made, 100, monkeypatch, terminal=False)
        assert caption in " ".join(said(capsys).split())


def test_a_table_in_a_notebook() -> None:
    table = ReportTable(
        columns=("model", "KL\nnats"),
        rows=[TableRow(["a<b", Cell("0.10", ("0.05", "0.15"))]), TableRow(["truth", None])],
        title="Causal models",
        note="95% intervals",
    )
    html = table._repr_html_()
    assert html.startswith("<p><b>Causal models</b></p><table><thead><tr><th ")
    assert '<th style="text-align: right">KL nats</th>' in html
    assert '<td style="text-align: left">a&lt;b</td><td style="text-align: right">0.10 [0.05, 0.15]</td>' in html
    assert '<td style="text-align: right">\N{EN DASH}</td></tr></tbody></table><p>95% intervals</p>' in html


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [
        (25336.1164, ".4f", "25336"),
        (-1234.56, ".2f", "\N{MINUS SIGN}1235"),
        (999.994, ".2f", "999.99"),
        (1.1457, ".4f", "1.1457"),
        (2e9, ".2f", "2e+09"),
        (1234.5, ".3g", "1.23e+03"),
    ],
)
def test_large_numbers_have_no_more_digits_than_anyone_reads(value: float, spec: str, text: str) -> None:
    assert tables.shown(value, spec) == text


def test_notes_say_which_rows_compare() -> None:
    """Models that know different words do not; one that does not know all words has an easier text."""
    row = {**dict.fromkeys(("ppl", "bound", "relative_ppl", "rho", "r2_pearson"), 1.0), "tokens": 9}
    rows = [
        {**row, "model": name, "objective": "causal", "signature": f"objective:causal|vocab:{words}", "bound": bound}
        for name, words, bound in (("oracle", "9/all", 4.1), ("net", "5/0a", 4.0), ("other", "9/all", 4.1))
    ]
    assert "these rows do not compare" in results_table(rows).note
    assert "The model knows 5 words" in results_table(rows[:2]).note
    assert "<unk>" not in results_table(rows[:1]).note
    assert "<unk>" not in results_table([*rows[::2], {**rows[2], "model": "a second seed"}]).note  # they know all words
