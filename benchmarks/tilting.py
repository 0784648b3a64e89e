"""Tilted grammars: rules, time and memory as the automaton and the grammar grow, beside the plain product.

python benchmarks/tilting.py [--budget 20000000]

The event is that a word stands exactly Q - 2 times, so its automaton has Q states. The plain product has a symbol for
each pair of states, whether or not a sentence needs it: its rules are counted, not made.
"""

from __future__ import annotations

import argparse
import math
import resource
import time

import numpy as np

from truesource import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.tilting.rewards import Count
from truesource.grammar.tilting.tilt import Tilting

#: the word that is counted; None: the most frequent one
GRAMMARS = {
    "english:size=small": "the",
    "english": "the",
    "zipf-pcfg:nonterminals=200,rules=60,classes=40,vocabulary=2000": None,
}
STATES = (2, 4, 8, 16)


def plain(pcfg: PCFG, states: int) -> int:
    """Rules of the product with all pairs of states."""
    return states**3 * len(pcfg.binary) + states**2 * len(pcfg.unary) + states * len(pcfg.lexical)


def main() -> None:
    """Print a table: a row for each grammar and number of states."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=20_000_000)
    given = parser.parse_args()
    print(
        f"{'grammar':20} {'rules':>7} {'Q':>3} {'plain':>12} {'ours':>10} {'ratio':>7} {'seconds':>8} {'MB':>6}  ln P"
    )
    for name, counted in GRAMMARS.items():
        pcfg = PCFG.load(name)
        word = counted or pcfg.vocabulary[int(np.argmax(pcfg.exact.expected_words))]
        for states in STATES:
            begun = time.perf_counter()
            try:
                tilted = Tilting(pcfg, Count((word,), states - 2, states - 2), given.budget).given()
            except InputError as error:
                print(f"{name[:20]:20} {pcfg.n_rules:7,} {states:3} refused: {error}")
                continue
            seconds, rules = time.perf_counter() - begun, tilted.pcfg.n_rules
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            assert math.isclose(tilted.pcfg.exact.total_mass, 1.0, abs_tol=1e-9)
            print(
                f"{name[:20]:20} {pcfg.n_rules:7,} {states:3} {plain(pcfg, states):12,} {rules:10,}"
                f" {plain(pcfg, states) / rules:7.1f} {seconds:8.2f} {memory:6.0f}  {tilted.log_z:.4f}"
            )


if __name__ == "__main__":
    main()
