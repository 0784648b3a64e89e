"""The section on the corpus: facts, and figures of lengths and words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.special import chdtrc

from truesource.evaluation.show.figures import BARS, QUIET, SAMPLE, TRUTH, figure, to_svg
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.truth import word_counts
from truesource.report.finished_run import FinishedRun, Part, shown_split, some_sentences

POINTS = 250  #: number of points of a rank-frequency curve, evenly spread on the logarithmic axis
SAMPLES = 8  #: number of sample sentences
LONGEST = 120  #: tokens; longer sentences are not in the figures
ALARM = 0.001  #: p-value of the test of lengths below which the report warns
FEWEST_WORDS = 10  #: minimum number of word types for the figure of frequency against rank


def length_figure(shares: FloatArray, exact: FloatArray, free: FloatArray, lengths: LengthRange | None) -> str:
    """Draw the share of sentences by length: bars sampled, points exact under ``lengths``, thin line exact without it.

    Args:
        shares: share of sampled sentences of each length, (n,).
        exact: probability of each length in the corpus, (n,).
        free: the same without the length condition, (n,).
        lengths: length condition.
    """
    x = np.arange(len(shares))
    with figure(9.4, 3.3, "lengths") as canvas:
        axes = canvas.subplots()
        axes.bar(x[1:], shares[1:], width=0.82, color=SAMPLE, label="sampled sentences (share)")
        if lengths is None:
            axes.plot(x[1:], exact[1:], color=TRUTH, marker="o", markersize=3.5, linewidth=1, label="exact probability")
        else:
            within = x[(x >= lengths.low) & (x <= lengths.high)]
            axes.plot(
                within,
                exact[within],
                color=TRUTH,
                marker="o",
                markersize=3.5,
                linewidth=1,
                label=f"exact, given {lengths.low} to {lengths.high} tokens",
            )
            axes.plot(x[1:], free[1:], color=QUIET, linewidth=1.2, linestyle=":", label="exact, any length")
        axes.set_xlabel("sentence length (tokens)")
        axes.set_ylabel("probability")
        axes.set_xlim(0.3, len(shares) - 0.5)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        axes.legend(loc="upper right")
        return to_svg(canvas, "lengths", "Sentence lengths, sampled and exact")


def treebank_length_figure(counts: Sequence[int], free: FloatArray) -> str:
    """Draw the share of treebank trees by length, against the exact distribution of the grammar without a condition."""
    tree_shares = np.zeros(len(free))
    tree_counts = np.asarray(counts, dtype=np.float64)[: len(free)]
    tree_shares[: len(tree_counts)] = tree_counts / max(1, sum(counts))
    x = np.arange(len(free))
    with figure(9.4, 2.9, "banklengths") as canvas:
        axes = canvas.subplots()
        axes.bar(x[1:], tree_shares[1:], width=0.82, color=BARS, label="trees of the treebank (share)")
        axes.plot(
            x[1:], free[1:], color=TRUTH, marker="o", markersize=2.5, linewidth=1, label="exact, from the grammar"
        )
        axes.set_xlabel("sentence length (tokens)")
        axes.set_ylabel("probability")
        axes.set_xlim(0.3, len(free) - 0.5)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        axes.legend(loc="upper right")
        return to_svg(canvas, "banklengths", "Sentence lengths of the treebank and of the grammar")


def zipf_figure(counts: IntArray, exact: FloatArray | None) -> str:
    """Draw relative frequency against rank of words, log-log: sampled and expected.

    Args:
        counts: occurrences of each sampled word, in any order.
        exact: expected occurrences of each word in a sentence of the corpus, (V,); None if infinite.
    """
    sampled = np.sort(counts)[::-1] / counts.sum()
    with figure(9.4, 3.5, "zipf") as canvas:
        axes = canvas.subplots()
        ranks = _spread(len(sampled))
        axes.loglog(
            ranks, sampled[ranks - 1], linestyle="none", marker="o", markersize=4, color=SAMPLE, label="sampled words"
        )
        if exact is not None:
            expected = np.sort(exact[exact > 0.0])[::-1]
            expected = expected / expected.sum()
            ranks = _spread(len(expected))
            axes.loglog(ranks, expected[ranks - 1], color=TRUTH, linewidth=1.3, label="exact expectation")
        axes.set_xlabel("rank of the word")
        axes.set_ylabel("share of tokens")
        axes.set_ylim(bottom=0.5 * sampled[-1])
        axes.grid(which="major")
        axes.legend(loc="upper right")
        return to_svg(canvas, "zipf", "Word frequency against rank, sampled and exact")


def _spread(n: int) -> IntArray:
    """Return ranks 1 to n, thinned evenly on a logarithmic axis."""
    return np.unique(np.round(np.geomspace(1, n, min(n, POINTS))).astype(np.int64))


def section(run: FinishedRun) -> Part:
    """Build the section: sizes, lengths, word frequencies and samples."""
    split = "train" if "train" in run.corpus.splits else next(iter(run.corpus.splits))
    sentences = some_sentences(run.corpus, split)
    lengths = run.corpus.lengths
    counts = np.bincount(run.corpus.token_counts(split))
    high = min(LONGEST, max(len(counts) - 1, lengths.high + 4 if lengths else 0))
    free = run.truth.exact.length_pmf(high)
    exact = run.truth.exact.length_pmf(high, lengths) if lengths else free
    shares = np.zeros(high + 1)
    shares[: len(counts)] = counts[: high + 1] / counts.sum()
    tokens = np.array(list(Counter(token for s in sentences for token in s).values()), dtype=np.int64)
    finite = lengths is not None or math.isfinite(run.truth.exact.mean_length)
    expected = word_counts(run.truth, lengths) if finite else None
    bank = (run.treebank or {}).get("lengths")
    long = min(LONGEST, max(len(bank) - 1, 2)) if bank else 0
    content = {
        "split": split,
        "transform": run.corpus.record.get("transform"),
        "read": len(sentences),
        "sentences": run.corpus.n_sentences(split),
        "alarm": ALARM,
        "lengths": lengths,
        "range_mass": run.truth.exact.range_mass(lengths) if lengths else None,
        "length_figure": length_figure(shares, exact, free, lengths),
        "length_test": _fit(counts, run.truth.exact.length_pmf(len(counts) - 1, lengths)),
        "bank_figure": treebank_length_figure(bank, run.truth.exact.length_pmf(long)) if bank else None,
        "zipf_figure": zipf_figure(tokens, expected) if len(tokens) >= FEWEST_WORDS else None,
        "types": len(tokens),
        "tokens": int(tokens.sum()),
        "samples": _samples(run, lengths),
        "samples_split": shown_split(run),
    }
    return Part("corpus", "The corpus", Path(__file__).with_name("section.html.j2"), content)


def _samples(run: FinishedRun, lengths: LengthRange | None) -> list[tuple[str, int, float]]:
    """Return sentences with number of tokens and exact log probability in the corpus, nats."""
    sentences, transform = some_sentences(run.corpus, shown_split(run), SAMPLES), run.corpus.transform
    originals = sentences if transform is None else [transform.undo(sentence) for sentence in sentences]
    log_probs = run.truth.exact.string_log_probs(originals)
    if lengths is not None:
        log_probs = log_probs - np.log(run.truth.exact.range_mass(lengths))
    return [(" ".join(s), len(s), float(p)) for s, p in zip(sentences, log_probs, strict=True)]


def _fit(counts: IntArray, exact: FloatArray) -> tuple[float, int, float] | None:
    """Test sampled lengths against exact ones: chi-square, degrees of freedom, p-value; None with too few cells.

    Lengths expected fewer than five times form one cell, together with lengths above the sampled maximum.
    """
    expected = counts.sum() * np.append(exact, max(0.0, 1.0 - float(exact.sum())))
    seen = np.append(counts, 0).astype(np.float64)
    large = expected >= 5.0
    cells = [(seen[large], expected[large])]
    if expected[~large].sum() >= 5.0:
        cells.append((seen[~large].sum(keepdims=True), expected[~large].sum(keepdims=True)))
    observed, expected = (np.concatenate(parts) for parts in zip(*cells, strict=True))
    if len(observed) < 3:
        return None
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return statistic, len(observed) - 1, float(chdtrc(len(observed) - 1, statistic))
