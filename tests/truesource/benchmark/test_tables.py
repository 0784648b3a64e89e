"""Tables of the benchmark: numbers are those of the standings, references have no rank, incomplete models are last."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from made_results import REFUSAL, MadeModel, made_results, made_suite

from truesource.evaluation.show.table import ABSENT, Cell, ReportTable
from truesource.evaluation.show.table_files import csv_text, latex_text
from truesource.studies.benchmark.standings import Standings, standings
from truesource.studies.benchmark.suite import Suite
from truesource.studies.benchmark.tables import (
    headline_table,
    language_table,
    models_table,
    ranks,
    refusals,
    with_models,
)


@pytest.fixture(scope="module")
def suite() -> Suite:
    return made_suite()


@pytest.fixture(scope="module")
def found(suite: Suite) -> list[Standings]:
    return standings(made_results(suite), list(suite.languages))


def column(table: ReportTable, key: str) -> list[Any]:
    return [row.cells[list(table.keys).index(key)] for row in table.rows]


def texts(cells: list[Any]) -> list[str | None]:
    return [cell.text if isinstance(cell, Cell) else cell for cell in cells]


@pytest.mark.long
def test_ranks_pass_over_references_and_incomplete_models(suite: Suite, found: list[Standings]) -> None:
    table = headline_table(found[0], suite)
    assert texts(column(table, "model")) == [
        *("oracle", "llama", "gpt2", "opt", "lstm", "gru", "gated-cnn", "ngram-5", "ngram-2", "unigram"),
        *("untrained", "half-done"),
    ]
    assert ranks(found[0]) == [None, 1, 2, 3, 4, 5, 6, 7, 8, None, 9, None]
    assert texts(column(table, "rank")) == [None if rank is None else str(rank) for rank in ranks(found[0])]
    assert column(table, "model")[-1].small == "5 of 8 languages"
    assert column(table, "model")[0].small == column(table, "model")[9].small == "reference"


@pytest.mark.long
def test_the_numbers_are_those_of_the_standings(suite: Suite, found: list[Standings]) -> None:
    for each in found:
        table = headline_table(each, suite)
        rows = list(csv.DictReader(io.StringIO(csv_text([table]))))
        for row, standing in zip(rows, each.rows, strict=True):
            ends = (standing.share.value, standing.share.low, standing.share.high) if standing.share else ()
            kept = [row[f"share{end}"] for end in ("", "_low", "_high")]
            assert [float(value) for value in kept if value] == list(ends)
            for name in suite.languages:
                on = standing.languages.get(name)
                assert row[name] == ("" if on is None else repr(on.share.value))
            assert f"suite:{suite.label}/{suite.digest}|" in row["signature"]


def detail_table(standings: Standings, suite: Suite, *, own: Sequence[str] = ()) -> ReportTable:
    """The tables of all languages as one."""
    tables = {name: language_table(standings, suite, name, own=own) for name in standings.languages}
    first = next(iter(tables.values()))
    rows = [replace(row, cells=(name, *row.cells)) for name, table in tables.items() for row in table.rows]
    return replace(first, columns=("language", *first.columns), keys=("language", *first.keys), rows=rows, text=(0, 1))


def test_details_have_the_units_that_they_name(suite: Suite, found: list[Standings]) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text([detail_table(found[0], suite)]))))
    assert len(rows) == 11 * 8 + 5
    by_name = {row.name: row for row in found[0].rows}
    for row in rows:
        on = by_name[row["model"].split(" (")[0]].languages[row["language"]]
        assert float(row["kl_bits"]) == on.kl.value / math.log(2)
        assert float(row["relative_ppl"]) == math.exp(on.kl.value)
        assert float(row["wrong"]) == on.wrong and float(row["calibration"]) == on.calibration
        if on.tokens_to[0.1] is not None:
            assert float(row["tokens_to_0.1"]) == on.tokens_to[0.1]
    assert {row["tokens_to_0.01_note"] for row in rows if row["model"] == "untrained"} == {"more than 2M"}
    assert {row["tokens_to_0.1"] for row in rows if row["model"].startswith("oracle")} == {""}
    assert any(float(row["tokens_to_0.1"]) < 2e6 for row in rows if row["model"] == "llama")


def test_missing_longer_strings_say_why(suite: Suite, found: list[Standings]) -> None:
    by_name = dict(
        zip([row.name for row in found[0].rows], column(headline_table(found[0], suite), "longer_share"), strict=True)
    )
    assert str(by_name["gpt2"]) == f"{ABSENT} (not read)"
    assert str(by_name["half-done"]) == f"{ABSENT} (5 of 7 languages)"
    assert refusals(found[0]) == {REFUSAL: ["gpt2"]}
    assert REFUSAL in headline_table(found[0], suite).note
    details = detail_table(found[0], suite)
    of_language = [
        str(cell)
        for row, cell in zip(details.rows, column(details, "longer_share"), strict=True)
        if row.cells[0] == "language-5"
    ]
    assert set(of_language) == {f"{ABSENT} (no such strings)"}


@pytest.mark.long
def test_references_alone_are_no_table_where_others_have_models() -> None:
    suite = made_suite(2)
    references = (("oracle", 1.0), ("unigram", 0.0))
    ends = [MadeModel(name, share, architecture=name) for name, share in references]
    masked = [MadeModel(name, share, objective="masked", architecture=name) for name, share in references]

    def shown(*models: MadeModel) -> list[str]:
        found = standings(made_results(suite, models), list(suite.languages))
        return [each.objective for each in with_models(found)]

    assert shown(*ends, *masked, MadeModel("a", 0.5)) == ["causal"]
    assert shown(*ends, *masked, MadeModel("a", 0.5, objective="masked")) == ["masked"]
    assert shown(*ends, *masked) == ["causal", "masked"]


def test_a_language_without_results_leaves_no_mean_of_longer_strings() -> None:
    suite = made_suite(2, unlimited=())
    results = made_results(suite, [MadeModel("a", 0.5)])
    ((row,), (fewer,)) = (
        standings(results, names)[0].rows for names in (list(suite.languages), [*suite.languages, "x"])
    )
    assert row.longer_share is not None and fewer.longer_share is None


def test_a_suite_without_longer_strings() -> None:
    suite = made_suite(2, unlimited=(0, 1))
    found = standings(made_results(suite, [MadeModel("a", 0.5)]), list(suite.languages))
    assert str(column(headline_table(found[0], suite), "longer_share")[0]) == f"{ABSENT} (no such strings)"


def test_own_models_are_marked_in_words(suite: Suite, found: list[Standings]) -> None:
    for table in (headline_table(found[0], suite, own=["gru"]), detail_table(found[0], suite, own=["gru"])):
        marked = [cell.text for cell in column(table, "model") if "yours" in cell.small]
        assert set(marked) == {"gru"}
    assert "gru (yours)" in latex_text([headline_table(found[0], suite, own=["gru"])])


def test_parameters_are_the_most_of_any_language(suite: Suite, found: list[Standings]) -> None:
    cells = column(headline_table(found[0], suite), "parameters")
    for row, cell in zip(found[0].rows, cells, strict=True):
        assert cell.score[0] == max(row.model["parameters"].values())


def test_models_have_a_row_each(found: list[Standings]) -> None:
    table = models_table(found)
    assert len(table.rows) == 14
    rows = {str(row.cells[0]): [str(cell) for cell in row.cells[1:]] for row in table.rows if row.cells[-1]}
    assert rows["gru"][:2] == ["causal", "my_gru.py:GRU"] and rows["gru"][-3:] == ["488", "2M", "3e12"]
