"""Tables as CSV and LaTeX."""

from __future__ import annotations

import csv
import io

from truesource.report.table import Cell, ReportTable, TableRow, score_cell
from truesource.report.table_files import csv_text, latex_text

SCORE = {"value": -1.23456789012345678, "low": -2.5, "high": 0.1}


def table(title: str = "of one", name: str = "m_1 & 50%") -> ReportTable:
    return ReportTable(
        title=title,
        columns=("model", "KL\na token", "p", "remark"),
        text=(0, -1),
        rows=[
            TableRow((name, score_cell(SCORE, ".2f"), Cell("<0.0001", score=(1e-9, None, None)), 'a, "b"'), "kl|v:1"),
            TableRow(("[2]", None, None, None)),
        ],
        note="50% of it",
    )


def test_csv_has_all_digits_and_reads_back() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text([table(), table("of two")]))))
    assert list(rows[0]) == [
        "table",
        "model",
        "KL a token",
        "KL a token_low",
        "KL a token_high",
        "p",
        "remark",
        "signature",
    ]
    assert [row["table"] for row in rows] == ["of one"] * 2 + ["of two"] * 2
    assert float(rows[0]["KL a token"]) == SCORE["value"]
    assert (float(rows[0]["KL a token_low"]), float(rows[0]["KL a token_high"]), float(rows[0]["p"])) == (
        -2.5,
        0.1,
        1e-9,
    )
    assert (rows[0]["remark"], rows[0]["signature"]) == ('a, "b"', "kl|v:1")
    assert [rows[1][name] for name in ("model", "KL a token", "p", "remark", "signature")] == ["[2]", "", "", "", ""]


def test_keys_name_the_columns_of_files() -> None:
    named = ReportTable(columns=("model", "KL"), keys=("model", "kl"), rows=[TableRow(("a", score_cell(SCORE, ".1f")))])
    assert csv_text([named]).splitlines()[0] == "table,model,kl,kl_low,kl_high,signature"


def test_latex_is_escaped_and_has_rules() -> None:
    text = latex_text([table()])
    assert r"m\_1 \& 50\% & $-$1.23 [$-$2.50, 0.10] & $<$0.0001 & a, " in text
    assert [rule for rule in (r"\toprule", r"\midrule", r"\bottomrule") if rule in text] == [
        r"\toprule",
        r"\midrule",
        r"\bottomrule",
    ]
    assert r"\begin{tabular}{lrrl}" in text
    assert r"\caption{of one. 50\% of it.}" in text
    assert "\n{[}2] & -- & -- & --" in text  # [2] after the end of a row would be an argument of it
    assert "% m_1 & 50%: kl|v:1" in text
    assert all(character.isascii() for character in text)


def test_names_do_not_leave_their_cell() -> None:
    text = latex_text([table(name="a\\input{/etc/passwd}\n$x$ ~^#{}")])
    assert "\\input" not in text.replace("\\textbackslash ", "") or r"\textbackslash input" in text
    body = [line for line in text.splitlines() if line and not line.startswith(("%", "\\"))]
    assert len(body) == 3  # the head and two rows
