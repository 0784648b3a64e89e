"""Tables as CSV, Parquet, LaTeX and Markdown."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell, score_cell
from truesource.evaluation.show.table_files import (
    columns_of,
    csv_text,
    frame_of,
    latex_text,
    markdown_text,
    write_tables,
)

SCORE = {"value": -1.23456789012345678, "low": -2.5, "high": 0.1}
#: what LaTeX and Markdown obey
HOSTILE = r"a\input{/etc/passwd} $x$ ~^#{}_%&|*<b>[l](u)`c`"


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


def counts() -> ReportTable:
    return ReportTable(
        columns=("model", "n", "KL"),
        rows=[
            TableRow(["a", number_cell(np.int64(1234567890), ","), number_cell(0.25, ".1f", small="5 pairs")]),
            TableRow(["b", None, Cell("infinite in 3.00%")]),
        ],
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


def test_columns_of_numbers_hold_numbers_and_remarks_stand_beside() -> None:
    found = columns_of([counts()])
    assert found["n"] == [1234567890, None] and type(found["n"][0]) is int
    assert found["KL"] == [0.25, None]
    assert found["KL_note"] == ["5 pairs", "infinite in 3.00%"]
    assert counts().rows[0].cells[1] == Cell("1,234,567,890")


def test_equal_and_reserved_names_of_columns_are_numbered() -> None:
    twice = ReportTable(columns=("table", "rank", "rank"), rows=[TableRow(["x", number_cell(1, "d"), "2"])])
    assert list(columns_of([twice])) == ["table", "table_2", "rank", "rank_2", "signature"]


def test_parquet_has_types(tmp_path: Path) -> None:
    write_tables(tmp_path / "t.parquet", [table(), counts()])
    read = pq.read_table(tmp_path / "t.parquet")
    assert str(read.schema.field("n").type) == "int64" and str(read.schema.field("KL a token").type) == "double"
    assert read["KL a token"].to_pylist() == [SCORE["value"], None, None, None]
    assert read["model"].to_pylist() == ["m_1 & 50%", "[2]", "a", "b"]
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_data_frames_have_the_same_columns() -> None:
    frame = frame_of([counts()])
    assert list(frame.columns) == ["model", "n", "KL", "KL_note"]
    assert str(frame["n"].dtype) == "Int64" and frame["KL"].tolist()[0] == 0.25


def test_latex_is_escaped_and_has_rules() -> None:
    text = latex_text([table(), table()], "a_1")
    assert text.count(r"\label{tab:a-1-of-one}") == text.count(r"\label{tab:a-1-of-one-1}") == 1
    assert r"m\_1 \& 50\% & $-$1.23 [$-$2.50, 0.10] & $<$0.0001 & a, " in text
    assert [rule for rule in (r"\toprule", r"\midrule", r"\bottomrule") if rule in text] == [
        r"\toprule",
        r"\midrule",
        r"\bottomrule",
    ]
    assert r"\begin{tabular}{lrrl}" in text
    assert "\\caption{Of one. 50\\% of it.}\n\\label{tab:a-1-of-one}\n" in text
    assert "\n{[}2] & -- & -- & --" in text  # [2] after the end of a row would be an argument of it
    assert "% m_1 & 50%: kl|v:1" in text
    assert all(character.isascii() for character in text)


@pytest.mark.parametrize(
    ("character", "written"),
    [
        *((character, f"\\{character}") for character in "_%&#${}"),
        ("\\", r"\textbackslash{}"),
        ("~", r"\textasciitilde{}"),
        ("^", r"\textasciicircum{}"),
    ],
)
def test_latex_escapes_what_it_obeys(character: str, written: str) -> None:
    body = latex_text([ReportTable(columns=("model",), rows=[TableRow([f"a{character}b"])])])
    assert f"\na{written}b \\\\\n" in body


def test_names_do_not_leave_their_cell() -> None:
    text = latex_text([table(name=HOSTILE + "\nnext")])
    body = [line for line in text.splitlines() if line and not line.startswith(("%", "\\"))]
    assert len(body) == 3  # the head and two rows
    assert "\\input" not in "".join(body) and "{}next" not in "".join(body)
    markdown = markdown_text([table(name=HOSTILE + "\nnext")]).splitlines()
    assert len([line for line in markdown if line.startswith("|")]) == 4  # with the line below the head
    row = next(line for line in markdown if line.startswith("| a"))
    assert row.count("|") - row.count("\\|") == 5


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX")
def test_latex_compiles(tmp_path: Path) -> None:
    write_tables(tmp_path / "t.tex", [table(name=HOSTILE), counts()])
    document = r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{t}\end{document}"
    (tmp_path / "main.tex").write_text(document, encoding="utf-8")
    call = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "main.pdf").is_file()


def test_markdown_is_as_on_the_terminal() -> None:
    lines = markdown_text([table()]).splitlines()
    assert lines[0] == "**of one**"
    assert lines[2:5] == [
        "| model | KL a token | p | remark |",
        "| :-- | --: | --: | :-- |",
        '| m_1 \\& 50% | \N{MINUS SIGN}1.23 \\[\N{MINUS SIGN}2.50, 0.10\\] | \\<0.0001 | a, "b" |',
    ]
    assert lines[5].startswith("| \\[2\\] | \N{EN DASH} |") and lines[-1] == "50% of it"
