"""Results of one model on several sets of texts, and the tables next to the estimates.

The tables are the published grid, curves, repeated words, equal cost, and other languages.
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
    from truesource.evaluation.tokenisation import EstimatorSettings, TableRequest
    from truesource.evaluation.tokenisation.documents import Documents
    from truesource.evaluation.tokenisation.domain_shift import SetResult
    from truesource.evaluation.tokenisation.lattice import LatticeBuilder
    from truesource.evaluation.tokenisation.summaries import Grid
    from truesource.evaluation.tokenisation.words import WordTable
    from truesource.generator.piece_model import TokenisedModel
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.truth import Truth


TEMPERATURES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)  #: inverse temperatures
REPEATS = 4  #: number of seeds of each estimator at equal cost
CANDIDATES, PARTICLES = 64, 128  #: of the reference filter, if enumeration is too large
#: settings of an estimator in signatures
SETTINGS = ("estimator", "samples", "b", "seed", "candidates", "particles", "bound")
NOT_OF_TEXTS = ("equal-cost", "words", "out-of-domain")  #: tables that need a truth, or have a separate file
POOLED = "pooled"  #: name of all sets together
_NAME = re.compile(r"[^\W_][\w.-]*")


@dataclass(eq=False, kw_only=True, repr=False)
class Tables(ResultRecords):
    """The requested tables."""

    tables: dict[str, list[Score]]  #: scores by name of the table
    grid: Grid | None = None
    words: WordTable | None = None

    @override
    def as_scores(self) -> list[Score]:
        """Return all scores: with the name of their ``table``."""
        return [score for name, scores in self.tables.items() for score in keyed(scores, table=name)]

    @property
    def of_texts(self) -> Tables:
        """The tables that `TableRequest.of_texts` names."""
        tables = {name: records for name, records in self.tables.items() if name not in NOT_OF_TEXTS}
        return Tables(tables=tables, grid=self.grid)


def _scored(
    points: Sequence[Mapping[str, Any]],
    units: Mapping[str, str],
    parts: Mapping[str, object],
    keys: Sequence[str] = SETTINGS,
) -> list[Score]:
    """Return scores of the points of a curve; the other numbers of a point are extra keys.

    Args:
        points: points of the curve.
        units: units of the numbers to score, by name; None at a point gives no score.
        parts: parts of all signatures.
        keys: keys of a point in signatures.
    """
    scores = []
    for point in points:
        point_parts = {"of-documents" if key == "documents" else key: point[key] for key in keys if key in point}
        for name, unit in units.items():
            if point[name] is not None:
                score = Score(name, point[name], signature({**point_parts, "unit": unit, **parts}))
                scores.append(score.at(**{key: value for key, value in point.items() if key != name}))
    return scores


def check_tables(requested: TableRequest, builder: LatticeBuilder, settings: EstimatorSettings) -> None:
    """Refuse tables that the tokeniser or the number of samples does not allow, before any work is done.

    Raises:
        InputError: a table needs words, but pieces reach over white space; or there are too few samples.
    """
    from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS
    from truesource.evaluation.tokenisation.summaries import WARMED

    fewest = ESTIMATORS[WARMED].fewest
    if requested.curves and settings.samples < fewest:
        raise InputError(f"--curves needs at least {fewest} samples for {WARMED}; raise {settings.samples}")
    if not builder.factorises:
        for name in ("caching", "canonical", "words"):
            if getattr(requested, name):
                reason = "some pieces reach over white space, so that words have no separate pieces"
                raise InputError(f"{reason}; remove {name}")


def make_tables(
    model: TokenisedModel,
    documents: Documents,
    builder: LatticeBuilder,
    settings: EstimatorSettings,
    requested: TableRequest,
    measured: Measured,
    *,
    truth: Truth | None = None,
    lengths: LengthRange | None = None,
    excluded: Exclusion | None = None,
) -> Tables:
    """Compute the requested tables.

    Args:
        model: model whose probabilities are summed.
        documents: the documents.
        builder: builder of their lattices.
        settings: settings of the estimators; bootstraps and other languages use the same seed.
        requested: the requested tables.
        measured: results on the documents, with parts of signatures and the estimator of other languages.
        truth: grammar of the texts, which is changed to other languages.
        lengths: length condition of the truth.
        excluded: sentences that the texts and the truth of words exclude; other languages exclude none.

    Raises:
        InputError: see the functions that compute the tables.
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
    results = Tables(tables=tables)
    if requested.grid:
        results.grid = perplexity_grid(model, documents, settings, seed=seed)
        tables["grid"] = results.grid.as_scores()
    if requested.curves:
        orders = order_curves(model, documents, settings.samples)
        tables["order"] = _scored(orders, {"ppl": "per-word"}, parts, ("order", "cuts"))
        counts = [2**k for k in range(settings.samples.bit_length())]
        tables["samples"] = _scored(sample_curves(model, documents, settings, counts), {"ppl": "per-word"}, parts)
        warm = temperature_curve(model, documents, settings, TEMPERATURES)
        tables["temperature"] = _scored(warm, {"ppl": "per-word", "difference_percent": "percent"}, parts)
    if requested.equal_cost:
        costs = compare_costs(model, documents, settings, requested.equal_cost)
        units = {"rmse": "nats/document", "error": "nats/document", "ratio": "ratio"}
        tables["equal-cost"] = _scored(costs, units, parts, (*SETTINGS, "reference", "repeats", "documents"))
    if requested.caching:
        tables["caching"] = caching(model, documents, builder, settings, bootstrap=seed)
    if requested.canonical:
        tables["canonical"] = local_canonicality(model, documents, builder, seed=seed)
    if requested.words:
        results.words = word_surprisals(
            model, measured.evaluation, settings, truth=truth, lengths=lengths, excluded=excluded, seed=seed
        )
        tables["words"] = results.words.as_scores()
    if requested.out_of_domain and truth is not None:
        sets = other_languages(model, builder, settings, requested, measured, truth, lengths, len(documents))
        tables["out-of-domain"] = [score for one in sets for score in one.as_scores()]
    return results


def compare_costs(
    model: TokenisedModel, documents: Documents, settings: EstimatorSettings, n: int
) -> list[dict[str, str | float | None]]:
    """Compare every estimator at several budgets with exact or best estimates, on the first n documents."""
    from truesource.evaluation.tokenisation.equal_cost import BUDGETS, cost_ladder, equal_cost, reference_log_p

    some = replace(documents, documents=documents.documents[:n], numbers=documents.numbers[:n], unreadable=())
    reference = reference_log_p(model, some, replace(settings, candidates=CANDIDATES, particles=PARTICLES))
    budgets = [budget for budget in BUDGETS if budget <= settings.samples] or [settings.samples]
    return equal_cost(model, some, cost_ladder(settings, budgets), reference, repeats=REPEATS)


def other_languages(
    model: TokenisedModel,
    builder: LatticeBuilder,
    settings: EstimatorSettings,
    requested: TableRequest,
    measured: Measured,
    truth: Truth,
    lengths: LengthRange | None,
    n: int,
) -> list[SetResult]:
    """Sample n sentences of the grammar and of each change of it, and measure the gaps of the model on them."""
    from truesource.evaluation.tokenisation.documents import documents
    from truesource.evaluation.tokenisation.domain_shift import compare_sets, shifted_sets
    from truesource.evaluation.tokenisation.results import evaluate_documents

    marginal, pcfg = measured.marginal, require(truth, "parses", "out_of_domain")
    sets = shifted_sets(pcfg, lengths, requested.out_of_domain, n, settings.seed)
    read = (documents(model, sentence_set.texts, builder) for sentence_set in sets)
    fit = (fitting_documents(model, texts, leave_out=requested.leave_out_long) for texts in read)
    rounding = measured.evaluation.rounding
    evaluations = [replace(evaluate_documents(model, texts, [marginal], settings), rounding=rounding) for texts in fit]
    return compare_sets(sets, evaluations, marginal, pcfg, lengths, seed=settings.seed)


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredSets(ResultRecords):
    """The results of one model on several sets of texts."""

    sets: Mapping[str, Measured]  #: results by name; the first text is the one with all further tables
    pooled: Measured  #: results on all documents together; the gaps have names of sets
    tables: Mapping[str, Tables]  #: tables of each set that need only texts, by name of the set
    pooled_grid: Grid | None  #: perplexities of the published estimators; None: not requested

    @property
    def each(self) -> Mapping[str, Measured]:
        """Results by name of the set; the last entry pools all sets."""
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

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each document and run, with its set; see `evaluation.tokenisation.measure.Measured.rows`."""
        return [{"set": name, **row} for name, measured in self.sets.items() for row in measured.rows()]


def check_set_names(names: Sequence[str]) -> None:
    """Refuse invalid names of sets of texts.

    Raises:
        InputError: two are equal, or one is not a plain name or means all sets.
    """
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two sets of texts have the name {name!r}; give them different names, NAME=TEXT")
        if name == POOLED or not _NAME.fullmatch(name):
            raise InputError(
                f"{name!r} is not a name for a set of texts; use NAME=TEXT, with letters, digits, '.', '-' and '_'"
                f" (and {POOLED!r} means all sets)"
            )


def measure_sets(
    model: TokenisedModel,
    texts: Mapping[str, Documents],
    measured: Measured,
    tables: Tables,
    builder: LatticeBuilder,
    settings: EstimatorSettings,
    requested: TableRequest,
) -> MeasuredSets:
    """Measure other sets of texts in the same way as the first, and all of them together.

    Args:
        model: model whose probabilities are summed.
        texts: documents of each set, by name.
        measured: results on the first set.
        tables: tables of the first set.
        builder: builder of all lattices.
        settings: settings of the first measurement.
        requested: the requested tables; other sets get the tables that need only texts.

    Raises:
        InputError: see `truesource.evaluation.tokenisation.measure.measure` and `make_tables`.
    """
    from truesource.evaluation.tokenisation.summaries import pooled_grid

    name, *others = texts
    estimators, proposal = list(measured.evaluation.runs), str(measured.evaluation.parts["proposal"])
    sets = {name: measured}
    for other in others:
        sets[other] = measure(model, texts[other], estimators, settings, proposal=proposal)
    by_set = {name: tables.of_texts}
    for other in others:
        by_set[other] = make_tables(model, texts[other], builder, settings, requested.of_texts, sets[other])
    grids = {each: tables_of_set.grid for each, tables_of_set in by_set.items() if tables_of_set.grid is not None}
    evaluations = {each: of_set.evaluation for each, of_set in sets.items()}
    return MeasuredSets(
        sets,
        measured_of(evaluations, measured.marginal, settings),
        by_set,
        pooled_grid(grids) if grids else None,
    )
