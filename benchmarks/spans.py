"""Exact scores by charts that hold the cells which are not zero alone, against charts of every cell in batches.

``python benchmarks/spans.py [--strings 20] [--seconds 4] [GRAMMAR ...]`` prints one table from one run. A grammar is
the name of a language or a file; its strings are drawn given the range of lengths that is the condition, too (25 times
as many where they are short). CPU milliseconds a string, tables of the grammar made before: medians of runs in turn
until ``--seconds`` are spent on a case. Every grammar has a process of its own, and memory is the peak of that process:
after all scores by cells, then after the case. "choice" is the CPU time that the choice between the two takes once.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median

import numpy as np

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.exact import Exact
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, random_state

DEEP, OTHERS = LengthRange(200, 600), LengthRange(6, 25)  #: tokens of the strings
Scores = Callable[[Exact], Sequence[FloatArray]]


def in_batches(pcfg: PCFG) -> Exact:
    """The exact quantities of a grammar as if no sentence were done cell by cell."""
    exact = Exact(pcfg)
    exact.charts()._cells.__dict__["suit"] = lambda *_: False
    return exact


def cases(strings: Sequence[Sequence[str]], lengths: LengthRange) -> dict[str, Scores]:
    return {
        "causal": lambda exact: exact.causal_log_probs(strings),
        "masked": lambda exact: exact.masked_log_probs(strings),
        f"given {lengths}": lambda exact: exact.causal_log_probs(strings, lengths),
    }


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, n: int, most: float) -> None:
    """Print the lines of one grammar."""
    deep = name.startswith("cfg3")
    pcfg, lengths = PCFG.load(name), DEEP if deep else OTHERS
    sampler = Sampler(pcfg, lengths)
    strings = sampler.sentences(sampler.draw(n if deep else 25 * n, random_state(1)))
    cells = pcfg.exact.charts()._cells
    words = [pcfg.encode(string).reshape(-1, 1) for string in strings]
    cells._passes(words[0][:2], 1)  # compiles the kernels
    choice = seconds(lambda: cells.suit(len(words[0]))), seconds(lambda: cells.suit(len(words[0]), lengths))
    made = sum(int(cells._passes(w, 10**7).cells[0]) for w in words[:20])
    share = made / sum(len(w) * (len(w) + 1) // 2 * len(pcfg.symbols) for w in words[:20])
    tokens = float(np.mean([len(string) for string in strings]))
    found, exacts = cases(strings, lengths), (in_batches(pcfg), pcfg.exact)
    ours = {task: score(pcfg.exact) for task, score in found.items()}
    by_cells = peak()
    for task, score in found.items():
        given = lengths if "given" in task else None
        tried = np.mean([cells.suit(len(w), given) for w in words])
        spent: list[list[float]] = [[], []]
        apart = 0.0
        while sum(map(sum, spent)) < most:
            for exact, times in zip(exacts, spent, strict=True):
                begun = time.process_time()
                scores = score(exact)
                times.append(time.process_time() - begun)
                apart = max(apart, *(float(np.abs(a - b).max()) for a, b in zip(scores, ours[task], strict=True)))
        before, after = (1e3 * median(times) / len(strings) for times in spent)
        print(
            f"{name.rpartition('/')[2]:18}{tokens:7.1f}{share:9.3%} {task:15}{tried:6.0%}{before:12.3f}{after:10.3f}"
            f"{before / after:8.2f}{apart:11.1e}{peak():12,.0f}{by_cells:10,.0f}"
            f"{1e3 * choice[given is not None]:10.1f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grammars", nargs="*", default=["cfg3b", "cfg3f", "cfg3k", "english"], metavar="GRAMMAR")
    parser.add_argument("--strings", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    print(
        f"{'grammar':18}{'tokens':>7}{'cells':>9} {'scores':15}{'tried':>6}{'batches ms':>12}{'cells ms':>10}"
        f"{'ratio':>8}{'difference':>11}{'batches MiB':>12}{'cells MiB':>10}{'choice ms':>10}",
        flush=True,
    )
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for name in options.grammars:
            pool.submit(measure, name, options.strings, options.seconds).result()


if __name__ == "__main__":
    main()
