"""Perplexities of all path estimators at several numbers of segmentations: table 1 of Cao & Rimell (2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from truesource.evaluation.core.score import Score
from truesource.evaluation.tokenisation.documents import Documents
from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS, ONE_BEST
from truesource.evaluation.tokenisation.perplexity import perplexities
from truesource.evaluation.tokenisation.pooling import pool
from truesource.evaluation.tokenisation.results import Evaluation
from truesource.evaluation.tokenisation.run_estimators import evaluate_runs
from truesource.evaluation.tokenisation.settings import EstimatorRun, EstimatorSettings
from truesource.generator.language_model import TokenisedModel
from truesource.grammar.conditioning import DEFAULT_SEED

METHODS_OF_TABLE = ("wr", "wor", "wor1", "nbest")
Consistency = Literal["consistent", "inconsistent"]
PREFIXES: Mapping[Consistency, str] = {
    "consistent": "consistent-",
    "inconsistent": "",
}  #: beginning of the estimators' names


@dataclass(frozen=True)
class GridCell:
    """One perplexity of the table."""

    cuts: Consistency  #: whether equal words of a document are segmented alike
    method: str
    samples: int
    ppl: Score | None  #: per word; None beyond the largest float
    improvement: Score | None  #: over T*, a share; None likewise


@dataclass(frozen=True, eq=False)
class Grid:
    """The table of one model and set of documents."""

    model: str
    one_best: Score | None  #: perplexity with T*, which the paper prints in brackets; None beyond the largest float
    cells: tuple[GridCell, ...]
    evaluation: Evaluation
    places: Mapping[
        str, tuple[Consistency, str, int]
    ]  #: by label of the run: consistency, method and samples of its cell

    def records(self) -> list[dict[str, Any]]:
        """One record a perplexity, for JSON; that of T* has no ``cuts`` and ``samples``."""
        head: dict[str, Any] = {"model": self.model, "method": ONE_BEST, "cuts": None, "samples": None}
        found = [] if self.one_best is None else [{**head, **self.one_best.as_record()}]
        for cell in self.cells:
            head = {"model": self.model, "method": cell.method, "cuts": cell.cuts, "samples": cell.samples}
            found += [{**head, **score.as_record()} for score in (cell.ppl, cell.improvement) if score is not None]
        return found


def perplexity_grid(
    model: TokenisedModel,
    documents: Documents,
    settings: EstimatorSettings,
    *,
    samples: Sequence[int] = (128,),
    seed: int = DEFAULT_SEED,
) -> Grid:
    """Perplexity per word with {consistent, inconsistent} segmentations by {wr, wor, wor1, nbest}, and with T*.

    Methods are left out at numbers of samples that are too few for them.

    Args:
        model: whose P is summed.
        documents: the texts.
        settings: of the estimators; ``samples`` is replaced.
        samples: numbers of segmentations scored for each document.
        seed: of the bootstrap.

    Raises:
        InputError: as `truesource.evaluation.tokenisation.run_estimators.evaluate_runs`.
    """
    places: dict[str, tuple[Consistency, str, int]] = {
        f"{prefix}{method}/{k}": (cuts, method, k)
        for cuts, prefix in PREFIXES.items()
        for k in samples
        for method in METHODS_OF_TABLE
        if k >= ESTIMATORS[prefix + method].fewest
    }
    runs = {
        label: EstimatorRun(PREFIXES[cuts] + method, replace(settings, samples=k))
        for label, (cuts, method, k) in places.items()
    }
    return _grid(evaluate_runs(model, documents, runs), places, seed)


def pooled_grid(grids: Mapping[str, Grid], *, seed: int = DEFAULT_SEED) -> Grid:
    """The table of the documents of several sets together.

    Args:
        grids: by name of the set, of one model with the same settings.
        seed: of the bootstrap.
    """
    first = next(iter(grids.values()))
    return _grid(pool({name: grid.evaluation for name, grid in grids.items()}), first.places, seed)


def _grid(evaluation: Evaluation, places: Mapping[str, tuple[Consistency, str, int]], seed: int) -> Grid:
    scores = perplexities(evaluation, seed)
    cells = tuple(
        GridCell(*place, scores[label].get("ppl"), scores[label].get("improvement")) for label, place in places.items()
    )
    return Grid(evaluation.model, scores[ONE_BEST].get("ppl"), cells, evaluation, places)
