"""The rows of ``data/reproductions/PAPER.yaml``: a table or figure of a paper, what to run for it, and what it claims.

A row either names what is ``run`` (a configuration in ``data/reproductions/runs``) or the ``command`` whose ``--json``
is read, or says why it is ``untested``. A **quantity** is a number that is read from the records of the run; it has a
value for each training seed, where its model has several. A **claim** is a statement of the paper about quantities.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder, digest_json
from truesource.grammar.support.records import explain, read_yaml
from truesource.grammar.support.settings import Settings, did_you_mean
from truesource.run.config import RunConfig, checked_config
from truesource.run.reading import read_settings
from truesource.studies.scaling.config import SweepConfig, load_sweep

Number = Annotated[float, Field(allow_inf_nan=False)]
Match = str | bool | int | float | list[str] | None  #: required value of a field of a record
NAME = r"^[a-z0-9][a-z0-9-]*$"
LAST = "last"  #: as the value of a field: its largest, among otherwise matching records
REMEDY = "correct it"
RUN_FOLDER = "RUN"  #: in a command, the folder of the run; all other variables come from the environment
_VARIABLE = re.compile(r"\$\{?([A-Z_]+)")


class Rank(Settings):
    """Spearman's correlation of quantities with as many others: of one model in several languages, say."""

    model_config = ConfigDict(populate_by_name=True)

    of: list[str] = Field(min_length=4, description="Quantities.")
    by: list[str] = Field(alias="with", min_length=4, description="As many others, in the same order.")

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        if len(self.of) != len(self.by):
            raise ValueError(f"of has {len(self.of)} quantities, with has {len(self.by)}; name as many")
        return self


class Quantity(Settings):
    """A number of a run: the one record that matches, or made of other quantities.

    Every key that is not listed here is a field that the record must have with this value; null: that it lacks.
    ``last`` is the largest value of a field. If several records match, the one with the fewest fields is taken: the
    total, not a part of it.

    Fields that all records have: ``evaluator`` (scores, or the key of an evaluator; grammar; cells of a sweep) and
    ``of``, the model as the configuration calls it. If a record has no field ``model`` of its own, it is the same.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Match]

    record: str | None = Field(None, description="Name of the record.")
    value: str | None = Field(None, description="Field of the record with the number (default: value).")
    run: str | None = Field(None, description="Which run, where the row has several; else a field of the record.")
    minus: tuple[str, str] | None = Field(None, description="A difference: the first quantity minus the second.")
    over: Any = Field(None, description="A ratio: the first quantity over the second; else a field of the record.")
    rank: Rank | None = Field(None, description="Spearman's correlation of some quantities with as many others.")
    published: Number | None = Field(None, description="The number that the paper reports.")

    @property
    def parts(self) -> Sequence[str] | None:
        """The quantities that it is made of; None if it is read from a record."""
        if self.rank is not None:
            return [*self.rank.of, *self.rank.by]
        return self.minus or (tuple(self.over) if self._is_ratio else None)

    @property
    def tested(self) -> dict[str, object]:
        """All that its value depends on, as JSON values."""
        return self.model_dump(mode="json", exclude={"published"} | ({"rank"} if self.rank is None else set()))

    @property
    def _is_ratio(self) -> bool:
        return self.record is None and isinstance(self.over, (list, tuple)) and len(self.over) == 2

    @property
    def fields(self) -> dict[str, object]:
        """The values that the fields of the record must have."""
        named_fields = {"name": self.record, "run": self.run, "over": self.over}
        return {k: v for k, v in named_fields.items() if v is not None} | (self.__pydantic_extra__ or {})

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.record is not None) + (self.minus is not None) + (self.rank is not None) + self._is_ratio != 1:
            raise ValueError("give record: NAME, or minus: [a, b], or over: [a, b], or rank: {of: [...], with: [...]}")
        return self


class Extreme(Settings):
    """A quantity that is smaller, or larger, than each of some others."""

    of: str = Field(description="The quantity.")
    among: list[str] = Field(min_length=1, description="The others.")


class Between(Settings):
    """A quantity in a range."""

    model_config = ConfigDict(populate_by_name=True)

    of: str = Field(description="The quantity.")
    low: Number | None = Field(None, alias="from", description="The lower end (default: none).")
    high: Number | None = Field(None, alias="to", description="The upper end (default: none).")

    @model_validator(mode="after")
    def _has_an_end(self) -> Self:
        if self.low is None and self.high is None:
            raise ValueError("give from, to, or both")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError("from must be less than to")
        return self


class Equal(Settings):
    """A quantity that is as large as a number or another quantity, within a tolerance."""

    of: str = Field(description="The quantity.")
    to: Number | str = Field(description="A number, or another quantity.")
    within: Annotated[Number, Field(gt=0)] = Field(description="How far from each other they may be.")


class Claim(Settings):
    """A statement of a paper about quantities: ``says`` in words, and one of the other keys as a test.

    It holds if the 95% interval of the tested number lies on the claimed side, does not hold if it lies on the other,
    and is undecided otherwise.
    """

    TESTS: ClassVar[tuple[str, ...]] = (
        "less",
        "increasing",
        "decreasing",
        "smallest",
        "largest",
        "positive",
        "negative",
        "between",
        "equal",
    )

    says: str = Field(description="The claim in words.")
    less: tuple[str, str] | None = Field(None, description="The first quantity is less than the second.")
    increasing: list[str] | None = Field(None, min_length=2, description="Each quantity is less than the next.")
    decreasing: list[str] | None = Field(None, min_length=2, description="Each quantity is more than the next.")
    smallest: Extreme | None = Field(None, description="A quantity is less than each of others.")
    largest: Extreme | None = Field(None, description="A quantity is more than each of others.")
    positive: str | None = Field(None, description="A quantity is more than 0.")
    negative: str | None = Field(None, description="A quantity is less than 0.")
    between: Between | None = Field(None, description="A quantity is in a range.")
    equal: Equal | None = Field(None, description="A quantity is as large as another, or as a number.")

    @property
    def test(self) -> str:
        """Name of its test."""
        return next(name for name in self.TESTS if getattr(self, name) is not None)

    @property
    def names(self) -> list[str]:
        """The quantities that it speaks of."""
        argument = getattr(self, self.test)
        if isinstance(argument, str):
            return [argument]
        if isinstance(argument, Extreme):
            return [argument.of, *argument.among]
        if isinstance(argument, Between):
            return [argument.of]
        if isinstance(argument, Equal):
            return [argument.of, *([argument.to] if isinstance(argument.to, str) else [])]
        return list(argument)

    @model_validator(mode="after")
    def _one_test(self) -> Self:
        tests = [name for name in self.TESTS if getattr(self, name) is not None]
        if len(tests) != 1:
            named = " and ".join(tests) if tests else "none"
            raise ValueError(f"give one of {', '.join(self.TESTS)}, not {named}")
        if len(set(self.names)) < len(self.names):
            raise ValueError("a quantity is named twice")
        return self


def _listed(value: Any) -> Any:
    """Return a list; one name becomes a list of one."""
    return [value] if isinstance(value, str) else value


class Row(Settings):
    """A table or figure of a paper, or a part of one that has numbers of its own."""

    name: str = Field(pattern=NAME, description="Name, as truesource reproduce takes it.")
    shows: str = Field(description="The table or figure as the paper counts; a part of one follows after a comma.")
    title: str = Field(description="What it is about.")
    published: str = Field(description="What the paper reports, in one or two sentences.")
    run: Annotated[list[str], BeforeValidator(_listed)] = Field(
        [], description="Configurations in data/reproductions/runs, of truesource run."
    )
    vary: dict[str, list[str]] = Field(
        {}, description="Runs of one configuration: a name for each, and the keys that it changes, as a.b=value."
    )
    study: str | None = Field(
        None,
        description="What else is measured in the folder of each run: a name of truesource.studies.reproduce.studies.",
    )
    command: list[str] | None = Field(
        None, min_length=1, description="A command without --json, of which the JSON is read; $RUN is the run folder."
    )
    models: list[str] | None = Field(None, description="Models of the configuration that it needs (default: all).")
    evaluation: list[str] | None = Field(
        None, description="Evaluators of the configuration that it needs; [] for the scores alone (default: all)."
    )
    quantities: dict[str, Quantity] = Field({}, description="What is read from the results.")
    claims: list[Claim] = Field([], description="What the paper says of the quantities.")
    differs: str | None = Field(None, description="Why our numbers differ: scale, data that are not public.")
    correction: str | None = Field(None, description="What is wrong with a published formula, and what is done here.")
    untested: str | None = Field(None, description="Why there is nothing to run.")

    @property
    def runs(self) -> bool:
        """True if there is something to run."""
        return self.untested is None

    @property
    def item(self) -> str:
        """The table or figure, without the part."""
        return self.shows.partition(",")[0].strip()

    @property
    def tested(self) -> dict[str, object]:
        """All of the row that its result depends on, as JSON values: not the words about it."""
        parts = self.model_dump(mode="json", include={"run", "command", "models", "evaluation"})
        parts |= {} if self.study is None else {"study": self.study}
        quantities = {name: quantity.tested for name, quantity in self.quantities.items()}
        claims = [c.model_dump(mode="json", exclude={"says"}, exclude_none=True) for c in self.claims]
        return {**parts, "quantities": quantities, "claims": claims}

    @field_validator("quantities")
    @classmethod
    def _parts_come_first(cls, quantities: dict[str, Quantity]) -> dict[str, Quantity]:
        above: set[str] = set()
        for name, quantity in quantities.items():
            if missing := [part for part in quantity.parts or () if part not in above]:
                raise ValueError(f"{name} is made of {missing[0]}, which is no quantity above it")
            above.add(name)
        return quantities

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.untested is not None:
            if self.run or self.command or self.quantities or self.claims:
                raise ValueError("untested: a row that says why there is nothing to run has no run and no claims")
            return self
        if not self.run and self.command is None:
            raise ValueError("give run, command or untested")
        if self.vary and len(self.run) != 1:
            raise ValueError("vary: name the one configuration that is run in several ways, as run")
        if not self.claims:
            raise ValueError("claims: a row that runs needs one or more")
        for number, claim in enumerate(self.claims):
            if unknown := [name for name in claim.names if name not in self.quantities]:
                raise ValueError(f"claims.{number}: there is no quantity {unknown[0]!r}")
        return self


class Paper(Settings):
    """The rows of a paper."""

    paper: str = Field(pattern=NAME, description="Name of the file: first author and year.")
    intro: str | None = Field(None, description="What all rows have in common, at the head of the page.")
    needs: dict[str, str] = Field(
        {}, description="Environment variables that rows read files from, each with what has to be there."
    )
    rows: list[Row] = Field(description="Tables and figures, in the order of the paper.")

    @field_validator("rows")
    @classmethod
    def _names_differ(cls, rows: list[Row]) -> list[Row]:
        for key in ("name", "shows"):
            seen: set[str] = set()
            for row in rows:
                value = getattr(row, key)
                if value in seen:
                    raise ValueError(f"two rows have the {key} {value!r}")
                seen.add(value)
        return rows


def reproductions_folder() -> Path:
    """Return the folder of rows, configurations and results."""
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
    """Return all papers by name.

    Raises:
        InputError: as `read_paper`, or two rows have one name.
    """
    by_name = {path.stem: read_paper(path) for path in sorted(reproductions_folder().glob("*.yaml"))}
    names = [row.name for paper in by_name.values() for row in paper.rows]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"rows of two papers are called {twice[0]}; rename one", reproductions_folder())
    return by_name


def find_rows(text: str) -> list[Row]:
    """Return the row of a name, or all rows of a paper that can be run.

    Raises:
        InputError: there is no such row or paper.
    """
    if text in papers():
        return [row for row in papers()[text].rows if row.runs]
    rows = {row.name: row for paper in papers().values() for row in paper.rows}
    if text in rows:
        return [rows[text]]
    names = [*papers(), *rows]
    raise InputError(
        f"there is no row or paper {text!r}{did_you_mean(text, names) or ';'} truesource reproduce --list names all",
        code="missing",
    )


def needs_of(row: Row) -> dict[str, str]:
    """Return the environment variables that a row reads files from, each with what has to be there.

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
    """Refuse a row that reads files that are not known here, before anything is run.

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
    """Return the configuration of a run.

    Raises:
        InputError: it does not exist.
    """
    path = reproductions_folder() / "runs" / f"{name}.yaml"
    if not path.is_file():
        raise InputError(f"there is no configuration {name} for this row", path, code="missing")
    return path


def result_file(row: Row) -> Path:
    """Return the committed result of a row; it may not be there."""
    return reproductions_folder() / "results" / f"{row.name}.json"


def _named(message: str, values: dict[object, object]) -> str:
    """Return a message with the name of its row: ``rows.3.claims`` becomes ``rows.3 (jz-table-1).claims``."""
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
        """Return the folder that it runs in."""
        return runs / self.config.name


def compose(row: Row, overrides: list[str] | None = None) -> list[Composed]:
    """Return the configurations of a row: of `truesource run` with the models and evaluators that it names, and sweeps.

    Args:
        row: a row that runs.
        overrides: ``a.b=value``, of all its configurations.

    Raises:
        InputError: a configuration is not there or wrong, or lacks a model or evaluator of the row.
    """
    settings = overrides or []
    if not row.vary:
        return [Composed(name, _config(row, name, settings)) for name in row.run]
    (base,) = row.run
    return [
        Composed(name, _config(row, base, [*changes, *settings, f"name={base}-{name}"]))
        for name, changes in row.vary.items()
    ]


def digest_of(row: Row, composed: list[Composed]) -> str:
    """Return the digest of everything that the result of a row depends on."""
    configs = {
        each.name: each.config.model_dump(mode="json", exclude={"title"}, exclude_none=True) for each in composed
    }
    return digest_json({"row": row.tested, "configurations": configs})


def _config(row: Row, name: str, overrides: list[str]) -> RunConfig | SweepConfig:
    path = config_file(name)
    values = read_settings(path, overrides)
    if "axes" in values:
        return load_sweep(path, overrides)
    from truesource.evaluation.evaluators import EVALUATORS

    values["models"] = _models(row, values.get("models") or [], path)
    values["evaluation"] = _evaluation(row, values.get("evaluation") or {}, path)
    return checked_config(values, path, EVALUATORS)


def _models(row: Row, models: list[Any], path: Path) -> list[Any]:
    if row.models is None:
        return models
    by_name = {model.get("name"): model for model in models if isinstance(model, dict)}
    if unknown := [name for name in row.models if name not in by_name]:
        raise InputError(f"{row.name}: models: the configuration has no model {unknown[0]}", path)
    return [model for name, model in by_name.items() if name in row.models]


def _evaluation(row: Row, evaluation: dict[str, object], path: Path) -> dict[str, object]:
    from truesource.evaluation.evaluators import EVALUATORS

    if row.evaluation is None:
        return evaluation
    names = {each.name for each in EVALUATORS}
    if unknown := [name for name in row.evaluation if name not in names]:
        raise InputError(f"{row.name}: evaluation: there is no evaluator {unknown[0]}; there are {', '.join(names)}")
    selected = {key: value for key, value in evaluation.items() if key not in names or key in row.evaluation}
    return {**dict.fromkeys(row.evaluation, True), **selected}
