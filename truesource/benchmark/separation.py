"""Which models a language tells apart: pairs of models whose difference exceeds its spread over strings and seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from truesource.benchmark.results import BenchmarkModel, BenchmarkResults
from truesource.benchmark.standings import cells_of, share_sums
from truesource.evaluation.measures.contrast import Contrast, SeedSums, mean_over_texts
from truesource.evaluation.measures.monte_carlo import holm
from truesource.generator.language_model import Objective
from truesource.grammar.support.settings import DEFAULT_SEED

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
        """Whether the difference is significant."""
        return self.p_adjusted is not None and self.p_adjusted < SIGNIFICANT


@dataclass(frozen=True, kw_only=True)
class Separation:
    """What one language tells of the order of models."""

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
    """What the headline and each language tell apart, the headline first.

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
    """Whether the seed decides anything; a model that counts takes no step."""
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
