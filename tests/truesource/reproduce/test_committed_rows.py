"""The rows of the papers: each table and figure is there, results are of the rows as they are, pages of both."""

from __future__ import annotations

from pathlib import Path

import pytest
from reproduction_pages import committed_result, pages, work_of

from truesource.grammar.support.errors import InputError
from truesource.studies.reproduce.rows import (
    Row,
    compose,
    config_file,
    digest_of,
    find_rows,
    needs_of,
    papers,
    reproductions_folder,
)
from truesource.studies.reproduce.studies import STUDIES

ROOT = Path(__file__).resolve().parents[3]
#: every table and figure of each paper
SHOWN = {
    "jumelet2023": "Table 1; Figure 1, 2, 3, 4a, 4b, 5a, 5b, 6, 7 left, 7 right, 8, 9",
    "cao2021": "Table 1, 2; Figure 1, 2a, 2b, 3",
    "roh2020": "Figure 1a, 1b, 1c; Table 1, 2",
    "meister2021": "Table 1, 2, 3, 4, 5, 6, 7; Figure 1, 2, 3, 4, 5, 6, 7, 8, 9a, 9b",
}
#: papers of which single claims are tested
PARTLY = {
    "akyurek2024",
    "allen-zhu2023",
    "cagnetta2024",
    "edelman2024",
    "gaitonde2026",
    "hu2025",
    "kallini2024",
    "loula2025",
    "park2024",
    "park2025",
    "shai2024",
    "snaebjarnarson2026",
    "someya2025",
    "svete2024",
    "tang2026",
    "zhao2023",
}
ROWS = [row for paper in papers().values() for row in paper.rows]
RUN = [row for row in ROWS if row.runs]


def items(paper: str) -> list[str]:
    """``Figure 7, left``: one string for each table and figure."""
    found = []
    for part in SHOWN[paper].split("; "):
        kind, _, numbers = part.partition(" ")
        found += [f"{kind} {number.replace(' ', ', ')}" for number in numbers.split(", ")]
    return found


@pytest.mark.long
def test_there_are_rows_of_the_papers() -> None:
    assert papers().keys() == SHOWN.keys() | PARTLY
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names) > 40


@pytest.mark.long
@pytest.mark.parametrize("paper", SHOWN)
def test_every_table_and_figure_has_its_row_once_or_in_parts(paper: str) -> None:
    shown = [row.shows for row in papers()[paper].rows]
    assert len(set(shown)) == len(shown)
    wanted = items(paper)
    assert [item for item in wanted if not any(each == item or each.startswith(f"{item}, ") for each in shown)] == []
    strangers = [each for each in shown if not any(each == item or each.startswith(f"{item}, ") for item in wanted)]
    assert strangers == []


@pytest.mark.parametrize("row", RUN, ids=lambda row: row.name)
def test_what_a_row_runs_is_there(row: Row) -> None:
    composed = compose(row)
    assert [each.name for each in composed] == (list(row.vary) or row.run)
    assert all(config_file(name).is_file() for name in row.run)
    assert find_rows(row.name) == [row]
    assert row.study is None or row.study in STUDIES


@pytest.mark.parametrize("row", RUN, ids=lambda row: row.name)
def test_a_committed_result_is_of_the_row_as_it_is(row: Row) -> None:
    result = committed_result(row)
    if result is None:
        pytest.skip("not run yet")
    assert result.digest == digest_of(row, compose(row)), "the row or its configuration has changed: run it again"
    assert list(result.quantities) == list(row.quantities) and len(result.claims) == len(row.claims)


def test_what_rows_need_from_outside_is_said() -> None:
    needed = {row.name: list(needs_of(row)) for row in RUN}
    assert needed["jz-table-1-causal-bound"] == ["PUBLISHED"] and needed["jz-figure-4a"] == ["TREEBANK"]
    for paper in papers().values():
        assert set(paper.needs) == {name for row in paper.rows for name in needed.get(row.name, [])}


def test_every_result_belongs_to_a_row() -> None:
    files = {path.stem for path in (reproductions_folder() / "results").glob("*")}
    assert files <= {row.name for row in RUN}


@pytest.mark.long
def test_the_pages_have_every_row() -> None:
    text = "\n".join(pages().values())
    assert [row.name for row in RUN if row.name not in text] == []


def test_every_paper_is_one_that_cite_lists() -> None:
    assert {work_of(paper).fields["year"] for paper in papers().values()} == {
        "2020",
        "2021",
        "2023",
        "2024",
        "2025",
        "2026",
    }


def test_a_paper_stands_for_its_rows() -> None:
    assert find_rows("roh2020") == [row for row in papers()["roh2020"].rows if row.runs]
    with pytest.raises(InputError, match="there is no row or paper 'jz-table-2'; did you mean jz-table-1"):
        find_rows("jz-table-2")


def test_words_of_a_row_do_not_change_its_digest_and_tests_do() -> None:
    row = find_rows("jz-figure-1")[0]
    same = row.model_copy(update={"published": "other words", "differs": "so", "correction": "so", "title": "so"})
    assert digest_of(same, compose(same)) == digest_of(row, compose(row))
    other = row.model_copy(update={"claims": row.claims * 2})
    assert digest_of(other, compose(other)) != digest_of(row, compose(row))
    assert digest_of(row, compose(row, ["seed=2"])) != digest_of(row, compose(row))
