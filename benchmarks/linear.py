"""Exact scores by linear grammars: the automaton against the charts that any grammar can use, and growth with length.

``python benchmarks/linear.py [--states 50] [--moves 8] [--strings 480] [--share 20] [--figure FILE.svg]`` prints one
table from one run, of CPU time (all threads, tables of the grammar included). The charts score the strings of every
20th of the lengths that occur; their time is scaled by the share of the tokens cubed. ``--figure`` plots the
milliseconds of one string against its length.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.exact import Exact
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state

LENGTHS = LengthRange(200, 400)
FIXED = 245  #: tokens of the strings of one length
BY_AUTOMATON = (100, 200, 400, 1_000, 2_000, 4_000, 10_000)  #: tokens, in the figure
BY_CHARTS = (50, 100, 200, 400)
Strings = Sequence[Sequence[str]]
Scores = Callable[[Exact, Strings], Sequence[np.ndarray]]


def automaton(states: int, moves: int, words: int = 50, mean: float = 250.0, seed: int = 1) -> PCFG:
    """A random automaton as a right-linear grammar: ``moves`` words and next states by state, random weights."""
    rng = np.random.default_rng(seed)
    rules: list[tuple[str, tuple[str, ...], float]] = [(f"T{w}", (f"w{w}",), 1.0) for w in range(words)]
    for state in range(states):
        chosen = rng.choice(words * states, moves, replace=False)
        for (word, to), weight in zip(
            np.stack(divmod(chosen, states), axis=1), rng.dirichlet(np.ones(moves)), strict=True
        ):
            rules.append((f"Q{state}", (f"T{word}", f"Q{to}"), float(weight) * (1.0 - 1.0 / mean)))
        rules.append((f"Q{state}", (f"w{rng.integers(words)}",), 1.0 / mean))
    return PCFG.from_rules(rules, start="Q0", words=lambda _, children: children[0].startswith("w"), normalise=True)


def by_charts(pcfg: PCFG) -> Exact:
    """The exact quantities of a grammar as if it were not linear."""
    exact = Exact(pcfg)
    exact.__dict__["linear"] = None
    return exact


def draw(pcfg: PCFG, lengths: LengthRange, n: int) -> list[list[str]]:
    sampler = Sampler(pcfg, lengths)
    return sampler.sentences(sampler.draw(n, random_state(1)))


def some_lengths(strings: Strings, share: int) -> list[int]:
    """The strings of every ``share``-th of the lengths that occur; of one length, the same part of them."""
    sizes = np.array([len(s) for s in strings])
    found = np.unique(sizes)
    if len(found) < share:
        return list(range(max(len(strings) // share, 1)))
    return np.flatnonzero(np.isin(sizes, found[share // 2 :: share])).tolist()


def seconds(work: Callable[[], Sequence[np.ndarray]]) -> tuple[float, Sequence[np.ndarray]]:
    begun = time.process_time()
    found = work()
    return time.process_time() - begun, found


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    name: str
    strings: Strings
    scores: Scores


def cases(pcfg: PCFG, n: int) -> list[Case]:
    drawn, fixed = draw(pcfg, LENGTHS, n), draw(pcfg, LengthRange(FIXED, FIXED), n)
    tasks: tuple[tuple[str, Scores], ...] = (
        ("causal", lambda exact, strings: exact.causal_log_probs(strings)),
        (f"causal given {LENGTHS}", lambda exact, strings: exact.causal_log_probs(strings, LENGTHS)),
        ("masked", lambda exact, strings: exact.masked_log_probs(strings)),
    )
    return [
        Case(f"{task}, {n} strings of {what} tokens", strings, scores)
        for what, strings in ((str(LENGTHS), drawn), (str(FIXED), fixed))
        for task, scores in tasks
    ]


def table(pcfg: PCFG, n: int, share: int) -> None:
    """Print time, largest difference of a score, and memory: first of the automaton, then of the charts."""
    rows = cases(pcfg, n)
    for exact in (pcfg.exact, by_charts(pcfg)):  # compiles the kernels
        for case in rows[:3]:
            case.scores(exact, [rows[0].strings[0][:20]] * 2)
    ours = [(*seconds(lambda case=case: case.scores(Exact(pcfg), case.strings)), peak()) for case in rows]
    print(f"{'case':54}{'charts s':>9}{'ours s':>8}{'ratio':>7}{'difference':>12}{'charts MiB':>12}{'ours MiB':>9}")
    for case, (spent, scores, memory) in zip(rows, ours, strict=True):
        part = some_lengths(case.strings, share)
        some = [case.strings[i] for i in part]
        chart, wanted = seconds(lambda case=case, some=some: case.scores(by_charts(pcfg), some))
        chart *= sum(len(s) ** 3 for s in case.strings) / sum(len(s) ** 3 for s in some)
        apart = max(float(np.abs(a - scores[i]).max()) for i, a in zip(part, wanted, strict=True))
        figures = f"{chart:9.1f}{spent:8.3f}{chart / spent:7.0f}{apart:12.1e}{peak():12,.0f}{memory:9,.0f}"
        print(f"{case.name:54}{figures}", flush=True)
    print("CPU seconds; charts: of a part of the strings, scaled. Memory: peak of the process so far, automaton first")


def figure(pcfg: PCFG, path: Path) -> None:
    """Plot milliseconds of one string against its length."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    tasks: dict[str, Callable[[Exact, Strings, LengthRange], object]] = {
        "causal": lambda exact, strings, _: exact.causal_log_probs(strings),
        "causal given n/2 to n": lambda exact, strings, lengths: exact.causal_log_probs(strings, lengths),
        "masked": lambda exact, strings, _: exact.masked_log_probs(strings),
    }
    found, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    print(f"\n{'tokens':>8} {'by':>10} " + " ".join(f"{task + ', ms':>26}" for task in tasks))
    for name, exact, sizes, style in (
        ("charts", by_charts(pcfg), BY_CHARTS, "s--"),
        ("automaton", pcfg.exact, BY_AUTOMATON, "o-"),
    ):
        rows = []
        for n in sizes:
            strings, lengths = draw(pcfg, LengthRange(n, n), 1 if name == "charts" else 20), LengthRange(n // 2, n)
            times = []
            for task in tasks.values():
                task(exact, strings[:1], lengths)  # tables of the grammar and of the range
                begun = time.process_time()
                task(exact, strings, lengths)
                times.append(1e3 * (time.process_time() - begun) / len(strings))
            rows.append(times)
            print(f"{n:8,} {name:>10} " + " ".join(f"{x:26.2f}" for x in times), flush=True)
        for number, (task, column) in enumerate(zip(tasks, zip(*rows, strict=True), strict=True)):
            axis.plot(sizes, column, style, color=f"C{number}", label=f"{task}, {name}")
    axis.set(xscale="log", yscale="log", xlabel="tokens in the string", ylabel="CPU ms a string")
    axis.set_title(f"{len(pcfg.binary):,} binary rules, right-linear")
    axis.legend(frameon=False, fontsize="small")
    found.savefig(path)
    print(f"wrote {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=50)
    parser.add_argument("--moves", type=int, default=8, help="of each state")
    parser.add_argument("--strings", type=int, default=480)
    parser.add_argument("--share", type=int, default=20, help="one in so many lengths is scored by the charts, too")
    parser.add_argument("--figure", type=Path, help="plot growth here")
    options = parser.parse_args()
    pcfg = automaton(options.states, options.moves)
    print(f"{pcfg!r}\n")
    table(pcfg, options.strings, options.share)
    if options.figure:
        figure(pcfg, options.figure)


if __name__ == "__main__":
    main()
