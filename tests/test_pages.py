"""Examples of concepts run, pictures are shown and small, links of README.md and CONTRIBUTING.md lead to files."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PICTURES = sorted((ROOT / "docs" / "images").iterdir())
LARGEST = 150_000  #: bytes of a PNG file


def linked(page: Path) -> set[Path]:
    """The files that a page links to or shows."""
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    return {(page.parent / target).resolve() for target in targets}


def test_every_picture_is_on_a_page() -> None:
    shown = set[Path]().union(*map(linked, PAGES))
    assert [picture.name for picture in PICTURES if picture not in shown] == []


def test_drawings_stand_by_themselves() -> None:
    """Without its namespace a browser shows no drawing that a page names."""
    drawings = [path for path in (ROOT / "docs").rglob("*.svg") if "_build" not in path.parts]
    assert drawings
    for path in drawings:
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg", path


def test_pictures_are_small() -> None:
    assert [picture.name for picture in PICTURES if picture.suffix == ".png" and picture.stat().st_size > LARGEST] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_to_files(name: str) -> None:
    found = linked(ROOT / name)
    assert found and [target for target in found if not target.exists()] == []


@pytest.mark.long
def test_examples_of_the_concepts_run() -> None:
    pages = [page for page in sorted((ROOT / "docs" / "concepts").glob("*.md")) if ">>> " in page.read_text("utf-8")]
    assert len(pages) >= 2
    assert [page.name for page in pages if doctest.testfile(str(page), module_relative=False).failed] == []
