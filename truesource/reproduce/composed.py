"""What a row runs: its configurations, cut down to what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json
from truesource.grammar.support.records import explain
from truesource.reproduce.packaged import config_file
from truesource.reproduce.rows import Row
from truesource.run.config import RunConfig, config_class
from truesource.run.reading import read_settings
from truesource.sweep.config import SweepConfig, load_sweep


@dataclass(frozen=True)
class Composed:
    """A configuration of a row."""

    name: str  #: in the row
    config: RunConfig | SweepConfig

    def folder(self, runs: Path) -> Path:
        """Where it runs."""
        return runs / self.config.name


def compose(row: Row, overrides: list[str] | None = None) -> list[Composed]:
    """The configurations of a row: of `truesource run` with the models and evaluators that it names, and sweeps.

    Args:
        row: that runs.
        overrides: ``a.b=value``, of all its configurations.

    Raises:
        InputError: a configuration is not there or wrong, or lacks a model or evaluator of the row.
    """
    return [Composed(name, _config(row, name, overrides)) for name in row.run]


def digest_of(row: Row, composed: list[Composed]) -> str:
    """Of all that the result of a row depends on."""
    configs = {each.name: each.config.model_dump(mode="json", exclude={"title"}) for each in composed}
    return digest_json({"row": row.tested, "configurations": configs})


def _config(row: Row, name: str, overrides: list[str] | None) -> RunConfig | SweepConfig:
    path = config_file(name)
    values = read_settings(path, overrides)
    if "axes" in values:
        return load_sweep(path, overrides)
    from truesource.evaluators import EVALUATORS

    values["models"] = _models(row, values.get("models") or [], path)
    values["evaluation"] = _evaluation(row, values.get("evaluation") or {}, path)
    try:
        config = config_class(EVALUATORS)(**values)
    except ValidationError as error:
        raise InputError(explain(error, model=config_class(EVALUATORS)), path) from error
    for each in EVALUATORS:
        if config.evaluation.find(each.settings) is not None:
            try:
                each.check(config)
            except ValueError as error:
                raise InputError(str(error), path) from error
    return config


def _models(row: Row, models: list[Any], path: Path) -> list[Any]:
    if row.models is None:
        return models
    known = {model.get("name"): model for model in models if isinstance(model, dict)}
    if unknown := [name for name in row.models if name not in known]:
        raise InputError(f"{row.name}: models: the configuration has no model {unknown[0]}", path)
    return [model for name, model in known.items() if name in row.models]


def _evaluation(row: Row, evaluation: dict[str, Any], path: Path) -> dict[str, Any]:
    from truesource.evaluators import EVALUATORS

    if row.evaluation is None:
        return evaluation
    names = {each.name for each in EVALUATORS}
    if unknown := [name for name in row.evaluation if name not in names]:
        raise InputError(f"{row.name}: evaluation: there is no evaluator {unknown[0]}; there are {', '.join(names)}")
    kept = {key: value for key, value in evaluation.items() if key not in names or key in row.evaluation}
    return {**dict.fromkeys(row.evaluation, True), **kept}
