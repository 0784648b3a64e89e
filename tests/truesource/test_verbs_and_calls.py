"""Every verb ends in a call: its body calls the function that the public call calls, or is."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import truesource
from truesource.cli.app import CALLS, GROUP, VERBS
from truesource.evaluation.evaluators import EVALUATORS

WITHOUT_CALL = {"new"}  #: verbs that write files to edit


def test_every_verb_names_its_call() -> None:
    assert {*CALLS, *WITHOUT_CALL, GROUP} == VERBS.keys()


@pytest.mark.parametrize("verb", CALLS)
def test_the_body_of_a_verb_calls_what_the_public_call_calls(verb: str) -> None:
    public, shared = CALLS[verb]
    assert shared in called(*modules_of(VERBS[verb][0])), f"truesource {verb} does not call {shared}"
    function = named(public)
    if function is not named(shared):
        module = importlib.import_module(function.__module__)
        inside = f"{module.__name__}.{shared.rpartition('.')[2]}"
        assert shared == inside or shared in called(*reachable(module)), f"{public} does not call {shared}"


@pytest.mark.parametrize("name", [each.name for each in EVALUATORS if not each.verb])
def test_a_verb_of_an_evaluator_measures_by_the_call(name: str) -> None:
    evaluator = next(each for each in EVALUATORS if each.name == name)
    if evaluator.declared:
        assert "truesource.evaluation.calls.measure" in called("truesource.cli.evaluate")
        assert "measure" in vars(importlib.import_module("truesource.evaluation.calls"))
    else:
        assert f"truesource.evaluation.{name}.call.evaluate" in called(f"truesource.cli.{name}")


def named(path: str) -> Any:
    """Return what a dotted path names."""
    module, _, name = path.rpartition(".")
    home = truesource if module == "truesource" else importlib.import_module(module)
    return getattr(home, name)


def modules_of(verb: str) -> list[str]:
    """Return the module of a verb, and the modules of the command that it imports from, over any number of steps."""
    reached, left = [], [verb]
    while left:
        name = left.pop()
        if name in reached:
            continue
        reached.append(name)
        left += [
            home for home, _ in imported(name) if home.startswith("truesource.cli.") and home != "truesource.cli.app"
        ]
    return reached


def reachable(module: ModuleType) -> list[str]:
    """Return a module, and the modules that it imports from."""
    homes = {home for home, _ in imported(module.__name__) if home.startswith("truesource.")}
    return [module.__name__, *sorted(homes)]


def called(*modules: str) -> set[str]:
    """Return the functions of other modules that modules call, as dotted paths."""
    found = set()
    for name in modules:
        tree, homes = tree_of(name), {local: home for home, local in imported(name)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                root = node.func
                while isinstance(root, ast.Attribute):
                    root = root.value  # type: ignore[assignment]
                if isinstance(root, ast.Name) and root.id in homes:
                    found.add(f"{homes[root.id]}.{original(tree, root.id)}")
    return found


def original(tree: ast.Module, local: str) -> str:
    """Return the name that a local name was imported under."""
    return next(
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if local in (alias.asname, alias.name)
    )


def imported(module: str) -> list[tuple[str, str]]:
    """Return the home and the local name of everything that a module imports by ``from``."""
    return [
        (node.module or "", alias.asname or alias.name)
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


def tree_of(module: str) -> ast.Module:
    """Parse the source of a module."""
    file = importlib.import_module(module.partition(":")[0]).__file__
    assert file is not None
    return ast.parse(Path(file).read_text(encoding="utf-8"))
