"""Running a row, reading its quantities and testing its claims."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.show.records import REMEDY, ComparedRow, StagesShown
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import read_record
from truesource.lmtrain.training_record import training_seconds
from truesource.report.finished_run import COMPARISON
from truesource.run.config import RunConfig
from truesource.studies.reproduce.quantities import SEEDS, QuantityValue, judged, measured
from truesource.studies.reproduce.result import RowResult, result_of
from truesource.studies.reproduce.rows import Composed, Row, compose, digest_of
from truesource.studies.reproduce.run_records import RunRecord, of_command, of_run, of_sweep
from truesource.studies.scaling.config import SweepConfig
from truesource.studies.scaling.results import read_sweep

if TYPE_CHECKING:
    from truesource.evaluation.comparing import ModelScores


_ORDERED = ("kl", "relative_ppl")  #: measures with the order of the KL


def reproduce(row: Row, *, runs: Path, overrides: list[str] | None = None) -> RowResult:
    """Run what a row needs, and test its claims on the results.

    Stages that are up to date in the run folder are skipped, whichever row made them; files of other rows stay.

    Args:
        row: a row that can be run.
        runs: folder of all runs.
        overrides: ``a.b=value``, of its configurations.

    Raises:
        InputError: `truesource run` or the command fails, or no record matches a quantity.
    """
    composed = compose(row, overrides)
    seconds = 0.0
    for each in composed:
        _make(each, runs)
        seconds += seconds_of(each, runs)
    began = time.perf_counter()
    records = {each.name: [*_records(each, runs), *_studied(row, each, runs)] for each in composed}
    seconds += time.perf_counter() - began
    if row.command is not None:
        numbers, taken = _called(row, composed, runs)
        records, seconds = {row.name: numbers}, seconds + taken
    values = measured(row.quantities, records, _compared(composed, runs))
    contrasts = _contrasts(row, composed, runs)
    claims = [judged(claim, values, contrasts) for claim in row.claims]
    return result_of(row, values, claims, seconds=seconds, digest=digest_of(row, composed), overrides=overrides)


def _make(composed: Composed, runs: Path) -> None:
    """Run a configuration; what is up to date is skipped."""
    from truesource.run.experiment import execute

    config, base = composed.config, Path.cwd()
    if isinstance(config, RunConfig):
        execute(config, base=base, runs=runs)
        return
    _sweep(config, base, runs)


def _sweep(config: SweepConfig, base: Path, runs: Path) -> None:
    from truesource.grammar.support.parallel import Share
    from truesource.studies.scaling.report import write_results
    from truesource.studies.scaling.run import execute, truth_of

    folder, _, failures = execute(config, truth_of(config, base), base=base, runs=runs, share=Share())
    if failures:
        raise InputError(f"{failures[0].task}: {failures[0].reason}; repeat the command to try again", folder)
    write_results(read_sweep(folder), folder)


def _records(composed: Composed, runs: Path) -> list[RunRecord]:
    folder = composed.folder(runs)
    return of_run(folder, composed.config) if isinstance(composed.config, RunConfig) else of_sweep(folder)


def _studied(row: Row, composed: Composed, runs: Path) -> list[RunRecord]:
    """Return the records of the study of a row, and write them to ``study.json``."""
    if row.study is None:
        return []
    from truesource.grammar.support.atomic_files import write_json
    from truesource.studies.reproduce.studies import STUDIES

    assert isinstance(composed.config, RunConfig)
    folder = composed.folder(runs)
    records = STUDIES[row.study](folder, composed.config)
    write_json(folder / "study.json", [{**each.fields, "seed": each.seed} for each in records])
    return records


def seconds_of(composed: Composed, runs: Path) -> float:
    """Return how long the stages of a configuration took, or the training of its cells."""
    folder = composed.folder(runs)
    if not isinstance(composed.config, RunConfig):
        cells = sorted((folder / "cells").glob("*"))
        return sum(training_seconds(cell) or 0.0 for cell in cells if cell.is_dir() and cell.name[0] != ".")
    from truesource.run.experiment import plan

    stages = read_record(folder / "stages.json", StagesShown, remedy=REMEDY)["stages"]
    return sum(
        float(stages[stage.name].get("seconds") or 0.0) for stage in plan(composed.config) if stage.name in stages
    )


def _called(row: Row, composed: Sequence[Composed], runs: Path) -> tuple[list[RunRecord], float]:
    """Return the records that the command of a row writes as JSON, and the seconds that it took."""
    assert row.command is not None
    folders = {"RUN": str(composed[0].folder(runs))} if composed else {}
    arguments = [_filled(each, folders) for each in row.command]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        started = time.perf_counter()
        call = [sys.executable, "-m", "truesource", *arguments, "--json", str(file)]
        done = subprocess.run(call, capture_output=True, text=True)
        if done.returncode:
            message = done.stderr.strip().rpartition("\n")[2].removeprefix("truesource: ")
            raise InputError(f"{row.name}: truesource {' '.join(arguments)} failed: {message}")
        return of_command(file), time.perf_counter() - started


def _filled(argument: str, folders: Mapping[str, str]) -> str:
    """Return an argument with ``$RUN`` and environment variables filled in."""
    for name, value in folders.items():
        argument = argument.replace(f"${name}", value)
    filled = os.path.expandvars(argument)
    if unset := re.search(r"\$\{?(\w+)", filled):
        raise InputError(f"the command names {argument!r}, but the environment variable {unset[1]} is not set; set it")
    return filled


def _compared(composed: Sequence[Composed], runs: Path) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """Return the means over seeds that a run has computed, with intervals over sentences and seeds."""
    by_measure: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for each in composed:
        file = each.folder(runs) / COMPARISON
        if file.is_file() and isinstance(each.config, RunConfig):
            rows = read_record(file, list[ComparedRow], remedy=REMEDY)
            by_measure |= {(each.name, row["model"], row["name"]): row for row in rows if row.get("seeds", 1) > 1}
    return by_measure


class _Comparisons:
    """Paired differences of the models of a run, over sentences and training seeds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cache: dict[tuple[str, str], QuantityValue | None] = {}

    @cached_property
    def models(self) -> dict[str, ModelScores]:
        """The scores of all models by name."""
        from truesource.run.model_scores import read_runs

        return {model.name: model for model in read_runs([self.folder]).models}

    def difference(self, one: str, other: str) -> QuantityValue | None:
        """Return the KL of a model minus another's, nats a token; None if the two do not compare."""
        if (one, other) not in self._cache:
            self._cache[one, other] = self._difference(one, other)
        return self._cache[one, other]

    def _difference(self, one: str, other: str) -> QuantityValue | None:
        from truesource.evaluation.comparing import compare_models

        models = [self.models[name] for name in (other, one) if name in self.models]
        if len(models) < 2 or models[0].key != models[1].key:
            return None
        (pair,) = compare_models(models).differences
        contrast = pair.contrast
        seeds = any(len(model.seeds) > 1 for model in models)
        over = f"sentences and {SEEDS}" if seeds else "sentences"
        return QuantityValue(contrast.value, contrast.low, contrast.high, over=over)


def _contrasts(row: Row, composed: Sequence[Composed], runs: Path) -> Callable[[str, str], QuantityValue | None]:
    """Return a function to paired differences of quantities that are distances of models of one run from the truth."""
    comparisons = {
        each.name: _Comparisons(each.folder(runs)) for each in composed if isinstance(each.config, RunConfig)
    }

    def contrast(one: str, other: str) -> QuantityValue | None:
        quantities = [row.quantities[name] for name in (one, other)]
        if row.command is not None or len(composed) != 1 or composed[0].name not in comparisons:
            return None
        fields = [quantity.fields for quantity in quantities]
        plain = all(set(each) - {"evaluator"} == {"name", "model"} and each["name"] in _ORDERED for each in fields)
        scores = plain and all(each.get("evaluator", "scores") == "scores" for each in fields)
        if not scores or fields[0]["name"] != fields[1]["name"]:
            return None
        return comparisons[composed[0].name].difference(*(str(each["model"]) for each in fields))

    return contrast
