"""What the section on the corpus shows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from truesource.chain.corpus import figures
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.report.finished_run import FinishedRun, shown_split, some_sentences
from truesource.report.part import Part

SAMPLES = 8  #: sentences shown
LONGEST = 120  #: tokens; lengths beyond are left out of the figures
ALARM = 0.001  #: p-value of the test of lengths below which a reader is asked to look into it
FEWEST_WORDS = 10  #: different words from which frequency against rank is drawn


def section(run: FinishedRun) -> Part:
    """Sizes, lengths, word frequencies and samples."""
    split = "train" if "train" in run.corpus.splits else next(iter(run.corpus.splits))
    sentences = some_sentences(run.corpus, split)
    lengths = run.corpus.lengths
    counts = np.bincount(run.corpus.token_counts(split))
    high = min(LONGEST, max(len(counts) - 1, lengths.high + 4 if lengths else 0))
    free = run.pcfg.exact.length_pmf(high)
    exact = run.pcfg.exact.length_pmf(high, lengths) if lengths else free
    shown = np.zeros(high + 1, dtype=np.int64)
    shown[: len(counts)] = counts[: high + 1]
    tokens = np.array(list(Counter(token for s in sentences for token in s).values()), dtype=np.int64)
    finite = lengths is not None or run.pcfg.exact.spectral_radius < 1.0
    expected = expected_counts(run.pcfg, lengths).words if finite else None
    bank = (run.treebank or {}).get("lengths")
    long = min(LONGEST, max(len(bank) - 1, 2)) if bank else 0
    content = {
        "split": split,
        "transform": run.corpus.record.get("transform"),
        "read": len(sentences),
        "sentences": run.corpus.n_sentences(split),
        "alarm": ALARM,
        "lengths": lengths,
        "range_mass": run.pcfg.exact.range_mass(lengths) if lengths else None,
        "length_figure": figures.length_figure(shown, exact, free, lengths),
        "length_test": _fit(counts, run.pcfg.exact.length_pmf(len(counts) - 1, lengths)),
        "bank_figure": figures.treebank_length_figure(bank, run.pcfg.exact.length_pmf(long)) if bank else None,
        "zipf_figure": figures.zipf_figure(tokens, expected) if len(tokens) >= FEWEST_WORDS else None,
        "types": len(tokens),
        "tokens": int(tokens.sum()),
        "samples": _samples(run, lengths),
        "samples_split": shown_split(run),
    }
    return Part("corpus", "The corpus", Path(__file__).with_name("section.html.j2"), content)


def _samples(run: FinishedRun, lengths: LengthRange | None) -> list[tuple[str, int, float]]:
    """Sentences with their number of tokens and exact log probability in the corpus, nats."""
    sentences, transform = some_sentences(run.corpus, shown_split(run), SAMPLES), run.corpus.transform
    originals = sentences if transform is None else [transform.undo(sentence) for sentence in sentences]
    log_probs = run.pcfg.exact.string_log_probs(originals)
    if lengths is not None:
        log_probs = log_probs - np.log(run.pcfg.exact.range_mass(lengths))
    return [(" ".join(s), len(s), float(p)) for s, p in zip(sentences, log_probs, strict=True)]


def _fit(counts: IntArray, exact: FloatArray) -> tuple[float, int, float] | None:
    """Chi-square, degrees of freedom and p-value of sampled lengths against exact ones; None with too few cells.

    Lengths that are expected fewer than five times are one cell, with all that are longer than any sampled.
    """
    from scipy.stats import chi2

    expected = counts.sum() * np.append(exact, max(0.0, 1.0 - float(exact.sum())))
    seen = np.append(counts, 0).astype(np.float64)
    large = expected >= 5.0
    cells = [(seen[large], expected[large])]
    if expected[~large].sum() >= 5.0:
        cells.append((seen[~large].sum(keepdims=True), expected[~large].sum(keepdims=True)))
    observed, wanted = (np.concatenate(parts) for parts in zip(*cells, strict=True))
    if len(observed) < 3:
        return None
    statistic = float(((observed - wanted) ** 2 / wanted).sum())
    return statistic, len(observed) - 1, float(chi2.sf(statistic, len(observed) - 1))
