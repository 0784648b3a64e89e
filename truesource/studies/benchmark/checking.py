"""Checking a file of results: one of its cells computed again."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from truesource.evaluation.show.table import ReportTable, TableRow, number_cell
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.parallel import Share, Workers
from truesource.studies.benchmark.results import BenchmarkCell, BenchmarkModel, BenchmarkResults
from truesource.studies.benchmark.run import Selection, execute
from truesource.studies.benchmark.standings import cells_of, share_sums
from truesource.studies.benchmark.suite import TRAINED, Candidate, Suite

EXACT = 1e-9  #: relative difference of sums up to which they are equal
SPREADS = 4.0  #: standard deviations over seeds that a cell of another machine may differ by


@dataclass(frozen=True)
class CheckedCell:
    """A cell of a file and the same cell computed here."""

    model: str
    language: str
    seed: int
    values: Mapping[str, tuple[float, float]]  #: by measure: of the file, and here
    difference: float  #: largest relative difference of the sums of KL in blocks
    spread: float | None  #: standard deviation of the share over the seeds of the file; None: there is one seed

    def as_record(self) -> dict[str, object]:
        """Return the comparison as JSON values; for each measure, the value of the file and the new one."""
        return {
            "model": self.model,
            "language": self.language,
            "seed": self.seed,
            "measures": {name: {"in_file": there, "here": here} for name, (there, here) in self.values.items()},
            "largest_relative_difference": self.difference,
            "spread": self.spread,
            "agrees": self.agrees,
        }

    @property
    def exact(self) -> bool:
        """True if all sums are equal but for rounding."""
        return self.difference <= EXACT

    @property
    def agrees(self) -> bool:
        """True if they are equal, or the shares differ by no more than seeds do."""
        here, there = self.values["share"]
        return self.exact or (self.spread is not None and abs(here - there) <= SPREADS * self.spread)

    @property
    def verdict(self) -> str:
        """Verdict in a sentence."""
        what = f"{self.model} on {self.language}, seed {self.seed}"
        if self.exact:
            return f"{what}: the same numbers (largest relative difference {self.difference:.1e})."
        gap = abs(self.values["share"][0] - self.values["share"][1])
        if self.spread is None:
            return f"{what}: other numbers (shares differ by {gap:.2g}); one seed does not tell how much they may."
        holds = "within" if self.agrees else "beyond"
        return (
            f"{what}: other numbers; shares differ by {gap:.2g}, {holds} {SPREADS:g} standard deviations over seeds"
            f" ({self.spread:.2g}). Versions or the machine may differ."
        )


def check_cell(suite: Suite, results: BenchmarkResults, which: str | None) -> CheckedCell:
    """Compute a cell again, in a temporary folder.

    Args:
        suite: that the results are of.
        results: a file of results.
        which: ``LANGUAGE/MODEL/SEED``; None: the first cell that is trained.

    Raises:
        InputError: there is no such cell, or the model cannot be made here.
    """
    model, cell = _chosen(results, which)
    if model["architecture"] == TRAINED:
        raise InputError(f"{model['name']} was trained elsewhere, so it cannot be trained again here", code="trained")
    candidate = Candidate(model["name"], model["architecture"], _section(model, "model"), _section(model, "training"))
    with tempfile.TemporaryDirectory(prefix="truesource-check-") as folder:
        selection = Selection(suite, [candidate], [cell["language"]], [cell["seed"]])
        outcome = execute(selection, Path(folder) / "results", workers=Workers(1), share=Share())
        if outcome.failures:
            raise InputError(outcome.failures[0].reason)
        recomputed = next(each for each in outcome.results["models"] if each["objective"] == model["objective"])
        again = recomputed["cells"][0]
        return _compared(results, outcome.results, model, cell, again)


def _compared(
    results: BenchmarkResults,
    here: BenchmarkResults,
    model: BenchmarkModel,
    cell: BenchmarkCell,
    again: BenchmarkCell,
) -> CheckedCell:
    old, new = np.array(cell["test"]["kl"]), np.array(again["test"]["kl"])
    sums = share_sums(results, model, cell["language"])
    assert sums is not None
    shares = 1.0 - sums.values
    information = float(sum(here["languages"][cell["language"]]["truth"][model["objective"]]["test"]["information"]))
    return CheckedCell(
        model=model["name"],
        language=cell["language"],
        seed=cell["seed"],
        values={
            "share": (1.0 - float(old.sum()) / information, 1.0 - float(new.sum()) / information),
            "wrong": (cell["test"]["wrong"], again["test"]["wrong"]),
            "calibration": (cell["calibration"], again["calibration"]),
        },
        difference=float(np.max(np.abs(new - old) / np.maximum(np.abs(old), 1e-6))),
        spread=float(shares.std(ddof=1)) if len(shares) > 1 else None,
    )


def checked_table(checked: CheckedCell) -> ReportTable:
    """Return the measures of the file and the recomputed ones."""
    rows = [
        TableRow([name, number_cell(there, ".9f"), number_cell(here, ".9f"), number_cell(here - there, "+.1e")])
        for name, (there, here) in checked.values.items()
    ]
    return ReportTable(columns=("measure", "in the file", "computed here", "difference"), rows=rows)


def _section(model: BenchmarkModel, name: str) -> dict[str, object]:
    section = model["settings"].get(name, {})
    if not isinstance(section, dict):
        raise InputError(f"the settings of {model['name']} are not a mapping, so it cannot be trained again")
    return section


def _chosen(results: BenchmarkResults, which: str | None) -> tuple[BenchmarkModel, BenchmarkCell]:
    cells = {
        f"{cell['language']}/{model['name']}/{cell['seed']}": (model, cell)
        for model in reversed(results["models"])
        for name in results["languages"]
        for cell in cells_of(model, name)
    }
    if which is None:
        trained = [(model, cell) for model, cell in reversed(cells.values()) if cell["steps"] > 0]
        if not trained:
            raise InputError("these results have no trained model; name a cell with --cell", code="no-cell")
        return trained[0]
    if which not in cells:
        raise InputError(
            f"there is no cell {which!r}; write LANGUAGE/MODEL/SEED, such as {next(iter(cells), 'brackets/gpt2/1')}",
            code="no-cell",
        )
    return cells[which]
