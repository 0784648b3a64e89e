"""Numbers that a run, a sweep or a command has measured, for the rows of papers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.token_table import read_token_record
from truesource.evaluation.show.records import REMEDY
from truesource.grammar.support.records import read_record
from truesource.report.finished_run import ScoresRecord
from truesource.run.config import RunConfig
from truesource.studies.scaling.results import read_sweep

if TYPE_CHECKING:
    from truesource.run.models import ModelEntry


_ENDS = ("_low", "_high")
_SUBSTATE = re.compile(r"-\d+$")


@dataclass(frozen=True)
class RunRecord:
    """A record: ``name``, ``value``, ``low``, ``high``, ``signature`` and what it is of."""

    fields: Mapping[str, Any]
    seed: int | None = None  #: of the network, if it is one of several


def models_of(folder: Path, config: RunConfig) -> Iterator[tuple[ModelEntry, Any]]:
    """Yield each model of a run, with its entry."""
    from truesource.lmtrain.models import load_model  # torch, for studies alone

    for entry in config.entries:
        yield entry, load_model(folder / "models" / entry.name)


def record_of(entry: ModelEntry, record: Mapping[str, Any]) -> RunRecord:
    """Return a record with the model as the configuration calls it, and its seed."""
    configured = getattr(entry, "replicate_of", entry.name)
    return RunRecord({**record, "of": configured, "model": configured}, getattr(entry, "seed", None))


def of_run(folder: Path, config: RunConfig) -> list[RunRecord]:
    """Return the records of a run that its configuration asks for: scores, each evaluator, the grammar.

    Other files in the folder, of other configurations of the same run, are ignored.
    """
    evaluators = ["scores", *(name for name in type(config.evaluation).model_fields if _is_evaluator(config, name))]
    records = [record for evaluator in evaluators for record in _of_evaluator(folder, evaluator, config.entries)]
    records += [RunRecord({"evaluator": "grammar", **record}) for record in _of_grammar(folder)]
    return records


def of_sweep(folder: Path) -> list[RunRecord]:
    """Return the records of a sweep: each cell with the seed of its network, and the fitted laws."""
    records = read_sweep(folder).records()
    seeds = [seed if isinstance(seed := record.get("seed"), int) else None for record in records]
    return [
        RunRecord({"evaluator": "cells", "of": r.get("model"), **r}, s) for r, s in zip(records, seeds, strict=True)
    ]


def of_command(file: Path) -> list[RunRecord]:
    """Return the records that a command has written to its JSON file."""
    content = read_record(file, Any, remedy="run the command again")
    return [RunRecord(record) for record in numbers_in(content)]


def numbers_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all records with a name and a value, however deep in a JSON value."""
    if isinstance(value, Mapping):
        if isinstance(value.get("name"), str) and "value" in value:
            yield value
        else:
            for inner in value.values():
                yield from numbers_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers_in(inner)


def _is_evaluator(config: RunConfig, name: str) -> bool:
    from truesource.evaluation.evaluators import EVALUATORS

    return name in {each.name for each in EVALUATORS} and getattr(config.evaluation, name) is not None


def _of_evaluator(folder: Path, evaluator: str, entries: Sequence[ModelEntry]) -> Iterator[RunRecord]:
    """Yield the records of one evaluator: of the models, and of files that belong to no model."""
    names = {entry.name: entry for entry in entries}
    places = ("*.parquet",) if evaluator == "scores" else ("*.json", "models/*.json")
    for file in sorted(file for place in places for file in (folder / evaluator).glob(place)):
        entry = names.get(file.stem)
        if entry is None and file.stem != "oracle" and _is_of_a_model(folder, file.stem):
            continue  # a model that the configuration does not ask for
        of_scores = evaluator == "scores"
        content: Any = read_token_record(file, ScoresRecord) if of_scores else read_record(file, Any, remedy=REMEDY)
        for record in _scores(content["record"]) if of_scores else numbers_in(content):
            named = str(record.get("model", record.get("source")))  # a source of text is a model, or none
            yield _labelled(record, evaluator, entry or names.get(named), names)


def _is_of_a_model(folder: Path, name: str) -> bool:
    return (folder / "models" / name).is_dir() or (folder / "loaded" / f"{name}.json").is_file()


def _labelled(
    record: Mapping[str, Any], evaluator: str, entry: ModelEntry | None, names: Mapping[str, ModelEntry]
) -> RunRecord:
    """Return a record with the model as the configuration calls it, and its seed."""
    if entry is None:
        return RunRecord({"evaluator": evaluator, **record})
    configured = getattr(entry, "replicate_of", entry.name)
    recorded = record.get("model", entry.name)
    model = configured if recorded in names else recorded
    return RunRecord({"evaluator": evaluator, "of": configured, **record, "model": model}, getattr(entry, "seed", None))


def _scores(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a record a number of a row of ``results.json``."""
    head = {key: row[key] for key in ("model", "objective", "signature") if key in row}
    for name, value in row.items():
        ends = any(name.endswith(end) and name.removesuffix(end) in row for end in _ENDS)
        if name in head or ends or isinstance(value, (str, bool)):
            continue
        yield {**head, "name": name, "value": value, "low": row.get(f"{name}_low"), "high": row.get(f"{name}_high")}


def _of_grammar(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the number of symbols that each label was split into, as ``substates``; a process has none."""
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.truth import load_truth

    file = folder / "grammar" / "grammar.npz"
    pcfg = load_truth(file) if file.is_file() else None
    if not isinstance(pcfg, PCFG):
        return
    labels = Counter(_SUBSTATE.sub("", symbol) for symbol in pcfg.symbols)
    for label, number in labels.items():
        yield {"name": "substates", "label": label, "value": number}
