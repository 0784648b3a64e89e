"""The rule that all intervals share."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from truesource.grammar.support.printable import FEWEST, few_code, no_interval_text, reason_text, too_few

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("units", range(13))
def test_ten_units_are_enough(units: int) -> None:
    assert FEWEST == 10
    assert too_few(units) == (units < 10)


def test_codes_are_sentences_too() -> None:
    assert few_code() == "fewer-than-10-sentences"
    assert few_code("end-type") == "fewer-than-10-end-types"
    assert reason_text(few_code("document")) == "fewer than 10 documents"
    assert reason_text(few_code("end-type")) == "fewer than 10 end types"
    assert reason_text("not-identified") == "the sample does not determine the law"
    assert reason_text("unheard-of") == "unheard-of"


def test_a_sentence_says_each_reason_once() -> None:
    assert no_interval_text([]) == ""
    assert no_interval_text([few_code()] * 3) == "Without interval: fewer than 10 sentences."
    assert no_interval_text([few_code(), "beta-at-bound"]).count(";") == 1


@pytest.mark.long
def test_nothing_else_decides() -> None:
    """No other module of evaluation compares a number with `FEWEST`, but for effective numbers of sentences."""
    found = []
    for path in sorted((ROOT / "evaluation").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
                if "FEWEST" in names:
                    found.append(path.relative_to(ROOT / "evaluation").as_posix())
    assert set(found) == {"dynamics/groupings.py", "measures/bootstrap.py"}
