"""Exact scoring, sampling and parsing on the embedded English grammar: sentences a second, against NLTK.

Prints one table from one run: ours, peer, ratio, peak memory. ``python benchmarks/exact.py [--sentences N]``
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import nltk
from nltk.grammar import Nonterminal, ProbabilisticProduction
from nltk.parse.pchart import InsideChartParser

from truesource import english
from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.estimate.relative_frequency import relative_frequency
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state

LENGTHS = LengthRange(6, 25)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    task: str
    ours: float  #: sentences a second
    peer: float | None = None
    name: str = ""


def rate(work: Callable[[], object], n: int) -> float:
    """Sentences a second of one call."""
    begun = time.perf_counter()
    work()
    return n / (time.perf_counter() - begun)


def nltk_grammar(pcfg: PCFG, words: set[str]) -> nltk.PCFG:
    """NLTK's form of a grammar, with the lexical rules of ``words`` only, which makes NLTK much faster."""
    import numpy as np

    names = [Nonterminal(s) for s in pcfg.symbols]
    rules = [
        ProbabilisticProduction(names[a], [names[b], names[c]], prob=float(p))
        for (a, b, c), p in zip(pcfg.binary, np.exp(pcfg.binary_logp), strict=True)
    ]
    rules += [
        ProbabilisticProduction(names[a], [names[b]], prob=float(p))
        for (a, b), p in zip(pcfg.unary, np.exp(pcfg.unary_logp), strict=True)
    ]
    rules += [
        ProbabilisticProduction(names[a], [pcfg.vocabulary[w]], prob=float(p))
        for (a, w), p in zip(pcfg.lexical, np.exp(pcfg.lexical_logp), strict=True)
        if pcfg.vocabulary[w] in words
    ]
    unchecked = object.__new__(nltk.PCFG)  # the constructor demands the rows to sum to one
    nltk.CFG.__init__(unchecked, names[pcfg.start], rules)
    return unchecked


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=2000)
    n = parser.parse_args().sentences
    pcfg = english()
    sampler = Sampler(pcfg, LENGTHS)
    free = Sampler(pcfg)
    sentences = sampler.sentences(sampler.draw(n, random_state(1)))
    warm = sentences[:2]
    pcfg.exact.masked_log_probs(warm)
    pcfg.exact.causal_log_probs(warm, LENGTHS)
    pcfg.viterbi(warm[0])
    free.draw(1, random_state(1))
    rows = [
        Row("causal, every token", rate(lambda: pcfg.exact.causal_log_probs(sentences), n)),
        Row("causal given 6..25", rate(lambda: pcfg.exact.causal_log_probs(sentences, LENGTHS), n)),
        Row("masked, every token", rate(lambda: pcfg.exact.masked_log_probs(sentences), n)),
        Row("sample given 6..25", rate(lambda: sampler.draw(100_000, random_state(2)), 100_000)),
        Row("sample", rate(lambda: free.draw(100_000, random_state(2)), 100_000)),
    ]
    # NLTK takes minutes a sentence on the grammar itself: both parse with one read off 30 sampled trees
    few = free.draw(30, random_state(3))
    small = relative_frequency(list(free.trees(few, binarised=True)))
    short = sorted((s for s in free.sentences(few) if len(s) <= 9), key=len)[:5]
    words = {word for sentence in short for word in sentence}
    chart = InsideChartParser(nltk_grammar(small, words))
    small.viterbi(short[0])
    rows.append(
        Row(
            f"best tree, {small.n_rules} rules, <= 9 words",
            rate(lambda: [small.viterbi(s) for s in short * 20], len(short) * 20),
            rate(lambda: [next(iter(chart.parse(s))) for s in short], len(short)),
            f"nltk {nltk.__version__}",
        )
    )
    print(f"{pcfg!r}, {n} sentences of {sum(map(len, sentences)) / n:.1f} words\n")
    print(f"{'task':38} {'ours /s':>12} {'peer /s':>10} {'ratio':>8}  peer")
    for row in rows:
        peer = "" if row.peer is None else f"{row.peer:10.2f}"
        ratio = "" if row.peer is None else f"{row.ours / row.peer:8.0f}"
        print(f"{row.task:38} {row.ours:12,.0f} {peer:>10} {ratio:>8}  {row.name}")
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
