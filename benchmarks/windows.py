"""The best predictor that sees k words: tokens a second as k and the grammar grow, beside exact prefix scores.

python benchmarks/windows.py [--sentences 200] [--seed 1]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from truesource import PCFG
from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.windows import PlacedWindows, Windows
from truesource.grammar.support.arrays import random_state

GRAMMARS = ("dyck:k=2", "english:size=small", "english:size=medium", "english")
WORDS = (0, 1, 2, 3, 4, 6)


def tokens_a_second(tokens: int, score: Callable[[], object]) -> float:
    """Of one call, after its kernels are compiled."""
    begun = time.perf_counter()
    score()
    return tokens / (time.perf_counter() - begun)


def main() -> None:
    """Print a table: a row for each grammar and condition, a column for each k."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grammar", action="append", help="grammar file or language; may be repeated")
    given = parser.parse_args()
    heads = [f"k={k}" for k in WORDS]
    print(
        f"{'grammar':22} {'rules':>8} {'lengths':>8} {'tokens':>7} {'prefix':>8}",
        *(f"{h:>8}" for h in heads),
        "placed 2",
    )
    for name in given.grammar or GRAMMARS:
        pcfg = PCFG.load(name)
        for lengths in (None, LengthRange(6, 25)):
            sampler = Sampler(pcfg, lengths)
            drawn = sampler.sentences(sampler.draw(given.sentences, random_state(given.seed)))
            drawn = [sentence for sentence in drawn if len(sentence) <= 60]
            windows, placed = Windows(pcfg, lengths), PlacedWindows(pcfg, lengths)
            pcfg.exact.causal_log_probs(drawn[:2], lengths)
            windows.log_probs(drawn[:2], 2)
            placed.log_probs(drawn[:2], 2)
            n = sum(len(sentence) + 1 for sentence in drawn)
            rates = [tokens_a_second(n, partial(pcfg.exact.causal_log_probs, drawn, lengths))]
            rates += [tokens_a_second(n, partial(windows.log_probs, drawn, k)) for k in WORDS]
            some = drawn[: max(2, len(drawn) // 10)]
            rates.append(tokens_a_second(sum(len(s) + 1 for s in some), partial(placed.log_probs, some, 2)))
            losses = [-np.concatenate(windows.log_probs(drawn, k)).mean() for k in (0, 1, 2)]
            assert losses[0] >= losses[2], losses
            rules = sum(len(rules) for rules, _ in pcfg.tables())
            print(
                f"{name:22} {rules:8,} {lengths or 'none'!s:>8} {n:7,}",
                *(f"{rate:8,.0f}" for rate in rates),
                flush=True,
            )
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB at most")


if __name__ == "__main__":
    main()
