"""Sentence permutations of word frequencies: time and memory at 2 x 1 million sentences, and scipy's route.

    python benchmarks/permutations.py [GRAMMAR] [--sentences 1000000] [--permutations 999]

The grammar (default: the embedded English one) gives the sentences. scipy's `permutation_test` is run on a size that it
can do, with the same statistic, and ours beside it on that size.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from scipy import stats

from truesource.evaluation.measures.discrete_tests import permuted_words
from truesource.evaluation.measures.integer_corpus import Encoded
from truesource.evaluation.tendencies.truth import TrueText
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.embedded import english
from truesource.grammar.pcfg import PCFG

SMALL, FEW = 5_000, 99  #: sentences of a side and permutations that scipy is given


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("grammar", nargs="?")
    arguments.add_argument("--sentences", type=int, default=1_000_000)
    arguments.add_argument("--permutations", type=int, default=999)
    given = arguments.parse_args()
    truth = TrueText(english() if given.grammar is None else PCFG.load(given.grammar), LengthRange(6, 25))
    small = list(truth.samples(SMALL, 2, seed=1))
    permuted_words(*small, draws=16)  # compiles
    seconds, found = timed(lambda: permuted_words(*small, draws=FEW))
    theirs, _ = timed(lambda: scipys(*small, FEW))
    print(f"| sentences a side | permutations | ours, s | scipy, s | ratio | tv by chance |\n|{'---|' * 6}")
    row = f"| {SMALL:,} | {FEW} | {seconds:.2f} | {theirs:.2f} | {theirs / seconds:.0f} |"
    print(f"{row} {found['tv'].mean():.4f} |")
    before = peak()
    large = list(truth.samples(given.sentences, 2, seed=2))
    tokens = sum(len(side.tokens) for side in large)
    seconds, found = timed(lambda: permuted_words(*large, draws=given.permutations))
    mean = found["tv"].mean()
    print(f"| {given.sentences:,} | {given.permutations} | {seconds:.1f} | - | - | {mean:.5f} |")
    print(f"\n{tokens:,} tokens, {len(truth.words):,} words; peak {peak():,.0f} MiB ({before:,.0f} before the samples)")


def scipys(first: Encoded, second: Encoded, draws: int) -> float:
    """The total variation of word frequencies by `scipy.stats.permutation_test`, sentences as observations."""
    counts = [np.zeros((len(side), side.vocabulary), dtype=np.int16) for side in (first, second)]
    for table, side in zip(counts, (first, second), strict=True):
        np.add.at(table, (side.sentence, side.tokens), 1)

    def statistic(a: np.ndarray, b: np.ndarray) -> float:
        one, two = counts[0][a[a < len(first)]].sum(axis=0), counts[0][b[b < len(first)]].sum(axis=0)
        one = one + counts[1][a[a >= len(first)] - len(first)].sum(axis=0)
        two = two + counts[1][b[b >= len(first)] - len(first)].sum(axis=0)
        return float(0.5 * np.abs(one / one.sum() - two / two.sum()).sum())

    rows = np.arange(len(first)), np.arange(len(first), len(first) + len(second))
    return float(
        stats.permutation_test(rows, statistic, n_resamples=draws, vectorized=False, alternative="greater").pvalue
    )


def timed(work):
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def peak() -> float:
    """MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
