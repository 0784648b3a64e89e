"""The shape of the code: what `benchmarks/house.py` measures and what must stay so."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", ROOT / "benchmarks" / "house.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["house"] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def code(house: ModuleType, root: Path) -> list[object]:
    return [module for package in house.PACKAGES for module in house.modules(root, package)]


def test_no_modules_import_each_other(house: ModuleType) -> None:
    graph = house.imports(code(house, ROOT))
    assert graph.number_of_edges() > 1000
    assert [part for part in nx.strongly_connected_components(graph) if len(part) > 1] == []


def test_no_two_classes_have_one_name(house: ModuleType) -> None:
    names = Counter(house.classes(code(house, ROOT)))
    assert len(names) > 300
    assert [name for name, n in names.items() if n > 1] == []


def test_array_types_have_one_file(house: ModuleType) -> None:
    defined = [
        module.name
        for module in code(house, ROOT)
        if re.search(r"^\w+ = NDArray\[np\.(float64|int64|int32|bool_)\]$", module.path.read_text(), re.MULTILINE)
    ]
    assert defined == ["grammar.arrays"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("from truesource.grammar.b import B\n", "from truesource.grammar import a\n"),
        ("import truesource.grammar.b\n", "def f():\n    from truesource.grammar.a import A\n"),
        ("from .b import B\n", "if TYPE_CHECKING:\n    from truesource.grammar.a import A\n"),
    ],
)
def test_circles_are_found_wherever_the_import_stands(
    house: ModuleType, tmp_path: Path, first: str, second: str
) -> None:
    for package in house.PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / "grammar" / "a.py").write_text(first)
    (tmp_path / "grammar" / "b.py").write_text(second)
    circles = nx.strongly_connected_components(house.imports(code(house, tmp_path)))
    assert {"grammar.a", "grammar.b"} in circles
