"""The token view has the numbers of the files of the run, and shows the sentences that are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from opened_page import CAUSAL, LABEL, MASKED, RENAMED, THIRD, Opened

pytestmark = pytest.mark.long  # in a browser

CELLS = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))"


def tables(run: Path, name: str) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Scores by sentence and position, and likely words by sentence, position and side."""
    scores = pq.read_table(run / "scores" / f"{name}.parquet").to_pylist()
    likely: dict[Any, list[tuple[str, float]]] = {}
    for row in pq.read_table(run / "next_words" / f"{name}.parquet").to_pylist():
        likely.setdefault((row["sentence"], row["position"], row["side"]), []).append((row["word"], row["log_prob"]))
    return {(row["sentence"], row["position"]): row for row in scores}, likely


def number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


@pytest.mark.parametrize(
    ("number_of_run", "name", "objective"),
    [(0, CAUSAL, "causal"), (0, RENAMED, "causal"), (1, THIRD, "causal"), (1, MASKED, "masked")],
)
def test_numbers_are_those_of_the_files(
    browser: Any, runs: tuple[Path, Path], number_of_run: int, name: str, objective: str
) -> None:
    run = runs[number_of_run]
    opened = Opened(browser, run / "report.html")
    page, (scores, likely) = opened.page, tables(run, name)
    page.locator("#explored select").first.select_option(label=f"{name} ({objective})")
    checked = 0
    for line in page.locator("#explored .sentences > li").all()[:6]:
        sentence = int(line.get_attribute("data-sentence") or -1)
        for position, token in enumerate(line.locator(".token").all()):
            row = scores[(sentence, position)]
            assert token.inner_text() == row["token"]
            token.click()
            scored = {cells[0]: cells[1:] for cells in line.locator(".scored tbody tr").evaluate_all(CELLS)}
            truth, own, gap = scored[f"{name} ({objective})"]
            shown = [number(truth), number(own)]
            assert shown == [float(f"{row['oracle']:.3f}"), float(f"{row['model']:.3f}")]
            assert number(gap) == pytest.approx(row["model"] - row["oracle"], abs=1.01e-3)
            heads = line.locator(".likeliest thead th").all_inner_texts()
            body = line.locator(".likeliest tbody tr").evaluate_all(CELLS)
            for side, column in (("truth", heads.index("truth")), ("model", heads.index(name))):
                expected = likely[(sentence, position, side)]
                found = [(cells[column], number(cells[column + 1])) for cells in body if cells[column]]
                assert found == [(word, float(f"{np.exp(log_prob):.4g}")) for word, log_prob in expected]
                listed = dict(expected).get(row["token"])
                if listed is not None:
                    assert listed == pytest.approx(row["oracle" if side == "truth" else "model"], abs=1e-6)
                checked += len(found)
    assert checked > 100
    opened.context.close()


def test_sentences_are_chosen_by_length_class_and_order(opened: Opened) -> None:
    page = opened.page
    lines = page.locator("#explored .sentences > li")
    everything = lines.count()
    page.get_by_label("Shortest sentence").fill("5")
    page.get_by_label("Longest sentence").focus()
    assert 0 < lines.count() < everything
    assert all(len(line.locator(".token").all()) >= 6 for line in lines.all())
    page.get_by_label("Shortest sentence").fill("1")
    page.get_by_label("Order of sentences").select_option("worst")
    order = [int(line.get_attribute("data-sentence") or -1) for line in lines.all()]
    assert sorted(order) == list(range(everything)) != order
    page.get_by_label("Class of words").select_option(LABEL)
    assert set(opened.texts("#explored .token:not(.other)")) == {"sees"}


def test_everything_works_by_keyboard(opened: Opened) -> None:
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    reached: set[str] = set()
    for _ in range(400):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "(({id, className, type, tagName}) => id || className || type || tagName)(document.activeElement)"
            )
        )
        if page.evaluate("document.activeElement.classList.contains('token')"):
            break
    assert {"theme", "checkbox", "sort", "wide", "copy"} <= reached
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator(".likely").count() == 1
    assert page.locator("#explored .token[tabindex='0']").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".likely").count() == 0
