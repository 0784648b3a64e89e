"""The shape and the order of the code: what `benchmarks/house.py`, `rooms.py` and `wording.py` measure.

`tests/house.json` holds numbers that may only fall: a number that is lower now is written down with
``python benchmarks/ratchet.py``.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import networkx as nx
import pytest
from program import program

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def house() -> ModuleType:
    return program("house")


@pytest.fixture(scope="module")
def every(house: ModuleType) -> list[Any]:
    return list(house.code(ROOT))


def test_no_modules_import_each_other(house: ModuleType, every: list[Any]) -> None:
    graph = house.imports(every)
    assert graph.number_of_edges() > 1000
    assert [part for part in nx.strongly_connected_components(graph) if len(part) > 1] == []


def test_array_types_have_one_file(every: list[Any]) -> None:
    defined = [
        module.name
        for module in every
        if re.search(r"^\w+ = NDArray\[np\.(float64|int64|int32|bool_)\]$", module.path.read_text(), re.MULTILINE)
    ]
    assert defined == ["grammar.support.arrays"]


def test_no_class_name_is_used_twice(house: ModuleType, every: list[Any]) -> None:
    assert [name for name, n in Counter(house.classes(every)).items() if n > 1] == []


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
    circles = nx.strongly_connected_components(house.imports(house.code(tmp_path)))
    assert {"grammar.a", "grammar.b"} in circles


@pytest.mark.long
def test_numba_is_imported_in_one_place_and_kernels_import_kernels(every: list[Any]) -> None:
    """Types under ``TYPE_CHECKING`` apart. The cache of a kernel would not see a constant of another file change."""
    kernels = 0
    for module in every:
        if module.name == "grammar._kernels.kernel":
            continue
        names = imported(module.tree)
        assert "numba" not in {source.partition(".")[0] for source, _ in names}, module.name
        if module.kernel:
            kernels += 1
            for source, name in names:
                own = source.startswith("truesource.") and "_kernels" in source
                assert own or source in ("__future__", "math", "typing", "numpy"), (module.name, source)
                assert not (own and name.isupper()), (module.name, source, name)
    assert kernels > 25


def imported(tree: ast.Module) -> list[tuple[str, str]]:
    """Module and name of every import, but for types."""
    found: list[tuple[str, str]] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            found += [(name.name, "") for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.module or "", name.name) for name in node.names]
        waiting += ast.iter_child_nodes(node)
    return found


def test_kernels_have_few_parameters_and_no_classes_beside_them(house: ModuleType, every: list[Any]) -> None:
    """The cache of a kernel names the classes of its arguments, so they stand in files that are part of its key."""
    for module in every:
        if module.kernel:
            assert all(house.parameters(function) <= 12 for function in module.functions()), module.name
            compiled = any(function.decorator_list for function in module.functions())
            assert not (compiled and any(isinstance(node, ast.ClassDef) for node in module.tree.body)), module.name


def test_functions_are_short(house: ModuleType, every: list[Any]) -> None:
    """At most 60 lines without the docstring; the reader of brackets is one automaton with much state."""
    long = {
        f"{module.name}.{function.name}"
        for module in every
        if not module.kernel
        for function in module.functions()
        if house.code_length(function) > 60
    }
    assert long <= {"grammar.treebank.brackets.run"}


def test_programs_beside_the_package_import_what_is_there() -> None:
    """Nothing else runs the benchmarks before they are needed."""
    for file in sorted((ROOT / "benchmarks").rglob("*.py")):
        for source, name in imported(ast.parse(file.read_text(encoding="utf-8"))):
            if source.startswith("truesource") and name:
                module = importlib.import_module(source)
                assert hasattr(module, name) or importlib.util.find_spec(f"{source}.{name}"), (file.name, name)


def test_numbers_only_fall(every: list[Any]) -> None:
    """A number that falls is written down at once, so that it cannot rise again."""
    ratchet = program("ratchet")
    allowed = json.loads(ratchet.FILE.read_text(encoding="utf-8"))
    measured = ratchet.numbers(every)
    assert {name: n for name, n in measured.items() if n > allowed[name]} == {}
    lower = {name: n for name, n in measured.items() if n < allowed[name] and name not in ratchet.LOOSE}
    assert lower == {}, "lower than before: run `python benchmarks/ratchet.py`, which writes them down"


PLANTED = {
    "arrows that run back up": ("grammar/planted.py", "from truesource.generator.corpus import Corpus\n"),
    "modules of two subjects": (
        "grammar/planted.py",
        "def first():\n" + "    pass\n" * 50 + "\n\ndef second():\n" + "    pass\n" * 50,
    ),
    "docstrings with an elliptic opening": ("grammar/planted.py", '"""What a grammar knows."""\n'),
    "docstrings that name what is gone": ("grammar/planted.py", '"""Use `vanished_function` for this."""\n'),
    "modules with late constants": ("grammar/planted.py", "def first():\n    pass\n\n\nMOST = 3\n"),
    "assignments to a vague name": ("grammar/planted.py", "found = 3\n"),
    "private phrases": ("grammar/planted.py", '"""Return the rules that stand in a file."""\n'),
    "lines with an untyped record": ("grammar/planted.py", "def first() -> dict[str, Any]:\n    return {}\n"),
    "typed dictionaries": ("grammar/planted.py", "class First(TypedDict):\n    a: int\n"),
    "methods named records": ("grammar/planted.py", "class First:\n    def records(self) -> None: ...\n"),
    "evaluators in two places": ("truesource/run/pplu.py", ""),
    "folders of verbs": ("lmtrain/planted.py", "def command() -> None:\n    pass\n"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", PLANTED)
def test_each_number_rises_when_its_fault_is_planted(
    house: ModuleType, every: list[Any], tmp_path: Path, name: str
) -> None:
    file, text = PLANTED[name]
    for package in house.PACKAGES:
        (tmp_path / package).mkdir()
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text, encoding="utf-8")
    measure = program("ratchet").MEASURES[name]
    assert measure([*every, *house.code(tmp_path)]) == measure(every) + 1
