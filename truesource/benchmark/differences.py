"""Differences between models on a suite: paired on the same test strings, with tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from truesource.benchmark.results import BenchmarkModel, BenchmarkResults
from truesource.benchmark.standings import Standings, share_sums
from truesource.benchmark.tables import SPEC, is_reference
from truesource.comparing.tables import p_cell
from truesource.evaluation.measures.contrast import Contrast, SeedSums, mean_over_texts
from truesource.evaluation.measures.monte_carlo import holm
from truesource.grammar.support.errors import InputError
from truesource.report.table import ReportTable, TableRow, score_cell


@dataclass(frozen=True, kw_only=True)
class ShareDifference:
    """The share of a model less that of a baseline on the same test strings, mean over the languages of a suite."""

    model: str
    baseline: str
    contrast: Contrast
    p_adjusted: float | None  #: by Holm's method, for all that are compared with the baseline


def default_baseline(found: Standings, own: Sequence[str] = ()) -> str | None:
    """The reader's first model that was measured on all languages, else the best one; None: there is none."""
    ranked = [row.name for row in found.rows if row.share is not None and not is_reference(row)]
    return next((name for name in own if name in ranked), ranked[0] if ranked else None)


def difference_tables(compared: Sequence[Sequence[ShareDifference]]) -> list[ReportTable]:
    """A table for each group of `differences_of`."""
    return [difference_table(group) for group in compared]


def differences_of(
    results: BenchmarkResults, found: Sequence[Standings], *, own: Sequence[str] = (), baseline: str | None = None
) -> list[list[ShareDifference]]:
    """The differences of each objective with two ranked models or more.

    Args:
        results: of models on a suite.
        found: their standings.
        own: names of the reader's models.
        baseline: of objectives that have a model of this name; None, and in the others: `default_baseline`.

    Raises:
        InputError: no ranked model has the name of the baseline.
    """
    groups, known = [], set()
    for each in found:
        ranked = {row.name for row in each.rows if row.share is not None and not is_reference(row)}
        known |= ranked
        against = baseline if baseline in ranked else default_baseline(each, own)
        if against is not None and len(ranked) > 1:
            groups.append(share_differences(results, each, against))
    if baseline is not None and baseline not in known:
        raise InputError(
            f"no model {baseline!r} was measured on all languages; there are {', '.join(sorted(known)) or 'none'}",
            code="unknown-baseline",
        )
    return groups


def share_differences(results: BenchmarkResults, found: Standings, baseline: str) -> list[ShareDifference]:
    """The shares of all other ranked models less that of a baseline, in the order of the standings; their seed too.

    Args:
        results: that they are from.
        found: models of one objective.
        baseline: name of a model that was measured on all languages.

    Raises:
        KeyError: there is no such model.
    """
    models = {row.name: row.model for row in found.rows if row.share is not None and not is_reference(row)}
    against = models.pop(baseline)
    contrasts = {
        name: _negated(
            mean_over_texts([_pair(results, model, against, each) for each in found.languages], seed=found.seed)
        )
        for name, model in models.items()
    }
    adjusted = iter(holm([contrast.p for contrast in contrasts.values() if contrast.p is not None]))
    return [
        ShareDifference(
            model=name,
            baseline=baseline,
            contrast=contrast,
            p_adjusted=None if contrast.p is None else next(adjusted),
        )
        for name, contrast in contrasts.items()
    ]


def difference_table(differences: Sequence[ShareDifference]) -> ReportTable:
    """A row for each model."""
    baseline = differences[0].baseline
    return ReportTable(
        title=f"Share learned, less the share of {baseline}",
        columns=("model", f"difference\nto {baseline}", "p (Holm)"),
        keys=("model", "difference", "p_adjusted"),
        rows=[
            TableRow(
                [
                    each.model,
                    score_cell(each.contrast.interval._asdict(), f"+{SPEC}"),
                    None if each.p_adjusted is None else p_cell(each.p_adjusted),
                ]
            )
            for each in differences
        ],
        note="Mean over languages, paired on the same test strings, with 95% intervals over other strings and other"
        f" training seeds; p-values are adjusted for {len(differences)} comparisons.",
    )


def _pair(
    results: BenchmarkResults, model: BenchmarkModel, against: BenchmarkModel, language: str
) -> tuple[SeedSums, SeedSums]:
    own, other = share_sums(results, model, language), share_sums(results, against, language)
    if own is None or other is None:
        raise KeyError(language)
    return own, other


def _negated(found: Contrast) -> Contrast:
    """One's own KL is subtracted from that of the other: a share is one less KL over information."""
    if found.low is None or found.high is None:
        return Contrast(-found.value)
    return Contrast(-found.value, -found.high, -found.low, found.p)
