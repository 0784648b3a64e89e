"""Tables, JSON and figures out of every verb: ``--table``, ``--json``, ``--figure`` with ``--figure-size``."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest
from all_verbs import verbs
from command_line import Command

from truesource.evaluation.show.figures import figure, to_svg, write_figure
from truesource.terminal.verb import WITHOUT_TABLES

FRONT_DOOR = (
    "truesource.cli.",
    "truesource.chain.",
    "truesource.evaluation.evaluators.",
    "truesource.studies.scaling.",
)
FRONT_DOOR += ("truesource.studies.benchmark.", "truesource.studies.compare.")
WITHOUT_NUMBERS = {"new", "report", "cite"}
OUTPUT = "truesource.terminal.tables"


def options(command: object) -> set[str]:
    return {name for each in getattr(command, "params", ()) for name in each.opts}


def imported(module: str, seen: dict[str, set[str]]) -> None:
    """Collect what a module imports of the front door, and so on; names from the module of tables by module."""
    if module in seen:
        return
    seen[module] = set()
    spec = find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return
    for node in ast.walk(ast.parse(Path(spec.origin).read_text("utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        if node.module == OUTPUT:
            seen[module] |= {alias.name for alias in node.names}
        for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
            if f"{name}.".startswith(FRONT_DOOR) and name != OUTPUT and find_spec_of(name):
                imported(name, seen)


def find_spec_of(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def showing() -> Iterator[tuple[str, set[str]]]:
    """Verb, and the modules through which it may show a table."""
    for verb, command in verbs():
        seen: dict[str, set[str]] = {}
        imported(command.callback.__module__, seen)  # type: ignore[attr-defined]
        yield verb, {module for module, names in seen.items() if names & {"show", "keep"}}


@pytest.mark.long
def test_verbs_that_show_a_table_write_it_and_no_others() -> None:
    shown = dict(showing())
    assert {verb for verb, command in verbs() if "--table" not in options(command)} == WITHOUT_TABLES & shown.keys()
    assert {verb: modules for verb, modules in shown.items() if verb in WITHOUT_TABLES and modules} == {}
    assert {verb for verb, modules in shown.items() if not modules} == WITHOUT_TABLES & shown.keys()


def test_tables_are_made_in_one_place() -> None:
    places = set()
    room = Path(find_spec("truesource").submodule_search_locations[0])  # type: ignore[union-attr,index]
    for path in (*room.rglob("*.py"), *(room / "evaluation").rglob("*.py")):
        if "rich.table" in path.read_text("utf-8"):
            places.add(path.name)
    assert places == {"table.py", "help.py"}


@pytest.mark.long
def test_every_verb_with_numbers_has_json() -> None:
    assert {verb for verb, command in verbs() if "--json" not in options(command)} == WITHOUT_NUMBERS & dict(
        verbs()
    ).keys()


@pytest.mark.long
def test_every_figure_has_a_size() -> None:
    drawing = {verb for verb, command in verbs() if "--figure" in options(command)}
    assert drawing and drawing == {verb for verb, command in verbs() if "--figure-size" in options(command)}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("toy.txt").write_text("S -> A B [1.0]\nA -> 'a' [0.5] | 'b' [0.5]\nB -> 'c' [1.0]\n", encoding="utf-8")
    Path("text").write_text("a c\nb c\n" * 10, encoding="utf-8")
    return tmp_path


def test_a_table_of_each_format(here: Path, command: Command) -> None:
    files = ("t.csv", "t.parquet", "t.tex", "t.md")
    found = command("bound", "toy.txt", "text", *(part for file in files for part in ("--table", file)))
    assert found.code == 0, found.err
    assert found.last.startswith("Wrote t.csv and t.parquet and t.tex and t.md. Next: ")
    rows = list(csv.DictReader(Path("t.csv").read_text("utf-8").splitlines()))
    printed = {line.partition("|")[0]: line for line in found.out.splitlines() if "|" in line}
    assert {row["measure"] for row in rows} == printed.keys()
    for row in rows:
        assert f" {float(row['value']):.4f} [{float(row['value_low']):.4f}, " in found.out
        assert row["signature"] and row["signature"] in printed[row["measure"]]
    refused = command("bound", "toy.txt", "text", "--table", "t.md")
    assert refused.code == 2 and "will not overwrite t.md without --force" in refused.err


def test_json_alone_on_the_standard_output(here: Path, command: Command) -> None:
    found = command("inspect", "toy.txt", "--json", "-")
    assert found.code == 0
    assert json.loads(found.out)["words"] == 3
    assert "symbols 3" in found.err and "Next: truesource sample" in found.err
    assert not Path("-").exists()


def test_markdown_alone_on_the_standard_output(here: Path, command: Command) -> None:
    found = command("language", "dyck", "--table", "-", "--json", "d.json")
    assert found.code == 0
    assert found.out.startswith("| parameter | value |") and "dyck" in found.err
    assert json.loads(Path("d.json").read_text("utf-8"))["parameters"]["k"] == 2


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("--json", "-", "--table", "-"), "only one of --json and --table can have the standard output"),
        (("--table", "t.docx"), "--table writes .csv, .parquet, .tex or .md; rename the file"),
        (("--table", "t.csv", "--table", "text"), "rename the file (text)"),
    ],
)
def test_bad_files_are_refused(here: Path, command: Command, call: tuple[str, ...], said: str) -> None:
    found = command("bound", "toy.txt", "text", *call)
    assert found.code == 2 and said in " ".join(found.err.split())
    assert not Path("t.csv").exists()


@pytest.mark.parametrize("size", ["6", "6x", "6x4x2", "0x4", "6x400", "wide"])
def test_bad_sizes_of_figures_are_refused(here: Path, command: Command, size: str) -> None:
    found = command("evaluate", "pairs", "--oracle", "toy.txt", "--figure", "f.pdf", "--figure-size", size)
    assert found.code == 2 and "--figure-size is WIDTHxHEIGHT in inches" in found.err


def test_a_figure_needs_a_format(here: Path, command: Command) -> None:
    found = command("evaluate", "pairs", str(here), "--oracle", "toy.txt", "--figure", "f.jpg")
    assert found.code == 2 and "--figure writes .svg, .pdf or .png" in found.err


def draw() -> str:
    with figure(4.0, 3.0, "test") as drawn:
        drawn.subplots().plot([0.0, 1.0], [1.0, 0.0], label="a $b$")
        return to_svg(drawn, "test", "A line")


@pytest.mark.long
def test_figures_have_the_format_and_the_size_that_are_asked_for(tmp_path: Path) -> None:
    for name in ("f.svg", "f.pdf", "f.png"):
        write_figure(tmp_path / name, draw, (6.0, 2.0))
    box = ElementTree.parse(tmp_path / "f.svg").getroot().attrib["viewBox"]
    assert box == "0 0 432 144"  # points, 72 an inch
    pdf = (tmp_path / "f.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-") and re.search(rb"/MediaBox \[ ?0 0 432 144 ?\]", pdf)
    png = (tmp_path / "f.png").read_bytes()
    assert png.startswith(b"\x89PNG") and (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (1800, 600)
    write_figure(tmp_path / "own.svg", draw)
    assert ElementTree.parse(tmp_path / "own.svg").getroot().attrib["viewBox"] == "0 0 288 216"


@pytest.mark.long
@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_the_same_figure_has_the_same_bytes(tmp_path: Path, ending: str) -> None:
    for name in ("a", "b"):
        write_figure(tmp_path / f"{name}.{ending}", draw)
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
