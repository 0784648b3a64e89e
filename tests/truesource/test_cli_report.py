"""`truesource report` of several runs, and one figure of a report."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from command_line import Command
from tiny_run import RunCopies

from truesource.evaluation.show.figures import FigureFile, drawing_for, figure, to_svg
from truesource.run.experiment import execute, load_config

pytestmark = pytest.mark.long

LABEL = "relative perplexity: model / truth, with 95% interval (1 is perfect)"
GRAMMAR = """\
S -> D N V 0.5 | N V 0.5
D -> 'the' 1
N -> 'dog' 0.5 | 'cat' 0.3 | 'cow' 0.2
V -> 'sees' 0.6 | 'sleeps' 0.4
"""


@pytest.fixture(scope="module")
def runs(finished_run: RunCopies) -> Path:
    """Two runs on one text, with a model of n-grams each; the first has a figure that a stage drew."""

    def fill(place: Path) -> None:
        (place / "g.txt").write_text(GRAMMAR, encoding="utf-8")
        for name, order, evaluation in (("first", 1, {"divergence": {}}), ("second", 3, {})):
            config = {
                "name": name,
                "grammar": {"method": "file", "file": "g.txt"},
                "corpus": {"splits": {"train": 200, "eval": 60}},
                "models": [{"name": f"n{order}", "model": {"architecture": "ngram", "order": order}}],
                "evaluation": evaluation,
            }
            (place / f"{name}.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
            execute(load_config(place / f"{name}.yaml"), base=place, runs=place / "runs")

    return finished_run("figures", fill) / "runs"


def test_every_figure_of_a_report_can_be_drawn(command: Command, runs: Path, tmp_path: Path) -> None:
    listed = command("report", runs / "first", "--figures")
    names = [line.split()[0] for line in listed.out.splitlines()]
    assert {"forest", "lengths", "spectrum", "tree", "divergence-n1"} <= set(names)
    page = (runs / "first" / "report.html").read_text(encoding="utf-8")
    assert names == re.findall('data-figure="([^"]*)"', page)
    for name in names:
        kinds = ((".pdf", b"%PDF"), (".png", b"\x89PNG"), (".svg", b"<svg"))
        for ending, start in kinds if name in ("forest", "divergence-n1") else kinds[:1]:
            file = tmp_path / f"{name}{ending}"
            found = command("report", runs / "first", "--figure", name, "-o", file)
            assert found.code == 0, found.err
            assert file.read_bytes().startswith(start)
    ElementTree.parse(tmp_path / "divergence-n1.svg")


@pytest.mark.parametrize("name", ["forest", "divergence-n1"])
def test_size_and_font_size_are_those_asked_for(command: Command, runs: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / "x.svg"
    assert (
        command("report", runs / "first", "--figure", name, "-o", file, "--figure-size", "5x4", "--font-size", "7").code
        == 0
    )
    svg = file.read_text(encoding="utf-8")
    assert 'viewBox="0 0 360 288"' in svg
    sizes = re.findall(r"font-size: ([\d.]+)px", svg)
    assert max(set(sizes), key=sizes.count) == "7"


def test_long_labels_are_broken_into_lines(command: Command, runs: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.svg"
    assert (
        command(
            "report", runs / "first", "--figure", "forest", "-o", file, "--figure-size", "3.3x1.8", "--font-size", "8"
        ).code
        == 0
    )
    found = ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")
    texts = ["".join(each.itertext()).strip() for each in found]
    lines = [text for text in texts if len(text) > 5 and text in LABEL]
    assert len(lines) > 1 and " ".join(lines) == LABEL


def test_wide_legends_have_fewer_columns() -> None:
    file = FigureFile("svg", (3.3, 2.4), font_size=9.0, only="x")
    with drawing_for(file), figure(9.0, 4.0, "x") as drawn:
        axes = drawn.subplots()
        for name in ("training batches", "dev sentences", "exact bound 17.25"):
            axes.plot([1, 2], [1, 2], label=name)
        drawn.legend(loc="outside upper center", ncols=3)
        svg = to_svg(drawn, "x", "A figure")
    legend = drawn.legends[0].get_window_extent()
    assert 0.0 < legend.x0 < legend.x1 < drawn.bbox.width and legend.y1 < drawn.bbox.height
    assert axes.get_window_extent().y1 < legend.y0
    assert svg.count(">exact bound 17.25<") == 1


def test_a_figure_that_is_too_small_for_its_text_is_refused(command: Command, runs: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.pdf"
    found = command(
        "report", runs / "first", "--figure", "lengths", "-o", file, "--figure-size", "1x1", "--font-size", "20"
    )
    assert found.code == 2 and "choose a larger size, or smaller text" in " ".join(found.err.split())
    assert not file.exists()


def test_the_same_figure_has_the_same_bytes(command: Command, runs: Path, tmp_path: Path) -> None:
    for name in ("tree", "lengths"):
        files = [tmp_path / f"{name}{number}.pdf" for number in (1, 2)]
        for file in files:
            assert command("report", runs / "first", "--figure", name, "-o", file).code == 0
        assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--figure", "nothing", "-o", "x.pdf"], "has no figure 'nothing'; it has "),
        (["--figure", "forest", "-o", "x.jpg"], ".svg, .pdf or .png"),
        (["--figure", "forest"], "name a file"),
        (["--figure", "forest", "-o", "x.pdf", "--figure-size", "big"], "--figure-size is WIDTHxHEIGHT"),
        (["--figure", "forest", "-o", "x.pdf", "--font-size", "nan"], "--font-size"),
        (["-o", "x.pdf"], "name a figure"),
        (["--figures", "-o", "x.pdf"], "--figures lists the figures"),
        (["--figures", "--font-size", "8"], "are for one figure"),
        (["--figure-size", "5x4"], "are for one figure"),
        (["second", "--figures"], "name only one run"),
    ],
)
def test_mistakes_are_named(
    command: Command, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = command("report", runs / "first", *given)
    assert found.code == 2 and message in " ".join(found.err.split())
    assert not list(tmp_path.iterdir())


def test_a_run_without_a_report_is_refused(command: Command, runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "first", tmp_path / "run", ignore=shutil.ignore_patterns("report.html"))
    for call in (["--figures"], ["--figure", "lengths", "-o", tmp_path / "x.svg"]):
        found = command("report", tmp_path / "run", *call)
        assert found.code == 2 and "no report yet" in found.err


def test_a_page_of_two_runs_has_the_numbers_of_compare(command: Command, runs: Path, tmp_path: Path) -> None:
    both = runs / "first", runs / "second"
    found = command("report", *both, "-o", tmp_path / "both.html")
    assert found.code == 0, found.err
    page = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert command("compare", *both, "--json", tmp_path / "x.json").code == 0
    records = json.loads((tmp_path / "x.json").read_text())
    for record in records:
        if record["name"] == "relative_ppl" and record["model"] != "oracle":
            assert f"{record['value']:.4f}" in page
    for link in re.findall(r'<a href="([^"#]*)">', page):
        assert (tmp_path / link).is_file(), link
    assert "first and second compared" in page and 'data-figure="comparison"' in page
    assert command("report", *both, "-o", tmp_path / "both.html").code == 2  # it is there
    assert command("report", runs / "first", "-o", tmp_path / "one.html").code == 2


def test_runs_on_other_text_are_refused(command: Command, runs: Path, tmp_path: Path) -> None:
    config = load_config(runs.parent / "second.yaml", ["seed=2", "name=other"])
    other = execute(config, base=runs.parent, runs=tmp_path).parent
    found = command("report", runs / "first", other, "-o", tmp_path / "x.html")
    assert found.code == 2 and "do not compare" in " ".join(found.err.split())
    assert not (tmp_path / "x.html").exists()
