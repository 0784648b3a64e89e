"""Tables sort by numbers, whatever stands around them, and rows are found by what is in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from opened_page import CAUSAL, RENAMED, Opened

pytestmark = pytest.mark.long  # in a browser

READ = """table => [...table.tBodies[0].rows].filter(row => !row.classList.contains("sig"))
  .map(row => [...row.cells].map(cell => [cell.dataset.value ?? null, cell.innerText.split("\\n")[0].trim()]))"""

#: cells in the order of their numbers, with what a page has for it; the last two have none
CELLS = (
    *(
        "\N{MINUS SIGN}\N{INFINITY}",
        "\N{MINUS SIGN}1,200",
        "\N{MINUS SIGN}0.5",
        "0.0%",
        "< 0.001",
        "1e-2",
        "0.9 [0.1, 2]",
    ),
    *(
        "12.5%",
        "41 s",
        "2 min 26 s",
        "150.2 tokens",
        "3 h 05 min",
        "650k",
        "1,719,582",
        "2.1M",
        "7 GB",
        "inf",
        "\N{INFINITY}",
    ),
)
NONE = ("\N{EN DASH}", "", "nan")


def value(cell: list[str | None]) -> float | str | None:
    exact, text = cell
    if exact is not None:
        return float(exact)
    assert text is not None
    plain = text.replace(",", "").replace("\N{MINUS SIGN}", "-")
    found = re.match(r"[+-]?[0-9.]+(?=$|[\s%(])", plain)
    return None if text in ("", "\N{EN DASH}") else float(found[0]) if found else text.lower()


@pytest.mark.parametrize("how", ["click", "keyboard"])
def test_tables_sort_numbers_as_numbers_and_empty_cells_last(opened: Opened, how: str) -> None:
    page, empty, numbers = opened.page, 0, 0
    for table in page.locator("#models table.sorts, #divergence table.sorts, #provenance table.sorts").all():
        for column, head in enumerate(table.locator("th .sort").all()):
            for direction in ("ascending", "descending"):
                if how == "click":
                    head.click()
                else:
                    head.focus()
                    page.keyboard.press("Enter" if direction == "ascending" else "Space")
                assert table.locator("th").nth(column).get_attribute("aria-sort") == direction
                assert table.locator("th[aria-sort]").count() == 1
                found = [value(row[column]) for row in table.evaluate(READ)]
                known = [each for each in found if each is not None]
                assert found[: len(known)] == known, "empty cells are not last"
                if known and all(isinstance(each, float) for each in known):
                    assert known == sorted(known, reverse=direction == "descending")  # type: ignore[type-var]
                    numbers += len(set(known)) > 1
                empty += len(found) - len(known)
    assert empty > 0 and numbers > 5


@pytest.fixture
def long_table(browser: Any, run: Path, tmp_path: Path) -> Any:
    """A page with a table of numbers of all kinds, in no order."""
    rows = sorted((*CELLS, *NONE), key=lambda text: text[::-1])
    body = "".join(
        f"<tr><td>row {number}</td><td>{text.replace('<', '&lt;')}</td></tr>" for number, text in enumerate(rows)
    )
    head = "<thead><tr><th>name</th><th>x</th></tr></thead>"
    table = f'<div class="scroll"><table id="made">{head}<tbody>{body}</tbody></table></div>'
    text = (run / "report.html").read_text(encoding="utf-8")
    file = tmp_path / "page.html"
    file.write_text(text.replace("</main>", f"{table}</main>"), encoding="utf-8")
    opened = Opened(browser, file)
    yield opened.page
    opened.context.close()


def test_units_infinities_intervals_and_missing_values(long_table: Any) -> None:
    second = "table => [...table.tBodies[0].rows].map(row => row.cells[1].innerText)"
    head = long_table.locator("#made th .sort").nth(1)
    head.click()
    up = long_table.locator("#made").evaluate(second)
    head.click()
    down = long_table.locator("#made").evaluate(second)
    assert up[: len(CELLS) - 2] == list(CELLS[:-2]) and set(up[len(CELLS) - 2 : len(CELLS)]) == set(CELLS[-2:])
    assert down[2 : len(CELLS)] == list(reversed(CELLS[:-2])) and set(down[:2]) == set(CELLS[-2:])
    assert set(up[len(CELLS) :]) == set(down[len(CELLS) :]) == set(NONE)


def test_rows_are_found_by_what_is_in_them(long_table: Any) -> None:
    field = long_table.get_by_label("Show rows of this table with")
    field.fill("GB")
    assert long_table.locator("#made tbody tr:visible").all_inner_texts()[0].endswith("7 GB")
    assert long_table.locator("#made tbody tr:visible").count() == 1
    field.fill("")
    assert long_table.locator("#made tbody tr:visible").count() == len(CELLS) + len(NONE)


def test_a_signature_stays_below_its_row(opened: Opened) -> None:
    page = opened.page
    below = """table => [...table.querySelectorAll("tr.sig")].map(row =>
      [row.previousElementSibling.cells[0].innerText.trim(), row.querySelector(".mono").innerText])"""
    table = page.locator("#models table.sorts").first
    before = table.evaluate(below)
    table.locator("th .sort").first.click()
    after = table.evaluate(below)
    assert after != before and sorted(after) == sorted(before)


def test_models_are_hidden_and_shown_everywhere(opened: Opened) -> None:
    page = opened.page
    rows = page.locator("#models tbody tr:visible")
    before = rows.count()
    assert page.locator("#tokens figure:visible").count() == 2
    page.get_by_label(RENAMED, exact=True).uncheck()
    assert rows.count() == before - 2  # the row and its signature
    assert page.locator("#tokens figure:visible").count() == 1
    assert page.locator("#explored select").first.locator("option").all_inner_texts() == [f"{CAUSAL} (causal)"]
    page.get_by_label(RENAMED, exact=True).check()
    assert rows.count() == before
