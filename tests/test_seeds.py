"""Every seed that nobody chose is `DEFAULT_SEED`: in signatures, settings and verbs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from all_verbs import verbs

from truesource.grammar.support.settings import DEFAULT_SEED

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("grammar", "generator", "lmtrain", "evaluation", "truesource")
NAMES = {"seed", "seeds", "resampling", "bootstrap"}
BOUNDS = {"ge", "gt", "le", "lt", "min", "max", "min_length", "max_length"}


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not any(folder.is_symlink() for folder in path.parents):
                yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def defaults(tree: ast.AST) -> Iterator[tuple[int, str, ast.expr]]:
    """Line, name and default of every parameter and field that is a seed."""
    for node in ast.walk(tree):
        found: list[tuple[str, ast.expr | None]] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            given = node.args
            positional = [*given.posonlyargs, *given.args]
            last = positional[len(positional) - len(given.defaults) :]
            found = [(each.arg, value) for each, value in zip(last, given.defaults, strict=True)]
            found += [(each.arg, value) for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found = [(node.target.id, node.value)]
        for name, value in found:
            if value is not None and (name in NAMES or name.endswith("_seed")):
                yield value.lineno, name, value


def numbers(default: ast.expr) -> list[int]:
    """Whole numbers written in a default, bounds of its range left out."""
    if isinstance(default, ast.Call):
        inner = [*default.args, *(each.value for each in default.keywords if each.arg not in BOUNDS)]
        return [n for each in inner for n in numbers(each)]
    return [n.value for n in ast.walk(default) if isinstance(n, ast.Constant) and type(n.value) is int]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(x, seed=0): ...", [0]),
        ("def f(*, seed: int = DEFAULT_SEED, n: int = 3): ...", []),
        ("class A:\n    seed: int = 7", [7]),
        ("class A:\n    seed: int = Field(2, ge=0, lt=2**32)", [2]),
        ("class A:\n    seed: int = field(default=3)", [3]),
        ("class A:\n    seeds: list[int] = Field([DEFAULT_SEED], min_length=1)", []),
        ("def f(training_seed: int | None = None): ...", []),
    ],
)
def test_the_search_finds_numbers_and_nothing_else(code: str, expected: list[int]) -> None:
    assert [n for _, _, value in defaults(ast.parse(code)) for n in numbers(value)] == expected


@pytest.mark.long
def test_no_seed_has_a_default_of_its_own() -> None:
    found = [(path, *default) for path, tree in trees() for default in defaults(tree)]
    assert len(found) > 80
    own = [
        f"{path}:{line}: {name}"
        for path, line, name, value in found
        if numbers(value) or (isinstance(value, ast.Name) and value.id != "DEFAULT_SEED")
    ]
    assert own == []


@pytest.mark.long
def test_every_verb_with_a_seed_has_the_default() -> None:
    found = {name: option.default for name, command in verbs() for option in command.params if "--seed" in option.opts}
    assert found.pop("compare") is None, "that of the runs"
    assert len(found) > 15
    assert set(found.values()) == {DEFAULT_SEED}
