"""Tables and figures of `evaluate context`, from records with known answers."""

from __future__ import annotations

import re

import pytest

from truesource.evaluation.context.evaluator import ContextSettings
from truesource.evaluation.context.report import context_table, figure, lines_table, measure, training_figure
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.core.windows import BestWithin
from truesource.evaluation.show.declared import record_of
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import Cell
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG

pytestmark = pytest.mark.long

LENGTHS = LengthRange(2, 9)
PALINDROMES = PCFG.from_text(
    "S -> A T 0.3 | B U 0.3 | A A 0.2 | B B 0.2\nT -> S A 1.0\nU -> S B 1.0\nA -> a 1.0\nB -> b 1.0"
)


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    """Of the truth, and of the best predictor that sees two words."""
    setting = Setting(PALINDROMES, Oracle(PALINDROMES, lengths=LENGTHS).sample(200, 3), lengths=LENGTHS)
    models = {"truth": Oracle(PALINDROMES, lengths=LENGTHS), "two": BestWithin(PALINDROMES, 2, lengths=LENGTHS)}
    return {name: record_of(measure(model, setting, ContextSettings(lines=4)), name) for name, model in models.items()}


def test_the_line_of_the_truth_says_more_than_the_last_line() -> None:
    """Four lines are those of 0 to 3 words, as in `truesource bound --lines 4`."""
    setting = Setting(PALINDROMES, Oracle(PALINDROMES, lengths=LENGTHS).sample(200, 3), lengths=LENGTHS)
    for model, value in (
        (Oracle(PALINDROMES, lengths=LENGTHS), "more than 3 [more than 3, more than 3]"),
        (BestWithin(PALINDROMES, 2, lengths=LENGTHS), "2 [2, 2]"),
    ):
        signed, _, said = measure(model, setting, ContextSettings(lines=4)).line.rpartition(" = ")
        assert said == value
        assert parts_of(signed.partition("|")[2])["unit"] == "words"


def text(cell: Cell | str | None) -> str:
    return cell.text if isinstance(cell, Cell) else str(cell)


def test_an_effective_context_beyond_all_lines_is_called_so(records: dict[str, Record]) -> None:
    rows = {text(row.cells[0]): [text(cell) for cell in row.cells[1:3]] for row in context_table(records).rows}
    assert rows["effective context"] == ["more than 3", "2"]
    assert rows["line passed"] == ["3", "1"]


def test_every_predictor_has_a_row_and_the_truth_is_the_last(records: dict[str, Record]) -> None:
    table = lines_table(records["two"], "")
    rows = [[text(cell) for cell in row.cells] for row in table.rows]
    assert [row[0] for row in rows] == ["0 words", "1 word", "2 words", "3 words", "all words: the truth"]
    assert rows[2][3] == rows[2][4] == "0.0000"
    assert rows[4][2] == "None"


def test_the_figure_of_training_has_every_line_and_every_model(records: dict[str, Record]) -> None:
    steps = {"steps": [0, 10, 100], "curves": {"all": {"mean": {"value": [[-2.0], [-0.5], [0.001]]}}}}
    drawn = training_figure(records, {"two": steps}, "x")
    for label in ("two", "truth, trained", "0 words", "1 word", "2 words", "3 words"):
        assert label in drawn
    assert len(re.findall("<path", drawn)) > 6
    assert "best of k words" in figure(records["two"], "y")
