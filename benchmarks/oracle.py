"""The exact oracle on a grammar of the published size: sentences a second, and the share of the arithmetic limit.

``python benchmarks/oracle.py [--sentences 10000] [--grammar FILE]``; without a file, a random state-split grammar
of 718 states, 270k binary, 13k unary and 2.2M lexical rules. Multiply-adds are counted on some of the sentences.
``benchmarks/roofline.py`` has all kernels, memory and growth.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit
from operations import counting
from shapes import PUBLISHED, split_grammar

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import MAX_WIDTH, threads
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state

LENGTHS = LengthRange(8, 25)  #: their mean is about 13 words, as that of the published corpus
COUNTED = 1_000  #: sentences; many, so that batches of one length are as full as all are


@njit(nogil=True, fastmath={"contract"})
def _axpy(rows, x, scale, times):
    for _ in range(times):
        for a in range(rows.shape[0]):
            for w in range(rows.shape[1]):
                rows[a, w] += scale * x[w]


def limit(dtype: type) -> float:
    """Multiply-adds a second of all threads, rows in the first cache: what the kernels' inner loop could do at best."""
    rows, x = np.zeros((32, MAX_WIDTH), dtype), np.ones(MAX_WIDTH, dtype)
    scale = dtype(1e-9)
    _axpy(rows, x, scale, 1)
    begun = time.perf_counter()
    _axpy(rows, x, scale, 100_000)
    return threads() * 100_000 * rows.size / (time.perf_counter() - begun)


def measure(pcfg: PCFG, n_sentences: int) -> None:
    """Print the table."""
    sampler = Sampler(pcfg, LENGTHS)
    sentences = sampler.sentences(sampler.draw(n_sentences, random_state(1)))
    exact = pcfg.exact
    peaks = {np.float64: limit(np.float64), np.float32: limit(np.float32)}
    tasks: list[tuple[str, Callable[[list[list[str]]], object]]] = [
        ("causal", exact.causal_log_probs),
        ("causal, float32", lambda s: exact.causal_log_probs(s, dtype=np.float32)),
        ("masked", exact.masked_log_probs),
        ("masked, float32", lambda s: exact.masked_log_probs(s, dtype=np.float32)),
        (f"causal given {LENGTHS}", lambda s: exact.causal_log_probs(s, LENGTHS)),
    ]
    print(f"{pcfg!r}; {len(sentences)} sentences of {mean(sentences):.1f} words, {threads()} threads")
    rates = ", ".join(f"{dtype.__name__} {rate / 1e9:.1f}e9" for dtype, rate in peaks.items())
    print(f"limit of the inner loop, multiply-adds/s (y += a x, {MAX_WIDTH} wide, in cache): {rates}")
    print(f"multiply-adds of one sentence: counted on the first {min(COUNTED, len(sentences)):,}\n")
    print(f"{'task':24} {'sentences/s':>12} {'10,000 take':>12} {'multiply-adds':>14} {'of limit':>9}")
    for name, work in tasks:
        work(sentences[:1])
        begun = time.perf_counter()
        work(sentences)
        spent = time.perf_counter() - begun
        with counting() as tally:
            work(sentences[:COUNTED])
        needed = tally.adds / min(COUNTED, len(sentences))
        rate = len(sentences) / spent
        print(
            f"{name:24} {rate:12.1f} {10_000 / rate / 60:8.1f} min {needed / 1e6:12.0f}M"
            f" {needed * rate / peaks[np.float32 if '32' in name else np.float64]:9.0%}",
            flush=True,
        )
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def mean(sentences: list[list[str]]) -> float:
    """Words a sentence."""
    return sum(map(len, sentences)) / len(sentences)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--grammar", type=Path)
    options = parser.parse_args()
    measure(PCFG.load(options.grammar) if options.grammar else split_grammar(**PUBLISHED), options.sentences)


if __name__ == "__main__":
    main()
