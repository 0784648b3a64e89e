"""The gallery of languages: the page has every language as it is now, with numbers of its present settings."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
from program import program

from truesource.grammar.languages import grammars, languages, parameters, parse, reference
from truesource.grammar.tree import Tree

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    return program("gallery")


@pytest.mark.parametrize("name", languages())
def test_the_page_has_the_language_and_its_parameters(name: str) -> None:
    page = (ROOT / "docs" / "gallery" / "languages.md").read_text()
    assert f"\n## {name}\n" in page
    assert (ROOT / "docs" / "gallery" / f"{name}.md").read_text() in page
    for row in parameters(parse(name)[1]):
        line = f"| `{row.key}` | {row.value or 'none'} | {row.values} | {row.meaning} |"
        assert line in page, "the page is old; run benchmarks/gallery.py page"
    assert (ROOT / "docs" / "gallery" / f"{name}.svg").is_file()
    assert name in grammars() or f"]({name}.svg)" in page


def test_numbers_are_those_of_the_defaults(gallery: ModuleType) -> None:
    numbers = json.loads((ROOT / "docs" / "gallery" / "numbers.json").read_text())
    assert list(numbers) == sorted(gallery.ENTRIES)
    for name, row in numbers.items():
        assert row["language"] == reference(*parse(name))
        assert row["language"] in row["signature"]
        assert row["kl"]["low"] <= row["kl"]["value"] <= row["kl"]["high"]


def test_symbols_of_binarisation_are_not_drawn(gallery: ModuleType) -> None:
    tree = Tree("S", (Tree("A", ("a",)), Tree("@S", (Tree("B", ("b",)), Tree("C", ("c",))))))
    assert "@" not in gallery.drawn_tree(tree)
    assert "B" in gallery.drawn_tree(tree)
