"""The page on a desk and on a phone, light and dark, for eyes and for screen readers, with JavaScript and without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from opened_page import Opened

from truesource.evaluation.show.figures import BARS, SERIES, TRUTH
from truesource.report.shown_figures import DARK_PAPER, contrast, on_dark

pytestmark = pytest.mark.long  # in a browser

SMALLEST = """() => Math.min(...[...document.querySelectorAll("figure svg text")]
  .filter(text => text.textContent.trim())
  .map(text => parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getBoundingClientRect().width
    / text.ownerSVGElement.viewBox.baseVal.width))"""
BEYOND = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
WIDTHS = (390, 1280)  #: pixels of a phone and of a desk


@pytest.fixture(params=["one run", "two runs"])
def file(request: pytest.FixtureRequest, run: Path, both: Path) -> Path:
    return run / "report.html" if request.param == "one run" else both


def test_nothing_is_said_and_nothing_is_asked_for(browser: Any, file: Path) -> None:
    opened = Opened(browser, file)
    opened.page.wait_for_timeout(50)
    assert opened.said == []
    assert {url.partition("#")[0] for url in opened.asked} == {file.as_uri()}
    assert file.stat().st_size < 2_000_000
    opened.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_and_figures_are_legible(browser: Any, file: Path, width: int, scheme: str) -> None:
    opened = Opened(browser, file, viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = opened.page
    assert page.evaluate(BEYOND) == 0
    assert page.evaluate(SMALLEST) >= 8.99
    if page.locator("#explored .token").count():
        page.locator("#explored .token").first.click()
        assert page.evaluate(BEYOND) == 0
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 24, 31)" if scheme == "dark" else "rgb(255, 255, 255)")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != paper
    if width == WIDTHS[0]:
        pinned = page.locator("main table.results td").first
        assert pinned.evaluate("cell => getComputedStyle(cell).position") == "sticky"
    assert opened.said == []
    opened.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_finding_of_accessibility(browser: Any, file: Path, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="findings are those of axe-core")
    opened = Opened(browser, file, viewport={"width": width, "height": 844}, color_scheme=scheme, bypass_csp=True)
    if opened.page.locator("#explored .token").count():
        opened.page.locator("#explored .token").nth(3).click()
    opened.page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = opened.page.evaluate("axe.run({resultTypes: ['violations']})")
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found["violations"]] == []
    assert len(found["passes"]) > 15
    opened.context.close()


def test_without_scripts_all_is_there(browser: Any, run: Path, file: Path) -> None:
    opened = Opened(browser, file, java_script_enabled=False)
    page = opened.page
    html = file.read_text(encoding="utf-8")
    assert page.locator("button:visible, input:visible, select:visible").count() == 0
    assert not page.locator("#explored").is_visible() and not page.locator("#tools").is_visible()
    shown = page.locator("main").inner_text()
    alone = file.parent == run
    rows = json.loads((run / "results.json").read_text())
    objectives = {row["objective"] for row in rows if row["model"] != "oracle"}
    for row in rows:
        if row["objective"] in objectives and (alone or row["model"] != "oracle"):
            assert row["signature"] in shown and f"{row['relative_ppl']:.{3 if alone else 4}f}" in shown
    assert page.locator("main svg:visible").count() == html.count("<svg ") > (6 if alone else 0)
    for table in page.locator("main table").all():
        assert table.is_visible()
    assert page.locator("main table").count() == html.count("<table")
    opened.context.close()


def test_every_link_leads_to_a_file_or_a_section(opened: Opened) -> None:
    links = opened.page.locator("a[href]").evaluate_all(
        "links => links.map(link => [link.getAttribute('href'), link.href])"
    )
    files = [address for href, address in links if not href.startswith("#")]
    assert len(files) >= 8
    for address in files:
        assert Path(unquote(urlparse(address).path)).exists(), address
    for href, _ in links:
        assert not href.startswith("#") or opened.page.locator(f"[id='{href[1:]}']").count() == 1


@pytest.mark.parametrize("colour", [*(colour.lower() for colour in SERIES), TRUTH.lower(), BARS.lower(), "#1f2937"])
def test_marks_have_contrast_on_both_papers(colour: str) -> None:
    assert contrast(colour, "#ffffff") >= 3.0
    assert contrast(on_dark(colour), DARK_PAPER) >= 4.5
    assert contrast(on_dark("#e5e7eb"), DARK_PAPER) < 3.0  # lines of the grid stay quiet


def test_figures_on_dark_paper_have_the_colours_of_dark_paper(browser: Any, run: Path) -> None:
    strokes = {}
    for scheme in ("light", "dark"):
        opened = Opened(browser, run / "report.html", color_scheme=scheme)
        drawn = "[...document.querySelectorAll('figure svg path')].map(path => getComputedStyle(path).stroke)"
        strokes[scheme] = {colour for colour in opened.page.evaluate(drawn) if colour.startswith("rgb(")}
        opened.context.close()
    mark = [tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in (TRUTH, on_dark(TRUTH))]
    light, dark = (f"rgb({r}, {g}, {b})" for r, g, b in mark)
    assert light in strokes["light"] and dark not in strokes["light"]
    assert dark in strokes["dark"] and light not in strokes["dark"]
