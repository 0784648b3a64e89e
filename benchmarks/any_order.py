"""Exact words at gaps: patterns a second, and how well the chain rule holds over random orders.

    python benchmarks/any_order.py [--sentences 200] [--orders 20]

Sentences of embedded English of 4 to 25 words are filled in random orders, word by word: the sum of ln P(word | those
known so far) is ln P(sentence | its length), whatever the order. Beside the patterns a second stand the exact masked
words of the same sentences a second, which are the patterns with one gap; before them, time and peak memory of one
pattern of 200 words of which half are known.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.embedded import english
from truesource.grammar.inference.any_order import AnyOrder, Pattern
from truesource.grammar.support.arrays import random_state

LENGTHS = LengthRange(4, 25)
AT_ONCE = 2000  #: patterns
LONG = 200  #: words


def long_pattern(sampler: Sampler, rng: np.random.Generator) -> Pattern:
    """A drawn sentence of which every other word, at random, is not known."""
    sentence = sampler.sentences(sampler.draw(1, random_state(1)))[0]
    known = set(rng.permutation(len(sentence))[: len(sentence) // 2].tolist())
    return [word if i in known else None for i, word in enumerate(sentence)]


def peak() -> float:
    """The most memory that this process has held, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    """Measure, and print a table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--sentences", type=int, default=200)
    given.add_argument("--orders", type=int, default=20)
    asked = given.parse_args()
    pcfg = english()
    truth, sampler, rng = AnyOrder(pcfg), Sampler(pcfg, LENGTHS), np.random.default_rng(1)
    text = sampler.sentences(sampler.draw(asked.sentences, random_state(1)))
    whole = pcfg.exact.string_log_probs(text) - np.log(pcfg.exact.length_pmf(LENGTHS.high)[[len(s) for s in text]])
    pcfg.exact.masked_log_probs(text[:2])  # compiles
    truth.marginals([[None, *text[0][1:]]])
    pattern = long_pattern(Sampler(pcfg, LengthRange(LONG, LONG)), rng)
    before, began = peak(), time.perf_counter()
    truth.marginals([pattern])
    print(
        f"{LONG} words, half of them known: {time.perf_counter() - began:.1f} s, peak {peak():,.0f} MB of memory",
        end="",
    )
    print(f" ({before:,.0f} MB before)")
    began = time.perf_counter()
    pcfg.exact.masked_log_probs(text)
    masked = sum(map(len, text)) / (time.perf_counter() - began)
    worst, looked, seconds, busy = 0.0, 0, 0.0, 0.0
    for _ in range(asked.orders):
        patterns: list[Pattern] = []
        wanted: list[tuple[int, int, int]] = []
        for number, sentence in enumerate(text):
            order = rng.permutation(len(sentence)).tolist()
            for step, at in enumerate(order):
                known = set(order[:step])
                patterns.append([word if i in known else None for i, word in enumerate(sentence)])
                wanted.append((number, at, pcfg.word_ids[sentence[at]]))
        totals = np.zeros(len(text))
        for start in range(0, len(patterns), AT_ONCE):
            began, work = time.perf_counter(), time.process_time()
            tables = truth.marginals(patterns[start : start + AT_ONCE])
            seconds += time.perf_counter() - began
            busy += time.process_time() - work
            for table, (number, at, word) in zip(tables, wanted[start : start + AT_ONCE], strict=True):
                totals[number] += np.log(table[at, word])
        looked += len(patterns)
        worst = max(worst, float(np.abs(totals - whole).max()))
    print(f"{asked.sentences} sentences, {asked.orders} random orders of each, {looked:,} patterns")
    print(f"patterns a second                  {looked / seconds:10,.0f}")
    print(f"patterns a second of one processor {looked / busy:10,.0f}")
    print(f"masked words a second (one pass for all words of a sentence) {masked:10,.0f}")
    print(f"largest difference of ln P(sentence | length), nats          {worst:.1e}")


if __name__ == "__main__":
    main()
