"""The exact oracle on a grammar of the published size: sentences a second, and the share of the arithmetic limit.

``python benchmarks/oracle.py [--sentences 10000] [--grammar FILE]``; without a file, a random state-split grammar
of 718 states, 270k binary, 13k unary and 2.2M lexical rules. ``--growth FILE.svg`` instead plots time against
sentence length and against the number of rules.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit
from shapes import PUBLISHED, split_grammar

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import MAX_WIDTH, threads
from truesource.grammar.inference.rules import rule_groups
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state

LENGTHS = LengthRange(8, 25)  #: their mean is about 13 words, as that of the published corpus


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


class Costs:
    """Multiply-adds of one sentence, if every state covers every span."""

    def __init__(self, pcfg: PCFG) -> None:
        self.pairs = len(pcfg.exact.pairs.left)
        self.groups = len(rule_groups(pcfg, 0, 1).second)
        self.rules = len(pcfg.binary)
        self.closure = int((pcfg.exact.unary_closure > 0.0).sum())
        self.corners = int((pcfg.exact.left_corner_closure > 0.0).sum())

    def inside(self, n: int) -> float:
        """Splits per child pair, rules and unary closure per span."""
        spans = n * (n + 1) / 2
        return self.pairs * (n**3 - n) / 6 + self.rules * n * (n - 1) / 2 + self.closure * spans

    def causal(self, n: int) -> float:
        """Inside, and what can start next."""
        return self.inside(n) + self.groups * n * (n + 1) / 2 + self.rules * n + self.corners * (n + 1)

    def masked(self, n: int) -> float:
        """Causal (whose scaling it uses) and outside."""
        outside = 2 * self.pairs * (n**3 - n) / 6 + self.rules * n * (n - 1) / 2 + self.closure * n * (n + 1) / 2
        return self.causal(n) + outside

    def conditioned(self, n: int) -> float:
        """Inside, and what can start next for every number of tokens still owed."""
        rooms = [max(LENGTHS.high - j, 0) for j in range(n + 1)]
        owed = sum(self.groups * r * (r - 1) / 2 + self.closure * r for r in rooms)
        later = sum((self.groups * j + self.rules) * r for j, r in enumerate(rooms) if j)
        return self.inside(n) + owed + later


def measure(pcfg: PCFG, n_sentences: int) -> None:
    """Print the table."""
    sampler = Sampler(pcfg, LENGTHS)
    sentences = sampler.sentences(sampler.draw(n_sentences, random_state(1)))
    exact, costs = pcfg.exact, Costs(pcfg)
    peaks = {np.float64: limit(np.float64), np.float32: limit(np.float32)}
    tasks: list[tuple[str, Callable[[list[list[str]]], object], Callable[[int], float]]] = [
        ("causal", exact.causal_log_probs, costs.causal),
        ("causal, float32", lambda s: exact.causal_log_probs(s, dtype=np.float32), costs.causal),
        ("masked", exact.masked_log_probs, costs.masked),
        ("masked, float32", lambda s: exact.masked_log_probs(s, dtype=np.float32), costs.masked),
        (f"causal given {LENGTHS}", lambda s: exact.causal_log_probs(s, LENGTHS), costs.conditioned),
    ]
    print(f"{pcfg!r}; {len(sentences)} sentences of {mean(sentences):.1f} words, {threads()} threads")
    rates = ", ".join(f"{dtype.__name__} {rate / 1e9:.1f}e9" for dtype, rate in peaks.items())
    print(f"limit of the inner loop, multiply-adds/s (y += a x, {MAX_WIDTH} wide, in cache): {rates}")
    print("multiply-adds: counted as if every state covered every span, so the share of the limit is at most this\n")
    print(f"{'task':24} {'sentences/s':>12} {'10,000 take':>12} {'multiply-adds':>14} {'of limit':>9}")
    for name, work, cost in tasks:
        work(sentences[:1])
        begun = time.perf_counter()
        work(sentences)
        spent = time.perf_counter() - begun
        needed = sum(cost(len(s)) for s in sentences)
        rate = len(sentences) / spent
        print(
            f"{name:24} {rate:12.1f} {10_000 / rate / 60:8.1f} min {needed / len(sentences) / 1e6:12.0f}M"
            f" {needed / spent / peaks[np.float32 if '32' in name else np.float64]:9.0%}",
            flush=True,
        )
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def mean(sentences: list[list[str]]) -> float:
    """Words a sentence."""
    return sum(map(len, sentences)) / len(sentences)


def growth(path: Path) -> None:
    """Plot seconds a sentence against length and against rules, with the counted cost for comparison."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    base = split_grammar(330, 31_000, 1_200, 125_000, 22_000)
    for axis, label in ((left, "words in the sentence"), (right, "binary rules")):
        axis.set(xscale="log", yscale="log", xlabel=label, ylabel="ms a sentence")
    print(f"{'grammar':>10} {'words':>6} {'causal ms':>10} {'masked ms':>10}")
    by_length = [(n, *_times(base, n)) for n in (5, 10, 20, 40, 80, 160)]
    sizes = ((120, 4_000), (220, 12_000), (330, 31_000), (500, 100_000), (718, 272_000))
    grammars = [split_grammar(s, r, r // 20, 8 * r, 20_000) for s, r in sizes]
    by_rules = [(len(g.binary), *_times(g, 13)) for g in grammars]
    for axis, table, costs in (
        (left, by_length, [Costs(base).causal(n) for n, *_ in by_length]),
        (right, by_rules, [Costs(g).causal(13) for g in grammars]),
    ):
        x = [row[0] for row in table]
        axis.plot(x, [row[1] for row in table], "o-", label="causal")
        axis.plot(x, [row[2] for row in table], "s-", label="masked")
        scale = table[-1][1] / costs[-1]
        axis.plot(x, [scale * c for c in costs], ":", color="grey", label="counted multiply-adds (scaled)")
        axis.legend(frameon=False)
    left.set_title(f"{len(base.binary):,} binary rules")
    right.set_title("sentences of 13 words")
    figure.savefig(path)
    print(f"wrote {path}")


def _times(pcfg: PCFG, n: int) -> tuple[float, float]:
    """Milliseconds a sentence of n words, causal and masked, one batch a thread."""
    sampler = Sampler(pcfg, LengthRange(n, n))
    count = threads() * (MAX_WIDTH if n <= 40 else 8)
    sentences = sampler.sentences(sampler.draw(count, random_state(1)))
    found = []
    for work in (pcfg.exact.causal_log_probs, pcfg.exact.masked_log_probs):
        work(sentences[:1])
        begun = time.perf_counter()
        work(sentences)
        found.append(1e3 * (time.perf_counter() - begun) / count)
    print(f"{len(pcfg.binary):10,} {n:6} {found[0]:10.2f} {found[1]:10.2f}", flush=True)
    return found[0], found[1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--grammar", type=Path)
    parser.add_argument("--growth", type=Path)
    options = parser.parse_args()
    if options.growth:
        growth(options.growth)
    else:
        measure(PCFG.load(options.grammar) if options.grammar else split_grammar(**PUBLISHED), options.sentences)


if __name__ == "__main__":
    main()
