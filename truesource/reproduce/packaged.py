"""The papers that come with truesource, and the configurations of their rows."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder, digest_json
from truesource.grammar.support.records import explain, read_yaml
from truesource.grammar.support.settings import did_you_mean
from truesource.reproduce.rows import Paper, Row
from truesource.run.config import RunConfig, config_class
from truesource.run.reading import read_settings
from truesource.sweep.config import SweepConfig, load_sweep

REMEDY = "correct it"
RUN_FOLDER = "RUN"  #: in a command, the folder of the run; all other variables are those of the environment
_VARIABLE = re.compile(r"\$\{?([A-Z_]+)")


def reproductions_folder() -> Path:
    """Where rows, configurations and results are."""
    return data_folder() / "reproductions"


def read_paper(path: Path) -> Paper:
    """Read the rows of a paper.

    Raises:
        InputError: the file cannot be read, or a key or value is wrong; the message names the key.
    """
    values = read_yaml(path, what="the list of rows", remedy=REMEDY)
    if not isinstance(values, dict):
        raise InputError("the list of rows must be a mapping with the keys paper and rows", path)
    try:
        paper = Paper(**{str(key): value for key, value in values.items()})
    except ValidationError as error:
        raise InputError(_named(explain(error, model=Paper), values), path) from error
    if paper.paper != path.stem:
        raise InputError(f"paper: expected {path.stem}, as the file is called, not {paper.paper}", path)
    return paper


@cache
def papers() -> dict[str, Paper]:
    """All papers by name.

    Raises:
        InputError: as `read_paper`, or two rows have one name.
    """
    found = {path.stem: read_paper(path) for path in sorted(reproductions_folder().glob("*.yaml"))}
    names = [row.name for paper in found.values() for row in paper.rows]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"rows of two papers are called {twice[0]}; rename one", reproductions_folder())
    return found


def find_rows(text: str) -> list[Row]:
    """The row of a name, or all rows of a paper that can be run.

    Raises:
        InputError: there is no such row or paper.
    """
    if text in papers():
        return [row for row in papers()[text].rows if row.runs]
    rows = {row.name: row for paper in papers().values() for row in paper.rows}
    if text in rows:
        return [rows[text]]
    known = [*papers(), *rows]
    raise InputError(
        f"there is no row or paper {text!r}{did_you_mean(text, known) or ';'} truesource reproduce --list names all",
        code="missing",
    )


def needs_of(row: Row) -> dict[str, str]:
    """The environment variables that a row reads files from, each with what has to be there.

    Raises:
        InputError: the paper of the row does not say it.
    """
    paper = next(paper for paper in papers().values() if row in paper.rows)
    texts = [*(row.command or ()), *(config_file(name).read_text(encoding="utf-8") for name in row.run)]
    names = dict.fromkeys(name for text in texts for name in _VARIABLE.findall(text) if name != RUN_FOLDER)
    if unknown := [name for name in names if name not in paper.needs]:
        raise InputError(f"needs: {paper.paper} does not say what ${unknown[0]} of {row.name} is", code="missing")
    return {name: paper.needs[name] for name in names}


def require_needs(row: Row) -> None:
    """Stop where a row reads files that are not known here, before anything is run.

    Raises:
        InputError: an environment variable is not set.
    """
    for name, what in needs_of(row).items():
        if not os.environ.get(name):
            raise InputError(
                f"{row.name} ({row.shows}) needs files that do not come with truesource: set the environment variable"
                f" {name} to {what}",
                code="missing",
            )


def config_file(name: str) -> Path:
    """The configuration of a run.

    Raises:
        InputError: there is none.
    """
    path = reproductions_folder() / "runs" / f"{name}.yaml"
    if not path.is_file():
        raise InputError(f"there is no configuration {name} for this row", path, code="missing")
    return path


def result_file(row: Row) -> Path:
    """The committed result of a row; it may not be there."""
    return reproductions_folder() / "results" / f"{row.name}.json"


def _named(message: str, values: dict[object, object]) -> str:
    """The message with the name of the row that it counts: ``rows.3.claims`` becomes ``rows.3 (jz-table-1).claims``."""
    parts = message.split(".", 2)
    rows = values.get("rows")
    if len(parts) < 2 or parts[0] != "rows" or not isinstance(rows, list):
        return message
    number, colon, rest = parts[1].partition(":")
    if not number.isdecimal() or int(number) >= len(rows) or not isinstance(rows[int(number)], dict):
        return message
    tail = ".".join([colon + rest, *parts[2:]])
    return f"rows.{number} ({rows[int(number)].get('name', 'without name')}){tail}"


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
    configs = {
        each.name: each.config.model_dump(mode="json", exclude={"title"}, exclude_none=True) for each in composed
    }
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
