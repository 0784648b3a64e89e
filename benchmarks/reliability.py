"""How reliable a ranking of models is: whether other test strings and other training seeds rank them alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy import stats

from truesource.evaluation.measures.contrast import Contrast, SeedSums, mean_over_texts
from truesource.evaluation.measures.monte_carlo import holm
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, shown
from truesource.evaluation.show.words import count, listed
from truesource.generator.objectives import Objective
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.studies.benchmark.results import BenchmarkModel, BenchmarkResults
from truesource.studies.benchmark.standings import cells_of, share_sums

SIGNIFICANT = 0.05  #: adjusted p-values below separate two models


@dataclass(frozen=True, kw_only=True)
class SeparatedPair:
    """Two models on one language, or on all."""

    model: str
    other: str
    contrast: Contrast  #: share of ``model`` less that of ``other``
    p_adjusted: float | None  #: by Holm's method, for all pairs; None: there are too few blocks of strings

    @property
    def separated(self) -> bool:
        """True if the difference is significant."""
        return self.p_adjusted is not None and self.p_adjusted < SIGNIFICANT


@dataclass(frozen=True, kw_only=True)
class Separation:
    """The order of models as one language tells it."""

    language: str | None  #: name in the suite; None: the mean over all languages, the headline
    models: Sequence[str]  #: that were measured there, the best first
    pairs: Sequence[SeparatedPair]  #: all of them, the better model first
    largest_gap: float | None  #: share of the best model less that of the worst; None: there are no two
    seed_sd: float | None  #: of the share over training seeds, pooled over models that train; None: none has two seeds

    @property
    def separated(self) -> int:
        """Pairs of models whose difference is significant."""
        return sum(pair.separated for pair in self.pairs)

    @property
    def tested(self) -> int:
        """Pairs of models with a p-value."""
        return sum(pair.p_adjusted is not None for pair in self.pairs)

    @property
    def gap_in_sd(self) -> float | None:
        """The largest gap over the standard deviation over seeds; None: that is 0 or unknown."""
        return self.largest_gap / self.seed_sd if self.largest_gap is not None and self.seed_sd else None

    def record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "language": self.language,
            "models": list(self.models),
            "pairs": len(self.pairs),
            "tested": self.tested,
            "separated": self.separated,
            "largest_gap": self.largest_gap,
            "seed_sd": self.seed_sd,
            "gap_in_sd": self.gap_in_sd,
            "differences": [
                {
                    "model": pair.model,
                    "other": pair.other,
                    **asdict(pair.contrast),
                    "p_adjusted": pair.p_adjusted,
                    "separated": pair.separated,
                }
                for pair in self.pairs
            ],
        }


def separation(
    results: BenchmarkResults, languages: Sequence[str], objective: Objective, *, seed: int = DEFAULT_SEED
) -> list[Separation]:
    """The pairs of models that the headline and each language tell apart, the headline first.

    Two models are separated where the difference of their shares has a p-value below `SIGNIFICANT`, adjusted by Holm's
    method for all pairs of models on that language. The test counts the spread over strings and over training seeds.

    Args:
        results: of one suite.
        languages: all of the suite, in its order.
        objective: of the models.
        seed: of the resampling.
    """
    models = [model for model in results["models"] if model["objective"] == objective]
    scopes: list[tuple[str | None, Sequence[str]]] = [(None, languages), *((name, [name]) for name in languages)]
    return [_separation(results, models, name, scope, seed) for name, scope in scopes]


def _separation(
    results: BenchmarkResults, models: Sequence[BenchmarkModel], name: str | None, scope: Sequence[str], seed: int
) -> Separation:
    sums = {model["name"]: _sums(results, model, scope) for model in models if _measured(model, scope)}
    share = {model: _share(found) for model, found in sums.items()}
    order = sorted(share, key=lambda model: -share[model])
    training = [sums[model["name"]] for model in models if model["name"] in sums and _trains(model)]
    return Separation(
        language=name,
        models=order,
        pairs=_pairs(order, sums, seed),
        largest_gap=share[order[0]] - share[order[-1]] if len(order) > 1 else None,
        seed_sd=_pooled_sd(training),
    )


def _measured(model: BenchmarkModel, scope: Sequence[str]) -> bool:
    return all(cells_of(model, language) for language in scope)


def _trains(model: BenchmarkModel) -> bool:
    """True if the seed decides anything; a model that counts takes no step."""
    return any(cell["steps"] > 0 for cell in model["cells"])


def _sums(results: BenchmarkResults, model: BenchmarkModel, scope: Sequence[str]) -> list[SeedSums]:
    found = [share_sums(results, model, language) for language in scope]
    return [each for each in found if each is not None]


def _share(sums: Sequence[SeedSums]) -> float:
    return 1.0 - math.fsum(float(each.values.mean()) for each in sums) / len(sums)


def _pairs(order: Sequence[str], sums: dict[str, list[SeedSums]], seed: int) -> list[SeparatedPair]:
    both = list(combinations(order, 2))
    # the ratio is one less the share, so that of the better model is subtracted
    contrasts = [mean_over_texts(list(zip(sums[other], sums[model], strict=True)), seed=seed) for model, other in both]
    adjusted = iter(holm([found.p for found in contrasts if found.p is not None]))
    return [
        SeparatedPair(model=model, other=other, contrast=found, p_adjusted=None if found.p is None else next(adjusted))
        for (model, other), found in zip(both, contrasts, strict=True)
    ]


def _pooled_sd(models: Sequence[Sequence[SeedSums]]) -> float | None:
    """Of the mean share over languages, each of which is trained on anew; over models, by degrees of freedom."""
    squares, degrees = 0.0, 0
    for sums in models:
        free = min(each.seeds for each in sums) - 1
        if free > 0:
            squares += free * math.fsum(float(np.var(each.values, ddof=1)) for each in sums) / len(sums) ** 2
            degrees += free
    return math.sqrt(squares / degrees) if degrees else None


HALVES = (slice(0, None, 2), slice(1, None, 2))  #: of the blocks of test strings: even and odd ones
FEWEST_MODELS = 3  #: of two models, all rank correlations are 1 or -1
MOST_SPLITS = 500  #: of the seeds; of more, so many are drawn

SplitBy = Literal["strings", "seeds", "both"]
SPLITS: tuple[SplitBy, ...] = ("strings", "seeds", "both")
Part = tuple[slice, frozenset[int] | None]  #: blocks of test strings, and training seeds; None: all


@dataclass(frozen=True, kw_only=True)
class RankAgreement:
    """How two disjoint parts of the measurements rank the same models: means over all ways to part them.

    Correlations are None of fewer than `FEWEST_MODELS` models, where nothing can be parted, and where all models have
    one share.
    """

    by: SplitBy
    models: Sequence[str]  #: that count: with ``seeds`` and ``both``, those that were trained with all of ``seeds``
    seeds: Sequence[int]  #: that are parted; none with ``strings``
    splits: int  #: ways to part
    spearman: float | None = None
    spearman_least: float | None = None  #: over all ways
    kendall: float | None = None  #: tau-b
    kendall_least: float | None = None
    pearson: float | None = None  #: of the shares themselves
    #: by the Spearman-Brown formula, the correlation of the shares on all test strings with those on as many others.
    #: With ``strings`` alone: the formula takes halves of one size, and sets of seeds have different ones. None too
    #: where the halves do not correlate above 0.
    spearman_brown: float | None = None


@dataclass(frozen=True, kw_only=True)
class RankingReliability:
    """Of the ranking of the models of one objective."""

    objective: Objective
    headline: Mapping[SplitBy, RankAgreement]  #: of the mean share over all languages, of models that have them all
    languages: Mapping[str, Mapping[SplitBy, RankAgreement]]  #: of the share on each, in the order of the suite

    def records(self) -> list[dict[str, Any]]:
        """A record a language and way to split, for JSON; ``language`` is null for the headline."""
        return [
            {
                "objective": self.objective,
                "language": language,
                "by": found.by,
                "models": list(found.models),
                "seeds": list(found.seeds),
                **{name: getattr(found, name) for name in ("splits", *MEASURES, "spearman_brown")},
            }
            for language, agreements in [(None, self.headline), *self.languages.items()]
            for found in agreements.values()
        ]


MEASURES = ("spearman", "spearman_least", "kendall", "kendall_least", "pearson")


def reliability(results: BenchmarkResults, languages: Sequence[str], objective: Objective) -> RankingReliability:
    """How well disjoint halves of the test strings, and disjoint sets of training seeds, agree on the ranking.

    Parted by strings, both sides have the same trained models: what is seen is the error of the test strings alone.
    Parted by seeds, both sides have the same strings. Parted by both, the sides share nothing but architectures,
    languages and training text. The values are those of parts, so they are below what all strings and seeds reach.

    Args:
        results: of one suite.
        languages: all of the suite, in its order.
        objective: of the models.
    """
    models = [model for model in results["models"] if model["objective"] == objective]
    return RankingReliability(
        objective=objective,
        headline=_agreements(results, models, languages),
        languages={name: _agreements(results, models, [name]) for name in languages},
    )


def shares(
    results: BenchmarkResults, models: Sequence[BenchmarkModel], languages: Sequence[str], part: Part
) -> FloatArray:
    """Mean over languages of the share of information learned, (M,), from a part of the measurements.

    Args:
        results: that the models are from.
        models: M models, measured on all the languages.
        languages: names in the suite.
        part: of the blocks and of the seeds; NaN where the blocks hold nothing to learn.
    """
    blocks, seeds = part
    found = np.empty((len(models), len(languages)))
    for i, model in enumerate(models):
        for j, language in enumerate(languages):
            sums = share_sums(results, model, language, blocks=blocks, seeds=None if seeds is None else sorted(seeds))
            assert sums is not None  # there are cells
            known = bool((sums.count.sum(axis=1) > 0.0).all())
            found[i, j] = 1.0 - float(sums.values.mean()) if known else math.nan
    return np.asarray(found.mean(axis=1))


def seed_splits(seeds: Sequence[int]) -> list[tuple[frozenset[int], frozenset[int]]]:
    """All ways to part some seeds into two sets that are not empty; `MOST_SPLITS` random ones where there are more."""
    first, *rest = sorted(seeds)
    whole = frozenset(seeds)
    if 2 ** len(rest) - 1 > MOST_SPLITS:
        rng = np.random.default_rng(0)
        masks = {tuple(row) for row in rng.integers(0, 2, size=(MOST_SPLITS, len(rest))).tolist() if not all(row)}
        sides = [frozenset([first, *(s for s, kept in zip(rest, mask, strict=True) if kept)]) for mask in sorted(masks)]
    else:
        sides = [frozenset([first, *some]) for n in range(len(rest)) for some in combinations(rest, n)]
    return [(side, whole - side) for side in sides]


def _agreements(
    results: BenchmarkResults, models: Sequence[BenchmarkModel], languages: Sequence[str]
) -> dict[SplitBy, RankAgreement]:
    seeds = {model["name"]: _seeds(model, languages) for model in models}
    whole = [model for model in models if seeds[model["name"]]]
    common = _common(list(seeds.values()))
    replicated = [model for model in whole if common and common <= seeds[model["name"]]]
    parted = seed_splits(sorted(common)) if common else []
    even, odd = HALVES
    everything = slice(None)
    both: list[tuple[Part, Part]] = [
        ((even, one), (odd, other)) for pair in parted for one, other in (pair, pair[::-1])
    ]
    ways: dict[SplitBy, list[tuple[Part, Part]]] = {
        "strings": [((even, None), (odd, None))],
        "seeds": [((everything, one), (everything, other)) for one, other in parted],
        "both": both,
    }
    return {
        by: _agreement(results, whole if by == "strings" else replicated, languages, by, found, common)
        for by, found in ways.items()
    }


def _seeds(model: BenchmarkModel, languages: Sequence[str]) -> frozenset[int]:
    """The seeds that a model was trained with on all the languages."""
    return frozenset.intersection(*(frozenset(cell["seed"] for cell in cells_of(model, name)) for name in languages))


def _common(seeds: Sequence[frozenset[int]]) -> frozenset[int]:
    """The two or more seeds that most models were trained with, the more seeds the better; none: no model has two."""
    several = Counter(found for found in seeds if len(found) > 1)
    return max(several, key=lambda found: (several[found], len(found), sorted(found)), default=frozenset())


def _agreement(
    results: BenchmarkResults,
    models: Sequence[BenchmarkModel],
    languages: Sequence[str],
    by: SplitBy,
    ways: Sequence[tuple[Part, Part]],
    seeds: frozenset[int],
) -> RankAgreement:
    head = RankAgreement(
        by=by,
        models=[model["name"] for model in models],
        seeds=[] if by == "strings" else sorted(seeds),
        splits=len(ways),
    )
    if len(models) < FEWEST_MODELS or not ways:
        return head
    sides = [
        (shares(results, models, languages, one), shares(results, models, languages, other)) for one, other in ways
    ]
    if any(not np.isfinite(side).all() or np.ptp(side) == 0.0 for way in sides for side in way):
        return head
    rho = [float(stats.spearmanr(x, y).statistic) for x, y in sides]
    tau = [float(stats.kendalltau(x, y).statistic) for x, y in sides]
    pearson = math.fsum(float(np.corrcoef(x, y)[0, 1]) for x, y in sides) / len(sides)
    return replace(
        head,
        spearman=math.fsum(rho) / len(rho),
        spearman_least=min(rho),
        kendall=math.fsum(tau) / len(tau),
        kendall_least=min(tau),
        pearson=pearson,
        spearman_brown=2.0 * pearson / (1.0 + pearson) if by == "strings" and pearson > 0.0 else None,
    )


ALL_LANGUAGES = "all languages"  #: the row of the headline


def reliability_table(found: RankingReliability) -> ReportTable:
    """Rank correlations between disjoint parts of the measurements: the headline, then each language."""
    rows = [
        TableRow([ALL_LANGUAGES, *_agreement_cells(found.headline)]),
        *(TableRow([name, *_agreement_cells(each)]) for name, each in found.languages.items()),
    ]
    return ReportTable(
        title=f"Reliability of the ranking of {found.objective} models",
        columns=(
            *("language", "models"),
            *(f"{measure}\n{by}" for by in SPLITS for measure in ("Spearman", "Kendall")),
            "Spearman-\nBrown",
        ),
        keys=(
            *("language", "models"),
            *(f"{measure}_{by}" for by in SPLITS for measure in ("spearman", "kendall")),
            "spearman_brown",
        ),
        rows=rows,
        note=_reliability_note(found),
    )


def separation_table(found: Sequence[Separation], objective: Objective) -> ReportTable:
    """Pairs of models that each language separates, and its largest gap; the headline first."""
    rows = [
        TableRow(
            [
                ALL_LANGUAGES if each.language is None else each.language,
                _whole(len(each.models)),
                Cell(f"{each.separated} of {len(each.pairs)}", score=(each.separated, None, None)),
                _value(each.largest_gap, ".3f"),
                _value(each.seed_sd, ".4f"),
                _value(each.gap_in_sd, ".1f"),
                each.models[0] if each.models else None,
                each.models[-1] if len(each.models) > 1 else None,
            ]
        )
        for each in found
    ]
    nothing = [each.language for each in found if each.language is not None and each.tested and not each.separated]
    notes = [
        "Separated: pairs of models whose shares differ with p < "
        f"{SIGNIFICANT} over strings and seeds, by Holm's method for all pairs of a row",
        "SD: of the share over training seeds, pooled over models that train",
        *([f"No two models are separated by {listed(nothing)}"] if nothing else []),
    ]
    return ReportTable(
        title=f"What separates {objective} models",
        columns=(
            "language",
            "models",
            "pairs\nseparated",
            "largest\ngap",
            "SD over\nseeds",
            "gap\nin SD",
            "best",
            "worst",
        ),
        keys=("language", "models", "separated", "largest_gap", "seed_sd", "gap_in_sd", "best", "worst"),
        rows=rows,
        note=". ".join(notes),
        text=(0, -2, -1),
    )


def _agreement_cells(agreements: Mapping[SplitBy, RankAgreement]) -> list[Cell | str | None]:
    strings = agreements["strings"]
    cells: list[Cell | str | None] = [_whole(len(strings.models))]
    for by in SPLITS:
        each = agreements[by]
        cells += [_value(each.spearman, ".3f", _least(each, each.spearman_least)), _value(each.kendall, ".3f")]
    return [*cells, _value(strings.spearman_brown, ".4f")]


def _least(each: RankAgreement, value: float | None) -> str:
    return "" if value is None or each.splits == 1 else shown(value, ".3f")


def _value(value: float | None, spec: str, small: str = "") -> Cell | None:
    return None if value is None else Cell(shown(value, spec), None, small, (value, None, None))


def _whole(number: int) -> Cell:
    return Cell(f"{number:,}", score=(number, None, None))


def _reliability_note(found: RankingReliability) -> str:
    by_seeds = found.headline["seeds"]
    notes = ["Correlations of the models' shares between even and odd blocks of the test strings (strings)"]
    if by_seeds.splits:
        ways = count(by_seeds.splits, "way")
        seeds = f"between disjoint sets of the seeds {listed([str(s) for s in by_seeds.seeds])} (seeds: mean of {ways}"
        notes[0] += f", {seeds} to part them), and with other strings and other seeds (both); in brackets the least"
        if len(by_seeds.models) < len(found.headline["strings"].models):
            notes.append(f"Seeds and both: the {len(by_seeds.models)} models that were trained with all of these")
    notes.append("Strings: both halves have the same trained models")
    notes.append(
        "Spearman-Brown: Pearson's correlation between halves of the strings, stepped up to all of them; not of seeds, "
        "whose sets have different sizes"
    )
    return ". ".join(notes)
