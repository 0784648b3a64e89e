"""How reliable a ranking is, and which models each language tells apart, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from truesource.benchmark.reliability import SPLITS, RankAgreement, RankingReliability, SplitBy
from truesource.benchmark.separation import SIGNIFICANT, Separation
from truesource.generator.language_model import Objective
from truesource.report.table import Cell, ReportTable, TableRow, shown
from truesource.report.words import count, listed

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
