"""Where models stand as records, for files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truesource.benchmark.differences import ShareDifference
from truesource.benchmark.standings import LanguageStanding, Standing, Standings
from truesource.evaluation.measures.contrast import Contrast


def standing_records(
    found: Sequence[Standings], compared: Sequence[Sequence[ShareDifference]], *, own: Sequence[str] = ()
) -> dict[str, list[dict[str, Any]]]:
    """The numbers of the tables and of each language: ``standings`` and ``differences``.

    Args:
        found: standings of models on a suite.
        compared: their differences, by `truesource.benchmark.differences.differences_of`.
        own: names of the reader's models.
    """
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
            for group in compared
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
