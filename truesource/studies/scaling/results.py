"""Results of a sweep: its cells, the fits, and records of all numbers with their signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict, override

from truesource.evaluation.core.score import Key, NoScore, Score, ScoreRecord, read_score
from truesource.evaluation.core.signature import SignatureKey, signature
from truesource.evaluation.measures.bootstrap import Interval
from truesource.evaluation.scaling.cells import ScalingCell, Scatter
from truesource.evaluation.scaling.fits import AxisFit, Fits, fit_all
from truesource.evaluation.scaling.losses import Losses
from truesource.grammar.support.archives import ArrayKind, read_arrays
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords, few_code
from truesource.grammar.support.records import STRICT, Count, FileName, read_record

MEASURES: tuple[Literal["ppl", "bound", "relative_ppl", "kl"], ...] = ("ppl", "bound", "relative_ppl", "kl")
_WHAT = "the file of the scores of this cell"
LEAST_SQUARES = "least-squares-of-logs"  #: fit of laws of more than two parameters, in signatures


@with_config(STRICT)
class IntervalRecord(TypedDict):
    """An `truesource.evaluation.measures.bootstrap.Interval`."""

    value: float
    low: float | None
    high: float | None


@with_config(STRICT)
class Measures(TypedDict):
    """The measures of a cell."""

    ppl: IntervalRecord
    bound: IntervalRecord
    relative_ppl: IntervalRecord
    kl: IntervalRecord


@with_config(STRICT)
class ParametersRecord(TypedDict):
    """Counts of parameters."""

    total: Count
    without_embeddings: Count


@with_config(STRICT)
class CostRecord(TypedDict):
    """The cost of a training, see `truesource.lmtrain.flops`."""

    parameters: ParametersRecord
    tokens: Count
    epochs: float
    steps: Count
    flops: Annotated[int, Field(ge=0)]
    rule: Annotated[float, Field(ge=0.0)]


@with_config(STRICT)
class Point(TypedDict):
    """A snapshot on the curve of a cell."""

    step: Count
    flops: Annotated[int, Field(ge=0)]
    kl: float


@with_config(STRICT)
class CellRecord(TypedDict):
    """``scores/<cell>.json``."""

    cell: FileName
    weights: str
    evaluation: str
    model: str
    sentences: Count
    seed: Count
    train_tokens: Count
    cost: CostRecord
    measures: Measures
    parts: dict[SignatureKey, Any]
    curve: list[Point]


def read_scores(target: Path) -> CellRecord | None:
    """Return the record of a cell; None if it is missing.

    Raises:
        InputError: it is damaged.
    """
    if not target.is_file():
        return None
    return read_record(target, CellRecord, what=_WHAT, remedy="delete it and it will be written again")


def read_sums(target: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the sums per sentence of a record, (3, N): `truesource.evaluation.measures.paired.Paired.table`.

    Raises:
        InputError: it is missing or damaged.
    """
    path = target.with_suffix(".npz")
    remedy = "delete it and its .json, and they will be written again"
    sums = read_arrays(path, {"sums": ArrayKind("f", (3, None))}, what=_WHAT, remedy=remedy)["sums"]
    if not np.isfinite(sums).all():
        raise InputError(f"{_WHAT} is damaged: it has a number that is not finite; {remedy}", path)
    return sums.astype(np.float64)


@with_config(STRICT)
class LineRecord(ScoreRecord):
    """The perplexity of the best predictor that sees k words, and that over the perplexity of the truth."""

    relative_ppl: float


@with_config(STRICT)
class PlanRecord(TypedDict):
    """``sweep.json``; the cells by name, each with the name of its shape."""

    title: str
    seed: Count
    replicates: Count
    evaluation: str
    cells: dict[FileName, str]
    lines: NotRequired[list[LineRecord]]


@dataclass(frozen=True, repr=False)
class Sweep(ResultRecords):
    """A sweep, finished or in part."""

    title: str
    rows: list[CellRecord]  #: one a cell, in order; ``model`` is the name of its shape
    missing: list[str]  #: cells that are not there yet
    cells: list[ScalingCell]
    losses: Losses | None  #: None without cells
    fits: Fits
    lines: Sequence[LineRecord] = ()  #: of the best predictors that see 0, 1, 2, ... words

    @property
    def unfinished(self) -> str:
        """Number of cells that are not finished, and of all cells: ``2 of 3``."""
        return f"{len(self.missing)} of {len(self.missing) + len(self.rows)}"

    @override
    def as_scores(self) -> list[Score | NoScore]:
        scores: list[Score | NoScore] = []
        head: dict[str, Key]
        for row in self.rows:
            head = {"cell": row["cell"], "model": row["model"], "sentences": row["sentences"], "seed": row["seed"]}
            for name in MEASURES:
                estimator = {"estimator": "paired"} if name == "kl" else {}
                scores.append(_score(head, name, Interval(**row["measures"][name]), {**row["parts"], **estimator}))
            counted = {**row["parts"], "flops": "matmul-and-convolution/multiply-add-2/forward-and-backward"}
            scores += [_score(head, name, value, counted) for name, value in counts_of(row).items()]
            for point in row["curve"]:
                at = {**head, "step": point["step"], "flops": point["flops"]}
                scores.append(_score(at, "kl", point["kl"], {**row["parts"], "estimator": "paired"}))
        for fit in self.fits.axes:
            scores += self._fit_scores(fit)
        scores += map(read_score, self.lines)
        joint = self.fits.joint
        if joint is not None:
            parts = self._parts("kl=A*N^-alpha+B*D^-beta", LEAST_SQUARES, joint.rows, joint.failed, joint.scatter)
            over = ["parameters_without_embeddings", "sentences"]
            head = {"fit": "joint", "over": over, "at_bound": joint.at_bound}
            if not joint.at_bound:
                scores += [_score(head, name, value, parts) for name, value in joint.intervals.items()]
            scores += [_score(head, "r2", joint.fit.r2, parts), _score(head, "residual", joint.fit.residual, parts)]
        return scores

    def _fit_scores(self, fit: AxisFit) -> list[Score]:
        head: dict[str, Key] = {"fit": "power_law", "over": fit.axis, "held": fit.held}
        parts = self._parts("kl=A*x^-alpha", "ml-of-logs", fit.rows, fit.failed, fit.scatter)
        values: dict[str, Interval | float | None] = {
            "coefficient": fit.coefficient,
            "exponent": fit.exponent,
            "r2": fit.fit.r2,
            "residual": fit.fit.residual,
            "lack_of_fit_p": fit.fit.lack_of_fit,
        }
        scores = [_score(head, name, value, parts) for name, value in values.items() if value is not None]
        unknown = fit.unknown
        if unknown is not None:
            head = {**head, "fit": "unknown_floor", "at_bound": unknown.fit.at_bound}
            parts = self._parts("loss=E+A*x^-alpha", LEAST_SQUARES, fit.rows, fit.failed, fit.scatter)
            values = {"floor_true": unknown.truth, "residual": unknown.fit.residual}
            if not unknown.fit.at_bound:
                values["floor"] = unknown.floor
                values["floor_error"] = unknown.error
                values["exponent"] = unknown.exponent
                values["coefficient"] = unknown.fit.law.coefficient
            scores += [_score(head, name, value, parts) for name, value in values.items() if value is not None]
        return scores

    def _parts(self, law: str, method: str, rows: tuple[int, ...], failed: int, scatter: Scatter) -> dict[str, object]:
        """Return the signature parts of a fit: the choices of its cells, and its own."""
        cell_parts = {key: value for key, value in self.rows[rows[0]]["parts"].items() if key != "ci"}
        kind = "seed-t" if scatter.replicated else "residual-t"
        ci = f"{kind}-and-sentence-bootstrap95/seed{self.fits.seed}/{self.fits.replicates - failed}"
        if self.losses is not None and self.losses.too_few:
            ci = f"none/{few_code()}"
        return {**cell_parts, "law": law, "fit": method, "cells": len(rows), "ci": ci}


def _score(head: Mapping[str, Key], name: str, value: Interval | float, parts: Mapping[str, object]) -> Score:
    ends = (value.low, value.high) if isinstance(value, Interval) else (None, None)
    number = value.value if isinstance(value, Interval) else value
    return Score(name, number, signature(parts), *ends, head)


def read_sweep(folder: Path) -> Sweep:
    """Read the finished cells of a sweep and fit them; nothing is trained.

    Raises:
        InputError: this is no sweep, something in it is damaged, or the cells were compared on different sentences.
    """
    plan = read_plan(folder)
    rows, sums, missing = [], [], []
    for cell_id in plan["cells"]:
        target = folder / "scores" / f"{cell_id}.json"
        record = read_scores(target)
        if record is None or record["evaluation"] != plan["evaluation"]:
            missing.append(cell_id)
            continue
        record["model"] = plan["cells"][cell_id]
        rows.append(record)
        sums.append(read_sums(target))
    cells = [_cell(row) for row in rows]
    losses = _losses(sums, folder) if sums else None
    if losses is None:
        fits = Fits([], None, [], 0, plan["seed"])
    else:
        fits = fit_all(cells, losses, seed=plan["seed"], replicates=plan["replicates"])
    return Sweep(plan["title"], rows, missing, cells, losses, fits, plan.get("lines", ()))


def counts_of(row: CellRecord) -> dict[str, float]:
    """Return the numbers of a cell that have no interval, by name."""
    cost = row["cost"]
    return {
        "parameters": cost["parameters"]["total"],
        "parameters_without_embeddings": cost["parameters"]["without_embeddings"],
        "tokens": cost["tokens"],
        "flops": cost["flops"],
        "flops_6nd": cost["rule"],
    }


def _cell(row: CellRecord) -> ScalingCell:
    total, without_embeddings = row["cost"]["parameters"]["total"], row["cost"]["parameters"]["without_embeddings"]
    flops = row["cost"]["flops"]
    return ScalingCell(row["cell"], row["model"], row["sentences"], row["seed"], total, without_embeddings, flops)


def _losses(sums: list[Any], folder: Path) -> Losses:
    table = np.stack(sums)  # (C, 3, N)
    scored = (table[:, 2] > 0.0).all(axis=0)
    if not scored.any():
        raise InputError(
            "no sentence was scored by all cells, so they cannot be compared; delete scores/ and run again", folder
        )
    table = table[:, :, scored]
    if np.abs(table[:, 1:] - table[:1, 1:]).max() > 1e-6:
        raise InputError("the cells were compared with different grammars; delete scores/ and run again", folder)
    return Losses(table[:, 0], table[0, 1], table[0, 2])


def read_plan(folder: Path) -> PlanRecord:
    """Return ``sweep.json``: title, seed, replicates, digest of the evaluation, and the shape of each cell.

    Raises:
        InputError: it is missing or damaged.
    """
    path = folder / "sweep.json"
    if not folder.is_dir() or not path.is_file():
        raise InputError(
            "this is not the folder of a sweep: sweep.json is missing; name the configuration instead", folder
        )
    return read_record(path, PlanRecord, remedy="run the sweep again from its configuration")
