"""How reliable a ranking of models is: whether other test strings and other training seeds rank them alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy import stats

from truesource.benchmark.results import BenchmarkModel, BenchmarkResults
from truesource.benchmark.standings import cells_of, share_sums
from truesource.generator.language_model import Objective
from truesource.grammar.support.arrays import FloatArray

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
    """Those that a model was trained with on all the languages."""
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
