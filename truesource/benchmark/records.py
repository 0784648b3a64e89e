"""Where models stand as records, for files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truesource.benchmark.differences import differences_of
from truesource.benchmark.results import BenchmarkResults
from truesource.benchmark.standings import LanguageStanding, Standing, Standings
from truesource.evaluation.comparing.contrast import Contrast


def standing_records(
    results: BenchmarkResults, found: Sequence[Standings], *, own: Sequence[str] = (), baseline: str | None = None
) -> dict[str, list[dict[str, Any]]]:
    """The numbers of the tables and of each language: ``standings`` and ``differences``.

    Args:
        results: of models on a suite.
        found: their standings.
        own: names of the reader's models.
        baseline: as `truesource.benchmark.differences.difference_tables`.

    Raises:
        InputError: no ranked model has the name of the baseline.
    """
    differences = differences_of(results, found, own=own, baseline=baseline)
    return {
        "standings": [
            {"objective": each.objective, **_of_model(row, own=row.name in own)} for each in found for row in each.rows
        ],
        "differences": [
            {
                "model": each.model,
                "baseline": each.baseline,
                **contrast_record(each.contrast),
                "p_adjusted": each.p_adjusted,
            }
            for group in differences
            for each in group
        ],
    }


def _of_model(row: Standing, *, own: bool) -> dict[str, Any]:
    return {
        "model": row.name,
        "architecture": row.model["architecture"],
        "own": own,
        "share": contrast_record(row.share),
        "longer_share": contrast_record(row.longer_share),
        "languages": {name: _of_language(each) for name, each in row.languages.items()},
    }


def _of_language(each: LanguageStanding) -> dict[str, Any]:
    return {
        "seeds": each.seeds,
        "share": contrast_record(each.share),
        "kl": contrast_record(each.kl),
        "relative_ppl": each.relative_ppl,
        "wrong": each.wrong,
        "calibration": each.calibration,
        "longer_share": contrast_record(each.longer_share),
        "longer_wrong": each.longer_wrong,
        "tokens_to": {f"{nats:g}": tokens for nats, tokens in each.tokens_to.items()},
    }


def contrast_record(found: Contrast | None) -> dict[str, float | None]:
    """``value``, ``low``, ``high`` and ``p`` of a mean or difference; nothing where it was not measured."""
    return {} if found is None else {"value": found.value, "low": found.low, "high": found.high, "p": found.p}
