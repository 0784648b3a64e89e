"""The table of tendencies, of the samples of a call on the terminal and of a decoding scheme in the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truesource.report.table import Cell, ReportTable, TableRow, shown

Findings = Mapping[str, Mapping[str, Any]]  #: records of one sample by name
LEVEL = 0.05  #: of adjusted p-values that have a star
#: measure, its name, what it means
MEASURES = (
    ("length_ks", "sentence length: KS", "largest difference of the distribution functions, 0 to 1"),
    ("length_mean_difference", "  mean, difference", "words"),
    ("length_impossible", "  impossible lengths", "share of sentences"),
    ("stopwords_ks", "stopwords: KS", "of the share of stopwords in a sentence"),
    ("stopwords_mean_difference", "  mean share, difference", ""),
    ("symbols_ks", "symbols: KS", "of the share of symbols in a sentence"),
    ("symbols_mean_difference", "  mean share, difference", ""),
    ("unigram_tv", "words: total variation", "share of tokens that would have to be other words, 0 to 1"),
    ("unigram_linf", "  largest difference", "of the probability of a word"),
    ("unknown_share", "  share of <unk>", "of all tokens"),
    ("outside_share", "  outside the grammar", "share of tokens; above 0 proves that the distributions differ"),
    ("rank_ks", "rank-frequency: KS", "word frequencies in the order of their ranks"),
    ("rank_ks_own_law", "  to its own Zipf law", ""),
    ("rank_ks_reference_law", "  to the reference's law", ""),
    ("zipf_exponent", "  Zipf exponent", "frequency falls with this power of the rank"),
    ("heaps_beta", "Heaps exponent", "different words grow with this power of the length"),
    ("heaps_beta_difference", "  difference", ""),
    ("heaps_dispersion", "  dispersion", "variance over that of the law"),
    ("types_gap", "  at equal lengths", "different words in a sentence, difference"),
    ("types", "different words", "in equally many tokens of each sample"),
    ("bigram_types", "different pairs of words", "in equally many pairs of each sample"),
)


def measures_table(samples: Mapping[str, Findings], title: str = "", sentences: Mapping[str, int] = {}) -> ReportTable:
    """A row for each measure, a column for each sample.

    Args:
        samples: records by name of the sample and of the measure.
        title: of the table.
        sentences: their number by sample, where it is known.
    """
    rows = [
        (label, [_cell(found.get(name)) for found in samples.values()], meaning) for name, label, meaning in MEASURES
    ]
    columns = [f"{name}\n{sentences[name]:,} sentences" if name in sentences else name for name in samples]
    families = {found["family"] for row in samples.values() for found in row.values() if found.get("family")}
    return ReportTable(
        title=title,
        columns=("measure", *columns, "meaning"),
        keys=("measure", *samples, "meaning"),
        text=(0, -1),
        rows=[TableRow((label, *cells, meaning)) for label, cells, meaning in rows if any(cells)],
        note="After a value: what 95% of chance gives, and p, the probability of such a value, or one farther off, by"
        f" chance. * p is {LEVEL} or less after adjustment (Holm) for {'; '.join(sorted(families)) or 'no test'}",
    )


def starred(record: Mapping[str, Any]) -> bool:
    """Whether the adjusted p-value of a test is below the level."""
    adjusted = record.get("p_holm")
    return adjusted is not None and bool(adjusted <= LEVEL)


def number(value: float) -> str:
    """A value, or a large count."""
    return shown(value if abs(value) >= 5e-5 else 0.0, ",.0f" if abs(value) >= 100 else ".4f")


def _cell(record: Mapping[str, Any] | None) -> Cell | None:
    if record is None:
        return None
    text, score = number(record["value"]), (record["value"], None, None)
    if "p" not in record:
        return Cell(text, score=score)
    chance = f"{number(record['chance_low'])} \N{EN DASH} {number(record['chance_high'])}"
    return Cell(f"{text}*" if starred(record) else text, small=f"{chance}, p = {record['p']:.3g}", score=score)
