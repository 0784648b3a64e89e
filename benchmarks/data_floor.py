"""The floor of the data against simulation, and what a learner without trees pays beside it.

    python benchmarks/data_floor.py [--languages dyck ...] [--sizes 100 300 1000 3000 10000] [--figure FILE.svg]

One table a language, all in nats a sentence; some 20 minutes on one core. Left, of learners that know the rules and
count those of N trees, 1/2 added to each count: the closed form of `truesource.grammar.estimate.data_floor`, the mean
of exact divergences KL(P || estimate) of derivations over trees drawn anew with its standard error, their ratio, and
the slope of both on logarithmic axes, which is -1 in the limit. Right, of learners of one and the same N sentences,
the divergence of strings: the mean of ln P - ln Q over fresh strings, exact probabilities of both. With their trees;
without them, by EM (Lari and Young 1990) with the same 1/2 added to each expected count, from the truth itself (what
is lost where the optimum is the right one), and from random probabilities of the same rules: of the start whose text
is most probable, and the median and the worst of all starts, whose number stands beside them. These are of one text,
so that they scatter from row to row; only those of a row compare.

What is unknown of the tree where the string is known stands above each table, H(tree | string): nothing in the first
two languages, where whoever knows the rules needs no trees; little in the third; much in the hidden Markov model.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from truesource.evaluation.show.figures import MODEL, QUIET, SECOND, TRUTH, figure, to_svg, write_figure
from truesource.generator.sampler import Sampler
from truesource.grammar.estimate.data_floor import SMOOTHING, data_floor, free_parameters
from truesource.grammar.estimate.inside_outside import inside_outside, random_start
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.languages import parse
from truesource.grammar.pcfg import PCFG
from truesource.grammar.pcfg import language as language_of
from truesource.grammar.support.arrays import FloatArray, random_state

SEED = 1
LANGUAGES = ("dyck", "cfg3:levels=4", "english:size=small", "hmm:states=4,vocabulary=8")
SIZES = (100, 300, 1000, 3000, 10000)
HELD_OUT = 2000  #: fresh strings
TREES = 2_000_000  #: that simulations of a row draw together; of a large grammar a tenth
REPEATS = (50, 3000)  #: fewest and most simulations
RULES = 1000  #: a grammar with more is large: fewer starts, and EM up to `LARGEST` strings
LARGEST = 3000
STARTS, FEW = 10, 3
MANY = 1000  #: strings; more have few starts


@dataclass(frozen=True)
class Rules:
    """A grammar with its rules in the order of derivations, R in all."""

    pcfg: PCFG
    parent: np.ndarray  #: (R,)
    log_p: FloatArray  #: (R,)
    uses: FloatArray  #: (R,) expected in a derivation

    @classmethod
    def of(cls, pcfg: PCFG) -> Rules:
        counts = expected_counts(pcfg)
        parent = np.concatenate([rules[:, 0] for rules, _ in pcfg.tables()])
        log_p = np.concatenate([logp for _, logp in pcfg.tables()])
        return cls(pcfg, parent, log_p, np.concatenate([counts.binary, counts.unary, counts.lexical]))

    def counted(self, rules: np.ndarray) -> FloatArray:
        """Log probabilities (R,) of a learner that counts these rules."""
        seen, size = np.bincount(rules, minlength=len(self.parent)), np.bincount(self.parent)
        whole = np.bincount(self.parent, seen)[self.parent] + SMOOTHING * size[self.parent]
        return np.asarray(np.log((seen + SMOOTHING) / whole))

    def divergence(self, log_q: FloatArray) -> float:
        """KL(P || Q) of derivations, exact, nats a sentence."""
        return float(self.uses @ (self.log_p - log_q))

    def with_log_probs(self, log_q: FloatArray) -> PCFG:
        """The grammar with other probabilities."""
        a, b = len(self.pcfg.binary_logp), len(self.pcfg.binary_logp) + len(self.pcfg.unary_logp)
        return replace(self.pcfg, binary_logp=log_q[:a], unary_logp=log_q[a:b], lexical_logp=log_q[b:])


@dataclass(frozen=True)
class Strings:
    """Fresh strings, each once, how often each was drawn, and their exact probabilities."""

    different: list[list[str]]
    times: FloatArray
    log_p: FloatArray

    @classmethod
    def of(cls, pcfg: PCFG, drawn: list[list[str]]) -> Strings:
        counts: dict[tuple[str, ...], int] = {}
        for sentence in drawn:
            counts[tuple(sentence)] = counts.get(tuple(sentence), 0) + 1
        different = [list(sentence) for sentence in counts]
        times = np.array(list(counts.values()), dtype=np.float64)
        return cls(different, times, pcfg.exact.string_log_probs(different))

    def divergence(self, learned: PCFG) -> tuple[float, float]:
        """Mean of ln P - ln Q, and its standard error; infinite where Q cannot make a string."""
        gap = self.log_p - learned.exact.string_log_probs(self.different)
        n = self.times.sum()
        mean = float(self.times @ gap) / n
        return mean, float(np.sqrt(self.times @ np.square(gap - mean)) / n)


@dataclass(frozen=True)
class Row:
    """What was found for N."""

    n: int
    closed: float
    simulated: float
    error: float
    trees: float  #: strings, of the learner that counts the trees of the sentences
    error_trees: float
    truth: float | None = None  #: strings, EM from the truth; None: EM was left out
    best: float | None = None
    median: float | None = None
    worst: float | None = None
    starts: int = 0


def measured(rules: Rules, sampler: Sampler, fresh: Strings, n: int, iterations: int) -> Row:
    """One row of the table."""
    large = len(rules.parent) >= RULES
    repeats = int(np.clip(TREES / n / (10 if large else 1), *REPEATS))
    found = [
        rules.divergence(rules.counted(sampler.draw(n, random_state(SEED + 1, n, i)).rules)) for i in range(repeats)
    ]
    drawn = sampler.draw(n, random_state(SEED, n))
    with_trees = fresh.divergence(rules.with_log_probs(rules.counted(drawn.rules)))
    closed, spread = data_floor(rules.pcfg, n), float(np.std(found, ddof=1) / np.sqrt(repeats))
    row = Row(n, closed, float(np.mean(found)), spread, *with_trees)
    if large and n > LARGEST:
        return row
    sentences = sampler.sentences(drawn)
    em = {"iterations": iterations, "tolerance": 1e-6, "prior": SMOOTHING}
    truth = fresh.divergence(inside_outside(rules.pcfg, sentences, **em).pcfg)[0]  # type: ignore[arg-type]
    rng, results = np.random.default_rng([SEED, n]), []
    starts = FEW if large or n > MANY else STARTS
    for _ in range(starts):
        learned = inside_outside(random_start(rules.pcfg, rng), sentences, **em)  # type: ignore[arg-type]
        results.append((learned.trace[-1]["objective"], fresh.divergence(learned.pcfg)[0]))
    values = [value for _, value in results]
    return replace(
        row,
        truth=truth,
        best=max(results)[1],
        median=float(np.median(values)),
        worst=max(values),
        starts=starts,
    )


def table(name: str, sizes: Sequence[int], iterations: int) -> list[Row]:
    """Measure and print one language."""
    chosen, settings = parse(name)
    pcfg = language_of(chosen, **settings.model_dump(mode="json", exclude_none=True))
    assert isinstance(pcfg, PCFG)
    rules, sampler = Rules.of(pcfg), Sampler(pcfg)
    drawn = sampler.draw(HELD_OUT, random_state(SEED + 2))
    fresh = Strings.of(pcfg, sampler.sentences(drawn))
    print(f"\n{name}: {len(rules.parent):,} rules, {free_parameters(pcfg):,} free probabilities;")
    hidden = float((pcfg.exact.string_log_probs(sampler.sentences(drawn)) - drawn.log_prob).mean())
    print(f"H(tree | string) {abs(hidden):.2f} nats; {HELD_OUT:,} fresh strings; EM of at most {iterations} iterations")
    left = ("N", "closed form", "simulated", "+-", "ratio", "slope", "slope sim.")
    right = ("trees", "+-", "EM, truth", "EM, best", "median", "worst", "starts", "s")
    print(f"{'':70}{'strings:':>9}")
    print(f"{left[0]:>6}", *(f"{head:>11}" for head in left[1:3]), *(f"{head:>9}" for head in left[3:6]), end="")
    print(f"{left[6]:>11}", *(f"{head:>10}" for head in right[:6]), *(f"{head:>7}" for head in right[6:]))
    rows: list[Row] = []
    for n in sizes:
        began = time.perf_counter()
        row = measured(rules, sampler, fresh, n, iterations)
        slopes = ["", ""]
        if rows:
            last, step = rows[-1], np.log(n / rows[-1].n)
            pairs = ((row.closed, last.closed), (row.simulated, last.simulated))
            slopes = [f"{np.log(now / before) / step:.3f}" for now, before in pairs]
        rows.append(row)
        known = (row.trees, row.error_trees, row.truth, row.best, row.median, row.worst)
        cells = (f"{'-':>10}" if value is None else f"{value:10.5f}" for value in known)
        print(f"{n:6,d} {row.closed:11.5f} {row.simulated:11.5f} {row.error:9.5f}", end="")
        print(f" {row.simulated / row.closed:9.4f} {slopes[0]:>9}{slopes[1]:>11}", *cells, end="")
        print(f" {row.starts or '-':>7} {time.perf_counter() - began:7.0f}", flush=True)
    return rows


def picture(found: dict[str, list[Row]]) -> str:
    """Divergences by N on logarithmic axes, a panel a language."""
    with figure(3.3 * len(found), 3.5, "data_floor") as drawn:
        panels = np.atleast_1d(drawn.subplots(1, len(found)))
        for panel, (name, rows) in zip(panels, found.items(), strict=True):
            n = [row.n for row in rows]
            panel.plot(n, [row.closed for row in rows], color=TRUTH, label="closed form")
            simulated = [row.simulated for row in rows]
            panel.plot(n, simulated, color=QUIET, marker="o", linestyle=":", markersize=4, label="simulation")
            trees = [max(row.trees, np.finfo(float).tiny) for row in rows]
            panel.plot(n, trees, color=SECOND, linestyle="--", linewidth=1.2, label="one text, with its trees")
            em = [(row.n, row.best) for row in rows if row.best is not None]
            panel.plot(
                *zip(*em, strict=True), color=MODEL, marker="s", markersize=4, label="the same without, EM, best"
            )
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_xlabel("sentences")
            panel.set_title(name)
            panel.grid()
        panels[0].set_ylabel("KL, nats a sentence")
        panels[0].legend(loc="lower left")
        return to_svg(drawn, "data_floor", "Divergence by the number of sentences, with trees and without")


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--languages", nargs="+", default=LANGUAGES)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--iterations", type=int, default=80, help="of EM at most")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    found = {name: table(name, options.sizes, options.iterations) for name in options.languages}
    if options.figure is not None:
        write_figure(options.figure, lambda: picture(found))


if __name__ == "__main__":
    main()
