"""The report in a real browser: headless Chromium reads the page of a run whose words, title and names are hostile."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from truesource.experiment import build_report, execute, load_config
from truesource.grammar.support.files import write_json
from truesource.report.contrast import DARK_PAPER, contrast, on_dark
from truesource.report.figures import BARS, SERIES, TRUTH

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytest.importorskip("playwright", reason="the page is tested in a browser by the package playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed, so no browser reads the page")

NASTY = "</script><img/src=x/onerror=hacked()>"
WORDS = ("dog", "cat", NASTY, "<!--<script>", "{{7*7}}", "]]>", "\"'onmouseover=hacked()", "&lt;b&gt;")
RENAMED = "<svg onload=hacked()>"
CAUSAL = {"name": "two", "model": {"architecture": "ngram", "order": 2}}
OTHER = {"name": "three", "model": {"architecture": "ngram", "order": 3, "min_count": 3}}


def grammar() -> str:
    nouns = " | ".join(f"'{word.replace(chr(39), chr(92) + chr(39))}' {1 / len(WORDS)}" for word in WORDS)
    others = ("S -> NP V 0.6 | NP VP 0.4", "NP -> D N 1", "VP -> V NP 1", "D -> 'the' 0.7 | 'a' 0.3", "V -> 'sees' 1")
    return "\n".join((*others, f"N -> {nouns}", ""))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two models of n-grams; one is renamed afterwards to what no configuration allows, as is its folder."""
    place = tmp_path_factory.mktemp("page")
    (place / "g.txt").write_text(grammar(), encoding="utf-8")
    config = {
        "name": "toy",
        "title": f"A title {NASTY}",
        "grammar": {"method": "file", "file": "g.txt"},
        "corpus": {"lengths": "3..6", "splits": {"train": 400, "eval": 60}},
        "models": [CAUSAL, OTHER],
        "evaluation": {"divergence": {"by": ["class", "position"]}},
    }
    (place / "toy.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    execute(load_config(place / "toy.yaml"), base=place, runs=place / "runs")
    folder = (place / "runs" / "toy").rename(place / "runs" / "<b onclick=hacked()>")
    results = json.loads((folder / "results.json").read_text())
    for row in results:
        row["model"] = RENAMED if row["model"] == "three" else row["model"]
    write_json(folder / "results.json", results)
    for file in ("scores/{}.parquet", "next_words/{}.parquet", "models/{}"):
        (folder / file.format("three")).rename(folder / file.format(RENAMED))
    build_report(folder)
    return folder


@pytest.fixture(scope="module")
def browser(run: Path) -> Iterator[Any]:  # the run first: the driver has an event loop, in which none may be made
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Opened:
    """The page as a reader has it, with all that it said and asked for."""

    def __init__(self, browser: Any, run: Path, **context: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
        self.context.set_default_timeout(120_000)  # a busy machine is no finding
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.add_init_script("window.hacked = () => { window.wasHacked = true; }")
        self.page.goto((run / "report.html").as_uri())

    def texts(self, selector: str) -> list[str]:
        return [text.strip() for text in self.page.locator(selector).all_inner_texts()]


@pytest.fixture(scope="module")
def _shared(browser: Any, run: Path) -> Iterator[Opened]:
    opened = Opened(browser, run)
    yield opened
    opened.context.close()


@pytest.fixture
def opened(_shared: Opened) -> Opened:
    """The page on a desk, loaded anew."""
    _shared.page.reload()
    return _shared


def test_nothing_is_said_and_nothing_is_asked_for(opened: Opened, run: Path) -> None:
    opened.page.wait_for_timeout(50)
    assert opened.said == []
    assert {url.partition("#")[0] for url in opened.asked} == {(run / "report.html").as_uri()}
    assert (run / "report.html").stat().st_size < 2_000_000


def test_hostile_text_is_shown_and_not_obeyed(opened: Opened) -> None:
    page = opened.page
    tokens = opened.texts("#explored .token")
    for word in WORDS[:6]:
        assert word in tokens, word
    names = page.locator("#tools .models label").all_inner_texts()
    assert [name.strip() for name in names] == ["two", RENAMED]
    for token in page.locator(f"#explored .token:has-text({json.dumps('onerror')})").all()[:2]:
        token.click()
    page.locator("#explored select").first.select_option(label=f"{RENAMED} (causal)")
    page.locator("#explored .token").nth(2).click()
    for plot in page.locator("[data-figure] .wide[tabindex]").all():
        plot.focus()
        page.keyboard.press("ArrowRight")
    assert page.evaluate("window.wasHacked === undefined")
    assert page.locator("main img, main script:not([type]), main b[onclick], svg[onload]").count() == 0
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'hacked()'}))")
    assert page.evaluate("window.wasHacked === undefined")  # no other script than those of the page runs
    assert any("Content Security Policy" in text for text in opened.said)
    opened.said.clear()


READ = """table => [...table.tBodies[0].rows].filter(row => !row.classList.contains("sig"))
  .map(row => [...row.cells].map(cell => [cell.dataset.value ?? null, cell.innerText.split("\\n")[0].trim()]))"""


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
    assert page.locator("#explored select").first.locator("option").all_inner_texts() == ["two (causal)"]
    page.get_by_label(RENAMED, exact=True).check()
    assert rows.count() == before


def tables(run: Path, name: str) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Scores by sentence and position, and likely words by sentence, position and side."""
    scores = pq.read_table(run / "scores" / f"{name}.parquet").to_pylist()
    likely: dict[Any, list[tuple[str, float]]] = {}
    for row in pq.read_table(run / "next_words" / f"{name}.parquet").to_pylist():
        likely.setdefault((row["sentence"], row["position"], row["side"]), []).append((row["word"], row["log_prob"]))
    return {(row["sentence"], row["position"]): row for row in scores}, likely


def number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


@pytest.mark.parametrize("name", ["two", RENAMED])
def test_token_view_has_the_numbers_of_the_files(opened: Opened, run: Path, name: str) -> None:
    page, (scores, likely) = opened.page, tables(run, name)
    page.locator("#explored select").first.select_option(label=f"{name} (causal)")
    checked = 0
    for line in page.locator("#explored .sentences > li").all()[:6]:
        sentence = int(line.get_attribute("data-sentence") or -1)
        for position, token in enumerate(line.locator(".token").all()):
            row = scores[(sentence, position)]
            assert token.inner_text() == row["token"]
            token.click()
            scored = {cells[0]: cells[1:] for cells in line.locator(".scored tbody tr").evaluate_all(CELLS)}
            truth, own, gap = scored[f"{name} (causal)"]
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


CELLS = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))"


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
    page.get_by_label("Class of words").select_option("V")
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


def test_figures_show_and_hand_out_their_values(opened: Opened, run: Path, tmp_path: Path) -> None:
    page = opened.page
    figure = page.locator("[data-figure=lengths]")
    marks = json.loads(figure.locator("svg").get_attribute("data-marks") or "")
    bars = next(series for series in marks[0]["series"] if series["name"].startswith("sampled"))
    assert sum(height for _, height in bars["rows"]) == pytest.approx(1.0, abs=1e-4)
    figure.locator(".wide").focus()
    page.keyboard.press("ArrowRight")
    tip = figure.locator(".tip")
    assert tip.is_visible() and str(bars["rows"][0][1]) in tip.inner_text()
    box = figure.locator("svg").bounding_box()
    scale = box["width"] / 676.8
    (_, left, across), (_, top, down) = marks[0]["fx"], marks[0]["fy"]
    x, y = max(bars["rows"], key=lambda row: row[1])
    page.mouse.move(box["x"] + scale * (left + across * x), box["y"] + scale * (top + down * y))
    assert str(y) in tip.inner_text()
    with page.expect_download() as csv:
        figure.get_by_role("button", name=re.compile("CSV")).click()
    csv.value.save_as(tmp_path / "lengths.csv")
    lines = (tmp_path / "lengths.csv").read_text(encoding="utf-8").splitlines()
    assert csv.value.suggested_filename == "lengths.csv"
    assert len(lines) == 1 + sum(len(series["rows"]) for series in marks[0]["series"])
    with page.expect_download() as svg:
        figure.get_by_role("button", name=re.compile("^SVG")).click()
    svg.value.save_as(tmp_path / "lengths.svg")
    drawn = (tmp_path / "lengths.svg").read_text(encoding="utf-8")
    assert "var(" not in drawn and "data-marks" not in drawn and "#5b99c4" in drawn


SMALLEST = """() => Math.min(...[...document.querySelectorAll("figure svg text")]
  .filter(text => text.textContent.trim())
  .map(text => parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getBoundingClientRect().width
    / text.ownerSVGElement.viewBox.baseVal.width))"""
BEYOND = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_and_figures_are_legible(browser: Any, run: Path, width: int, scheme: str) -> None:
    opened = Opened(browser, run, viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = opened.page
    assert page.evaluate(BEYOND) == 0
    assert page.evaluate(SMALLEST) >= 8.99
    page.locator("#explored .token").first.click()
    assert page.evaluate(BEYOND) == 0
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 24, 31)" if scheme == "dark" else "rgb(255, 255, 255)")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != paper
    if width == 390:
        pinned = page.locator("#models table.results td").first
        assert pinned.evaluate("cell => getComputedStyle(cell).position") == "sticky"
    assert opened.said == []
    opened.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_finding_of_accessibility(browser: Any, run: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="findings are those of axe-core")
    opened = Opened(browser, run, color_scheme=scheme, bypass_csp=True)
    opened.page.locator("#explored .token").nth(3).click()
    opened.page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = opened.page.evaluate("axe.run({resultTypes: ['violations']})")
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found["violations"]] == []
    assert len(found["passes"]) > 15
    opened.context.close()


def test_without_scripts_all_is_there(browser: Any, run: Path) -> None:
    opened = Opened(browser, run, java_script_enabled=False)
    page = opened.page
    html = (run / "report.html").read_text(encoding="utf-8")
    assert page.locator("button:visible, input:visible, select:visible").count() == 0
    assert not page.locator("#explored").is_visible() and not page.locator("#tools").is_visible()
    shown = page.locator("main").inner_text()
    for row in json.loads((run / "results.json").read_text()):
        assert row["signature"] in shown and f"{row['relative_ppl']:.3f}" in shown
    assert page.locator("main svg").count() == html.count("<svg ") > 6
    assert len(page.locator("main table").all()) == html.count("<table")
    opened.context.close()


def test_every_link_leads_to_a_file_or_a_section(opened: Opened, run: Path) -> None:
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
