"""The table of naturalness, on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truesource.report.table import ReportTable, TableRow, score_cell
from truesource.report.words import count

#: measure, its name, what it means
MEASURES = (
    ("mean_length", "mean length", "tokens per sentence"),
    ("type_token_ratio", "type-token ratio", "different words per token, in equally many tokens"),
    ("zipf_alpha", "Zipf-Mandelbrot alpha", "exponent of the fitted law"),
    ("zipf_beta", "Zipf-Mandelbrot beta", "shift of the ranks"),
    ("zipf_kl", "  KL of the fit", "nats; 0 if the frequencies follow the law"),
    ("zipf_alpha_paper", "  alpha, published recipe", "fitted as in Jumelet & Zuidema (2023)"),
    ("zipf_beta_paper", "  beta, published recipe", "fitted as in Jumelet & Zuidema (2023)"),
    ("length_tv", "lengths: total variation", "distance from the lengths of the reference"),
    ("length_tv_null", "  by chance", "mean distance if both have one distribution"),
    ("length_tv_p", "  p-value", "probability of such a distance, or a larger one, by chance"),
    ("length_tv_exact", "  exact against reference", "distance of the grammar's exact lengths"),
    *(
        (f"ngram_spearman_{n}", f"{n}-grams: Spearman", "correlation of counts with half of the reference")
        for n in range(1, 5)
    ),
    *(
        (f"ngram_shared_tokens_{n}", f"{n}-grams: shared tokens", "share that half of the reference has too")
        for n in range(1, 5)
    ),
)


def measures_table(records: Sequence[Mapping[str, Any]], sentences: Mapping[str, int]) -> ReportTable:
    """A row for each measure, a column for each source.

    Args:
        records: of all sources.
        sentences: their number by source, the reference first.
    """
    scores = {(record["source"], record["name"]): record for record in records}
    rows = [
        (label, [score_cell(scores.get((source, name)), ".4f") for source in sentences], meaning)
        for name, label, meaning in MEASURES
    ]
    return ReportTable(
        columns=("measure", *(f"{source}\n{count(n, 'sentence')}" for source, n in sentences.items()), "meaning"),
        keys=("measure", *sentences, "meaning"),
        text=(0, -1),
        rows=[TableRow((label, *cells, meaning)) for label, cells, meaning in rows if any(cells)],
        note="95% intervals; of n-grams the range over random choices of sentences. N-grams of the reference: one half"
        " against the other, which is what a perfect source would reach.",
    )
