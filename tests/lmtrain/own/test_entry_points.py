"""Architectures that installed packages offer by an entry point."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from own_code import EXAMPLES, STEPS, trained

from truesource.lmtrain import references
from truesource.lmtrain.model_registry import model_settings, settings_class
from truesource.lmtrain.models import load_model
from truesource.lmtrain.own.settings import OwnSettings


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package that offers the GRU of the documentation as ``mygru``."""
    package = tmp_path / "site" / "gru_package_for_tests"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(EXAMPLES.read_text())
    monkeypatch.syspath_prepend(str(package.parent))
    entry = EntryPoint("mygru", "gru_package_for_tests:GRU", "truesource.architectures")

    def entry_points(group: str, name: str) -> list[Any]:
        return [entry] if (group, name) == (entry.group, entry.name) else []

    monkeypatch.setattr(references, "entry_points", entry_points)
    return "mygru"


@pytest.mark.long
def test_its_name_trains_and_loads(offered: str, tmp_path: Path) -> None:
    steps = STEPS.model_copy(update={"max_steps": 2})
    model = trained(offered, tmp_path / "m", steps=steps, hidden=8)
    assert model.name == "mygru-hidden8-layers1-dropout0"
    assert load_model(f"mygru@{tmp_path / 'm'}", device="cpu").name == model.name
    assert load_model(f"gru_package_for_tests:GRU@{tmp_path / 'm'}", device="cpu").name == model.name


def test_other_names_are_refused() -> None:
    assert issubclass(settings_class("a.b:c"), OwnSettings)
    with pytest.raises(ValueError, match=r"file\.py:name"):
        model_settings("mygru")
