"""Words, labels, names, titles and files that a browser, a template or a spreadsheet would obey are shown as text."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from opened_page import CAUSAL, FILE, LABEL, OTHER, RENAMED, RUN, WORDS, Opened

pytestmark = pytest.mark.long  # in a browser

MADE = "main img, main script:not([type]), main [onclick], main [onload], main [onerror], main [onmouseover]"


@pytest.fixture(params=["with its policy", "without its policy"])
def hostile(request: pytest.FixtureRequest, browser: Any, run: Path) -> Any:
    """The page with its Content-Security-Policy, and without, so that texts are seen to be harmless by themselves."""
    opened = Opened(browser, run / "report.html", bypass_csp=request.param != "with its policy")
    yield opened
    assert opened.page.evaluate("window.hits") == 0
    assert opened.page.locator(MADE).count() == 0
    assert opened.said == []
    opened.context.close()


def test_texts_are_shown_as_they_are(hostile: Opened) -> None:
    page = hostile.page
    tokens = hostile.texts("#explored .token")
    assert {word for word in WORDS if word not in tokens} <= {"&lt;b&gt;"}  # few sentences are shown
    assert sum(word in tokens for word in WORDS) >= len(WORDS) - 2
    assert "${hit()}" in page.title() and "</script><img/src=x/onerror=hit()>" in page.locator("h1").inner_text()
    assert hostile.texts("#tools .models label") == [CAUSAL, RENAMED]
    assert LABEL in page.locator("#explored select").nth(1).inner_text()
    assert RUN in page.locator(".byline").inner_text() or "toy" in page.locator(".byline").inner_text()
    page.locator("summary", has_text="The resolved configuration").click()
    assert FILE in page.locator("pre[data-what=configuration]").inner_text()


def test_texts_stay_harmless_in_whatever_the_page_does(hostile: Opened) -> None:
    page = hostile.page
    for token in page.locator(f"#explored .token:has-text({json.dumps('hit()')})").all()[:6]:
        token.click()
        token.hover()
    page.locator("#explored select").first.select_option(label=f"{RENAMED} (causal)")
    page.locator("#explored select").nth(1).select_option(LABEL)
    page.locator("#explored .token").nth(2).click()
    page.get_by_label(RENAMED, exact=True).uncheck()
    for head in page.locator("th .sort:visible").all():
        head.click()
    for plot in page.locator("[data-figure] .wide[tabindex]:visible").all():
        plot.focus()
        page.keyboard.press("ArrowRight")


def test_no_other_script_runs(opened: Opened) -> None:
    page = opened.page
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'hit()'}))")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=hit()>')")
    page.wait_for_timeout(50)
    assert page.evaluate("window.hits") == 0
    assert any("Content Security Policy" in text for text in opened.said)


def test_files_of_figures_hold_text_and_no_formulas(hostile: Opened, browser: Any, tmp_path: Path) -> None:
    page, cells = hostile.page, []
    plots = page.locator("[data-figure]").all()
    for number, plot in enumerate(plots):
        for button in plot.locator(".tools button").all():
            kind = button.inner_text()
            if "PDF" in kind:
                continue
            with page.expect_download() as found:
                button.click()
            file = tmp_path / f"{number}{'.csv' if 'CSV' in kind else '.svg' if kind == 'SVG' else '.mrg'}"
            found.value.save_as(file)
            if file.suffix == ".csv":
                cells += [cell for row in csv.reader(io.StringIO(file.read_text(encoding="utf-8"))) for cell in row]
            if file.suffix == ".svg":
                elements = [element.tag.rpartition("}")[2] for element in ElementTree.parse(file).iter()]
                assert {"script", "img", "foreignObject"}.isdisjoint(elements)
                drawing = Opened(browser, file)
                assert drawing.page.evaluate("window.hits") == 0 and drawing.said == []
                drawing.context.close()
    assert f"'{RENAMED} (causal)" in cells
    for cell in cells:
        assert not re.match(r"[=+@\t\r-]", cell) or re.fullmatch(r"[+-][\d.]+(e[+-]?\d+)?", cell), cell
    assert sum(bool(re.fullmatch(r"-[\d.]+", cell)) for cell in cells) > 10  # negative numbers stay numbers


def test_the_command_of_a_figure_is_one_command(opened: Opened) -> None:
    commands = opened.page.locator("[data-figure] .tools button[title]").evaluate_all(
        "all => all.map(one => one.title)"
    )
    assert len(commands) > 5
    for command in commands:
        words = shlex.split(command)
        assert words[:4] == ["truesource", "report", f"runs/{RUN}", "--figure"] and words[5] == "-o" and len(words) == 7


@pytest.mark.parametrize("safe", [True, False], ids=["with its policy", "without its policy"])
def test_the_page_of_two_runs_is_harmless(browser: Any, both: Path, safe: bool) -> None:
    opened = Opened(browser, both, bypass_csp=not safe)
    page = opened.page
    for head in page.locator("th .sort").all():
        head.click()
    text = page.locator("main").inner_text()
    assert RUN in text and OTHER in text and RENAMED in text
    assert page.evaluate("window.hits") == 0
    assert page.locator(MADE).count() == 0
    assert opened.said == []
    assert {url.partition("#")[0] for url in opened.asked} == {both.as_uri()}
    opened.context.close()
