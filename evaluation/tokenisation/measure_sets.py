"""Several sets of texts side by side: what is measured of each, and of all of them together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from truesource.evaluation.tokenisation.further_tables import make_tables
from truesource.evaluation.tokenisation.measure import measure, measured_of
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.evaluation.tokenisation.builder import LatticeBuilder
    from truesource.evaluation.tokenisation.documents import Documents
    from truesource.evaluation.tokenisation.further_tables import Tables
    from truesource.evaluation.tokenisation.grid import Grid
    from truesource.evaluation.tokenisation.measure import Measured
    from truesource.evaluation.tokenisation.settings import EstimatorSettings, Wanted
    from truesource.generator.language_model import TokenisedModel

POOLED = "pooled"  #: stands for all sets together where a set's name is expected
_NAME = re.compile(r"[^\W_][\w.-]*")


@dataclass(frozen=True, eq=False)
class MeasuredSets:
    """Everything that was measured of one model on several sets of texts."""

    sets: Mapping[str, Measured]  #: by name; the first is the text that all else is measured on
    pooled: Measured  #: all documents together; its gaps know their sets
    tables: Mapping[str, Tables]  #: of each set, by name: those that are of texts alone
    pooled_grid: Grid | None  #: perplexities of the published estimators; None: not wanted

    @property
    def grids(self) -> Mapping[str, Grid]:
        """By name, the published table of the sets and at last of all of them pooled; empty where not wanted."""
        if self.pooled_grid is None:
            return {}
        grids = {name: tables.grid for name, tables in self.tables.items() if tables.grid is not None}
        return {**grids, POOLED: self.pooled_grid}

    @property
    def each(self) -> Mapping[str, Measured]:
        """By name, the sets and at last all of them pooled."""
        return {**self.sets, POOLED: self.pooled}

    def records(self) -> list[dict[str, Any]]:
        """One record a number, for JSON, with its ``set``; ``table`` is ``sets``, or ``sets-grid`` and the like."""
        found = []
        for name, measured in self.each.items():
            head = {"table": "sets", "set": name}
            found += [{**head, **record} for record in replace(measured, decomposition=None).records()]
        for name, tables in self.tables.items():
            found += [{**record, "table": f"sets-{record['table']}", "set": name} for record in tables.records()]
        if self.pooled_grid is not None:
            found += [{"table": "sets-grid", "set": POOLED, **record} for record in self.pooled_grid.records()]
        return found

    def rows(self) -> list[dict[str, Any]]:
        """One row a document and run, with its set; see `truesource.evaluation.tokenisation.measure.Measured.rows`."""
        return [{"set": name, **row} for name, measured in self.sets.items() for row in measured.rows()]


def check_set_names(names: Sequence[str]) -> None:
    """Refuse names that sets of texts cannot have.

    Raises:
        InputError: two are the same, or one is no plain name or stands for all sets.
    """
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two sets of texts are called {name!r}; name them, NAME=TEXT")
        if name == POOLED or not _NAME.fullmatch(name):
            raise InputError(
                f"a set of texts cannot be called {name!r}; name it, NAME=TEXT, with letters, digits, '.', '-' and '_'"
                f" (and {POOLED!r} stands for all sets)"
            )


def measure_sets(
    model: TokenisedModel,
    texts: Mapping[str, Documents],
    measured: Measured,
    tables: Tables,
    builder: LatticeBuilder,
    settings: EstimatorSettings,
    wanted: Wanted,
) -> MeasuredSets:
    """Measure other sets of texts as the first was, and all of them together.

    Args:
        model: whose probabilities are summed.
        texts: documents of each set, by name.
        measured: what was measured of the first.
        tables: those of the first.
        builder: of the lattices of all.
        settings: that the first was measured with.
        wanted: tables; of the other sets those that are of texts alone.

    Raises:
        InputError: as `truesource.evaluation.tokenisation.measure.measure` and `further_tables.make_tables`.
    """
    from truesource.evaluation.tokenisation.grid import pooled_grid

    name, *others = texts
    estimators, proposal = list(measured.evaluation.runs), str(measured.evaluation.parts["proposal"])
    sets = {name: measured}
    for other in others:
        sets[other] = measure(model, texts[other], estimators, settings, proposal=proposal)
    by_set = {name: tables.of_texts}
    for other in others:
        by_set[other] = make_tables(model, texts[other], builder, settings, wanted.of_texts, sets[other])
    grids = {each: made.grid for each, made in by_set.items() if made.grid is not None}
    evaluations = {each: found.evaluation for each, found in sets.items()}
    return MeasuredSets(
        sets,
        measured_of(evaluations, measured.marginal, settings),
        by_set,
        pooled_grid(grids, seed=settings.seed) if grids else None,
    )
