"""Everything measured of one model on texts, set by set, and the tables beside the estimates.

Tables are the published grid, curves, repeated words, equal cost, and other languages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.signature import signature
from truesource.evaluation.tokenisation.measure import Measured, measure, measured_of
from truesource.evaluation.tokenisation.preparation import fitting_documents
from truesource.generator.abilities import require
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords

if TYPE_CHECKING:
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.evaluation.tokenisation import EstimatorSettings, Wanted
    from truesource.evaluation.tokenisation.documents import Documents
    from truesource.evaluation.tokenisation.domain_shift import SetResult
    from truesource.evaluation.tokenisation.lattice import LatticeBuilder
    from truesource.evaluation.tokenisation.summaries import Grid
    from truesource.evaluation.tokenisation.words import WordTable
    from truesource.generator.piece_model import TokenisedModel
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.truth import Truth


TEMPERATURES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)  #: inverse ones
REPEATS = 4  #: seeds of each estimator at equal cost
CANDIDATES, PARTICLES = 64, 128  #: of the filter that stands for the truth where that cannot be enumerated
#: settings of an estimator in signatures
SETTINGS = ("estimator", "samples", "b", "seed", "candidates", "particles", "bound")
NOT_OF_TEXTS = ("equal-cost", "words", "out-of-domain")  #: tables that need a truth, or are in a file of their own
POOLED = "pooled"  #: stands for all sets together where a set's name is expected
_NAME = re.compile(r"[^\W_][\w.-]*")


@dataclass(eq=False, kw_only=True, repr=False)
class Tables(ResultRecords):
    """Tables that were asked for."""

    tables: dict[str, list[Score]]  #: by name of the table
    grid: Grid | None = None
    words: WordTable | None = None

    @override
    def as_scores(self) -> list[Score]:
        """Return all scores: ``table`` says of which table."""
        return [score for name, scores in self.tables.items() for score in keyed(scores, table=name)]

    @property
    def of_texts(self) -> Tables:
        """The tables of `Wanted.of_texts`."""
        tables = {name: records for name, records in self.tables.items() if name not in NOT_OF_TEXTS}
        return Tables(tables=tables, grid=self.grid)


def _scored(
    points: Sequence[Mapping[str, Any]],
    units: Mapping[str, str],
    parts: Mapping[str, object],
    keys: Sequence[str] = SETTINGS,
) -> list[Score]:
    """Return scores of the points of a curve; the other numbers of a point are keys of each.

    Args:
        points: of the curve.
        units: by name of the numbers that are scored; a point has no score where it has None.
        parts: of all signatures.
        keys: what signatures say of a point.
    """
    scores = []
    for point in points:
        own = {"of-documents" if key == "documents" else key: point[key] for key in keys if key in point}
        for name, unit in units.items():
            if point[name] is not None:
                score = Score(name, point[name], signature({**own, "unit": unit, **parts}))
                scores.append(score.at(**{key: value for key, value in point.items() if key != name}))
    return scores


def check_tables(wanted: Wanted, builder: LatticeBuilder, settings: EstimatorSettings) -> None:
    """Refuse what cannot be had of a tokeniser, or of so few samples, before any work is done.

    Raises:
        InputError: a table is of words, and pieces reach over white space; or there are too few samples for it.
    """
    from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS
    from truesource.evaluation.tokenisation.summaries import WARMED

    fewest = ESTIMATORS[WARMED].fewest
    if wanted.curves and settings.samples < fewest:
        raise InputError(f"--curves needs at least {fewest} samples, for {WARMED}; got {settings.samples}")
    if not builder.factorises:
        for name in ("caching", "canonical", "words"):
            if getattr(wanted, name):
                reason = "some pieces reach over white space, so that words have no pieces of their own"
                raise InputError(f"{reason}; leave {name} out")


def make_tables(
    model: TokenisedModel,
    documents: Documents,
    builder: LatticeBuilder,
    settings: EstimatorSettings,
    wanted: Wanted,
    measured: Measured,
    *,
    truth: Truth | None = None,
    lengths: LengthRange | None = None,
    excluded: Exclusion | None = None,
) -> Tables:
    """Make the tables that are wanted.

    Args:
        model: whose probabilities are summed.
        documents: the documents.
        builder: of their lattices.
        settings: of the estimators; its seed is that of the bootstraps and of other languages too.
        wanted: which tables.
        measured: what was found of the documents; parts of signatures, and the estimator of other languages.
        truth: grammar of the texts, which other languages are changes of.
        lengths: its length condition.
        excluded: sentences that the texts leave out, and so does the truth of words; other languages leave none out.

    Raises:
        InputError: as the functions that make them.
    """
    from truesource.evaluation.tokenisation.canonical import caching, local_canonicality
    from truesource.evaluation.tokenisation.summaries import (
        order_curves,
        perplexity_grid,
        sample_curves,
        temperature_curve,
    )
    from truesource.evaluation.tokenisation.words import word_surprisals

    seed, parts = settings.seed, measured.evaluation.parts
    tables: dict[str, list[Score]] = {}
    made = Tables(tables=tables)
    if wanted.grid:
        made.grid = perplexity_grid(model, documents, settings, seed=seed)
        tables["grid"] = made.grid.as_scores()
    if wanted.curves:
        orders = order_curves(model, documents, settings.samples)
        tables["order"] = _scored(orders, {"ppl": "per-word"}, parts, ("order", "cuts"))
        counts = [2**k for k in range(settings.samples.bit_length())]
        tables["samples"] = _scored(sample_curves(model, documents, settings, counts), {"ppl": "per-word"}, parts)
        warm = temperature_curve(model, documents, settings, TEMPERATURES)
        tables["temperature"] = _scored(warm, {"ppl": "per-word", "difference_percent": "percent"}, parts)
    if wanted.equal_cost:
        costs = compare_costs(model, documents, settings, wanted.equal_cost)
        units = {"rmse": "nats/document", "error": "nats/document", "ratio": "ratio"}
        tables["equal-cost"] = _scored(costs, units, parts, (*SETTINGS, "reference", "repeats", "documents"))
    if wanted.caching:
        tables["caching"] = caching(model, documents, builder, settings, bootstrap=seed)
    if wanted.canonical:
        tables["canonical"] = local_canonicality(model, documents, builder, seed=seed)
    if wanted.words:
        made.words = word_surprisals(
            model, measured.evaluation, settings, truth=truth, lengths=lengths, excluded=excluded, seed=seed
        )
        tables["words"] = made.words.as_scores()
    if wanted.out_of_domain and truth is not None:
        sets = other_languages(model, builder, settings, wanted, measured, truth, lengths, len(documents))
        tables["out-of-domain"] = [score for one in sets for score in one.as_scores()]
    return made


def compare_costs(
    model: TokenisedModel, documents: Documents, settings: EstimatorSettings, n: int
) -> list[dict[str, Any]]:
    """Every estimator at several budgets against the truth, or the best estimate of it, on the first n documents."""
    from truesource.evaluation.tokenisation.equal_cost import BUDGETS, cost_ladder, equal_cost, reference_log_p

    some = replace(documents, documents=documents.documents[:n], numbers=documents.numbers[:n], unreadable=())
    reference = reference_log_p(model, some, replace(settings, candidates=CANDIDATES, particles=PARTICLES))
    budgets = [budget for budget in BUDGETS if budget <= settings.samples] or [settings.samples]
    return equal_cost(model, some, cost_ladder(settings, budgets), reference, repeats=REPEATS)


def other_languages(
    model: TokenisedModel,
    builder: LatticeBuilder,
    settings: EstimatorSettings,
    wanted: Wanted,
    measured: Measured,
    truth: Truth,
    lengths: LengthRange | None,
    n: int,
) -> list[SetResult]:
    """Sentences of the grammar and of changes of it, n each, with the gaps of the model on them."""
    from truesource.evaluation.tokenisation.documents import documents
    from truesource.evaluation.tokenisation.domain_shift import compare_sets, shifted_sets
    from truesource.evaluation.tokenisation.results import evaluate_documents

    marginal, pcfg = measured.marginal, require(truth, "parses", "out_of_domain")
    sets = shifted_sets(pcfg, lengths, wanted.out_of_domain, n, settings.seed)
    read = (documents(model, given.texts, builder) for given in sets)
    fit = (fitting_documents(model, texts, leave_out=wanted.leave_out_long) for texts in read)
    rounding = measured.evaluation.rounding
    evaluations = [replace(evaluate_documents(model, texts, [marginal], settings), rounding=rounding) for texts in fit]
    return compare_sets(sets, evaluations, marginal, pcfg, lengths, seed=settings.seed)


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredSets(ResultRecords):
    """Everything that was measured of one model on several sets of texts."""

    sets: Mapping[str, Measured]  #: by name; the first is the text that all else is measured on
    pooled: Measured  #: all documents together; its gaps know their sets
    tables: Mapping[str, Tables]  #: of each set, by name: those that are of texts alone
    pooled_grid: Grid | None  #: perplexities of the published estimators; None: not wanted

    @property
    def each(self) -> Mapping[str, Measured]:
        """Results by name of the set, at last of all sets pooled."""
        return {**self.sets, POOLED: self.pooled}

    @override
    def as_scores(self) -> list[Score]:
        """Return all scores with their ``set``; ``table`` is ``sets``, or ``sets-grid`` and the like."""
        every: list[Score] = []
        for name, measured in self.each.items():
            every += keyed(replace(measured, decomposition=None).as_scores(), table="sets", set=name)
        for name, tables in self.tables.items():
            for table, scores in tables.tables.items():
                every += [score.at(table=f"sets-{table}").with_more(set=name) for score in scores]
        if self.pooled_grid is not None:
            every += keyed(self.pooled_grid.as_scores(), table="sets-grid", set=POOLED)
        return every

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
        InputError: as `truesource.evaluation.tokenisation.measure.measure` and `make_tables`.
    """
    from truesource.evaluation.tokenisation.summaries import pooled_grid

    name, *others = texts
    estimators, proposal = list(measured.evaluation.runs), str(measured.evaluation.parts["proposal"])
    sets = {name: measured}
    for other in others:
        sets[other] = measure(model, texts[other], estimators, settings, proposal=proposal)
    by_set = {name: tables.of_texts}
    for other in others:
        by_set[other] = make_tables(model, texts[other], builder, settings, wanted.of_texts, sets[other])
    grids = {each: made.grid for each, made in by_set.items() if made.grid is not None}
    evaluations = {each: of_set.evaluation for each, of_set in sets.items()}
    return MeasuredSets(
        sets,
        measured_of(evaluations, measured.marginal, settings),
        by_set,
        pooled_grid(grids) if grids else None,
    )
