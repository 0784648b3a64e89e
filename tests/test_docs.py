"""The examples of the README and of the docstrings run as they stand."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_readme_examples_run() -> None:
    failures, attempted = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert attempted > 10
    assert failures == 0


@pytest.mark.parametrize("name", ["truesource", "truesource.grammar.pcfg", "truesource.lmtrain.function_model"])
def test_docstring_examples_run(name: str) -> None:
    failures, attempted = doctest.testmod(importlib.import_module(name))
    assert attempted > 0
    assert failures == 0


def test_the_readme_names_every_verb() -> None:
    from truesource.cli.app import VERBS

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in VERBS:
        assert f"`truesource {name}" in readme
