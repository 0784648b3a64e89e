"""Figures show their values, and give them away as files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from opened_page import Opened

pytestmark = pytest.mark.long  # in a browser


def test_figures_show_and_hand_out_their_values(opened: Opened, tmp_path: Path) -> None:
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
