"""Finished runs with hostile texts, and the browser that reads their pages; without a browser, nothing is tested."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from opened_page import CAUSAL, CHROMIUM, FILE, MASKED, OTHER, RENAMED, RUN, THIRD, TITLE, Opened, grammar

from truesource.grammar.support.atomic_files import write_json
from truesource.run.experiment import build_report, execute, load_config
from truesource.studies.compare.page import comparison_page

GIVEN = "renamed"


def _finished(place: Path, name: str, models: dict[str, dict[str, Any]], folder: str) -> Path:
    config = {
        "name": name,
        "title": TITLE,
        "grammar": {"method": "file", "file": FILE},
        "corpus": {"lengths": "3..6", "splits": {"train": 400, "eval": 60}},
        "models": [{"name": each, **model} for each, model in models.items()],
        "evaluation": {"divergence": {"by": ["class", "position"]}} if name == "toy" else {},
    }
    (place / f"{name}.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    execute(load_config(place / f"{name}.yaml"), base=place, runs=place / "runs")
    return (place / "runs" / name).rename(place / "runs" / folder)


def _ngram(**settings: int) -> dict[str, Any]:
    return {"model": {"architecture": "ngram", **settings}}


@pytest.fixture(scope="package")
def chromium() -> str:
    """The browser; where there is none, all that needs it is skipped."""
    pytest.importorskip("playwright", reason="pages are tested in a browser by the package playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed, so no browser reads the page")
    return CHROMIUM


@pytest.fixture(scope="package")
def runs(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs on one text; a model and both folders are renamed afterwards to what no configuration allows."""
    place = tmp_path_factory.mktemp("page")
    (place / FILE).write_text(grammar(), encoding="utf-8")
    bert = {"model": {"architecture": "bert", "dim": 8, "layers": 1, "heads": 1}, "training": {"max_steps": 2}}
    first = _finished(place, "toy", {CAUSAL: _ngram(order=2), GIVEN: _ngram(order=3, min_count=3)}, RUN)
    second = _finished(place, "other", {THIRD: _ngram(order=1), MASKED: bert}, OTHER)
    results = json.loads((first / "results.json").read_text())
    for row in results:
        row["model"] = RENAMED if row["model"] == GIVEN else row["model"]
    write_json(first / "results.json", results)
    for file in ("scores/{}.parquet", "next_words/{}.parquet", "models/{}"):
        (first / file.format(GIVEN)).rename(first / file.format(RENAMED))
    build_report(first)
    return first, second


@pytest.fixture(scope="package")
def run(runs: tuple[Path, Path]) -> Path:
    """The run that has a page of its own."""
    return runs[0]


@pytest.fixture(scope="package")
def both(runs: tuple[Path, Path]) -> Path:
    """The page of both runs."""
    target = runs[0].parent.parent / "both.html"
    target.write_text(comparison_page(runs, target)[0], encoding="utf-8")
    return target


@pytest.fixture(scope="package")
def browser(chromium: str, run: Path, both: Path) -> Iterator[Any]:
    """Headless Chromium; the pages first, since the driver has an event loop, in which none may be made."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="package")
def _shared(browser: Any, run: Path) -> Iterator[Opened]:
    opened = Opened(browser, run / "report.html")
    yield opened
    opened.context.close()


@pytest.fixture
def opened(_shared: Opened) -> Opened:
    """The page of a run on a desk, loaded anew."""
    _shared.said.clear()
    _shared.asked.clear()
    _shared.page.reload()
    return _shared
