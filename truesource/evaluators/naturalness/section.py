"""What the section on naturalness shows: a table of measures, a column a source, and the figure."""

from __future__ import annotations

from typing import Any

from truesource.evaluators.naturalness.records import NaturalnessRecord
from truesource.report.finished_run import FinishedRun, Record

#: title and measure of the rows; the JSON has all
ROWS = (
    ("mean length", "mean_length"),
    ("type-token ratio", "type_token_ratio"),
    ("Zipf-Mandelbrot alpha", "zipf_alpha"),
    ("Zipf-Mandelbrot beta", "zipf_beta"),
    ("  KL of the fit (nats)", "zipf_kl"),
    ("  alpha, published recipe", "zipf_alpha_paper"),
    ("  beta, published recipe", "zipf_beta_paper"),
    ("lengths: total variation", "length_tv"),
    ("  by chance", "length_tv_null"),
    ("  p-value", "length_tv_p"),
    ("  exact against reference", "length_tv_exact"),
    *((f"{n}-grams: Spearman", f"ngram_spearman_{n}") for n in range(1, 5)),
    *((f"{n}-grams: shared tokens", f"ngram_shared_tokens_{n}") for n in range(1, 5)),
)
PUBLISHED = ("zipf_alpha_paper", "zipf_beta_paper")  #: rows that the report leaves to the JSON


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Rows and figure for the template; None where the corpus was not compared with trees."""
    found = run.record("naturalness/naturalness.json", NaturalnessRecord)
    if found is None:
        return None
    sources = list(found["sentences"])
    scores: dict[tuple[str, str], Record] = {(r["source"], r["name"]): r for r in found["records"]}
    rows: list[dict[str, Any]] = [
        {"title": title.strip(), "below": title.startswith(" "), "cells": [scores.get((s, name)) for s in sources]}
        for title, name in ROWS
        if name not in PUBLISHED
    ]
    signed = scores.get((found["reference"], "ngram_spearman_1")) or scores[found["reference"], "zipf_alpha"]
    return {
        "reference": found["reference"],
        "sources": [(name, found["sentences"][name]) for name in sources],
        "raw": "raw grammar" in sources,
        "rows": [row for row in rows if any(cell is not None for cell in row["cells"])],
        "figure": run.figure("naturalness/naturalness.svg"),
        "signature": signed["signature"],
    }
