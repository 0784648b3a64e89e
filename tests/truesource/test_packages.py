"""The five packages are one installation, and the front door shows what it promises."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import truesource

PACKAGES = ("truesource", "grammar", "generator", "lmtrain", "evaluation")
ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_all_packages_come_from_one_place() -> None:
    homes = {name: Path(str(importlib.import_module(name).__file__)).resolve().parent.parent for name in PACKAGES}
    assert len(set(homes.values())) == 1, homes


def test_the_version_is_that_of_the_project() -> None:
    assert truesource.__version__ == PROJECT["project"]["version"]


def test_the_wheel_holds_all_packages_and_the_data() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert set(wheel["packages"]) == set(PACKAGES)
    assert wheel["force-include"] == {"data": "truesource/data"}


@pytest.mark.parametrize("name", truesource.__all__)
def test_every_noun_exists(name: str) -> None:
    value = getattr(truesource, name)
    if name != "__version__":
        assert callable(value)
        assert value.__module__.split(".")[0] in PACKAGES
        assert value.__doc__


def test_the_nouns_are_listed_in_one_order_everywhere() -> None:
    assert set(truesource.__all__) == {*truesource._HOMES, "__version__"}
    assert dir(truesource) == sorted(truesource.__all__)


def test_an_unknown_noun_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Grammar'"):
        _ = truesource.Grammar


def test_importing_the_front_door_imports_nothing_behind_it() -> None:
    code = f"import sys, truesource; print(sorted(set(sys.modules) & {set(PACKAGES[1:]) | {'numpy', 'torch'}!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_layers_are_kept() -> None:
    found = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "0 broken" in found.stdout


def test_the_layer_contracts_name_all_packages() -> None:
    contracts = PROJECT["tool"]["importlinter"]
    assert set(contracts["root_packages"]) == set(PACKAGES)
    layers = next(c for c in contracts["contracts"] if c["type"] == "layers")["layers"]
    assert layers == ["truesource", "lmtrain | evaluation", "generator", "grammar"]
