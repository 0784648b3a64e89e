"""Split-merge training on a treebank: time, memory, size and likelihood, against the reference trainer's.

``python benchmarks/induction.py TREEBANK [--cycles 5] [--scaling 1000 10000 50000]``. With ``--scaling`` it samples
that many trees of 6 to 20 words from the grammar, times one E-step and M-step on them in every phase, and adds
up what a whole run on 500,000 trees would take. Set ``TRUESOURCE_THREADS=1`` for figures of one core.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence

import numpy as np

from generator.sampler import sample_treebank
from grammar.conditioning import LengthRange
from grammar.estimate import SplitMerge
from grammar.estimate.rules import RuleTable
from grammar.estimate.split_merge.encode import encode
from grammar.estimate.split_merge.estep import expected_entries, likelihood
from grammar.estimate.split_merge.parameters import Parameters
from grammar.estimate.split_merge.result import filtered, to_pcfg
from grammar.estimate.split_merge.sparse import SparseRules
from grammar.estimate.split_merge.split import split
from grammar.estimate.split_merge.train import PHASES, SMALLEST, Trainer, Validation
from grammar.pcfg import PCFG
from grammar.progress import meter
from grammar.tree import Tree
from grammar.treebank import Binarisation, Treebank

#: cycles -> user seconds of one core and MB of the released trainer on the 3,509 WSJ trees
REFERENCE = {3: (42.6, 481), 5: (167.3, 484)}
LENGTHS = LengthRange(6, 20)
GOAL = 500_000  #: trees of the run that ``--scaling`` extrapolates to


def memory() -> float:
    """Most memory this process has held, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def train(
    trees: Sequence[Tree], config: SplitMerge, seed: int, keep: bool
) -> tuple[Parameters, list[tuple[str, int, SparseRules]], RuleTable]:
    """Train and print a line per phase; the grammar, and with ``keep`` iterations and a grammar for each phase."""
    table = RuleTable.from_trees(trees)
    forests, _ = encode(trees, table)
    stages: list[tuple[str, int, SparseRules]] = []
    titles = f"{'s (wall)':>10} {'substates':>10} {'rules':>10} {'nats':>12} {'per token':>10}"
    print(f"{'phase':12} {'s (process)':>12} {titles}")
    with meter("split-merge", config.iterations) as progress:
        trainer = Trainer(config, forests, Validation((), 0), Parameters.initial(table), progress)
        for cycle in range(1, config.cycles + 1):
            if keep:
                start = split(trainer.parameters, config.noise, np.random.default_rng([seed, cycle]))
                stages.append((f"{cycle} split, start", config.em_split // 2, SparseRules.of(start)))
                del start
            for phase in PHASES:
                began = time.process_time(), time.perf_counter()
                trainer.run(cycle, phase, np.random.default_rng([seed, cycle]))
                took = time.process_time() - began[0], time.perf_counter() - began[1]
                rules = SparseRules.of(trainer.parameters)
                n = trainer.iterations(phase)
                if keep:
                    stages.append((f"{cycle} {phase}", n - n // 2 if phase == "split" else n, rules))
                per_token = trainer.trace[-1]["log_likelihood"]
                size, total = len(rules.prob), per_token * table.n_tokens
                sizes = f"{rules.layout.n_rows:10,} {size:10,} {total:12,.0f} {per_token:10.4f}"
                print(f"{cycle} {phase:10} {took[0]:12.2f} {took[1]:10.2f} {sizes}", flush=True)
    final = filtered(trainer.parameters, config.filter)
    print(f"filtered: {likelihood(forests, final).total:,.0f} nats")
    return final, stages, table


def scaling(pcfg: PCFG, stages: Sequence[tuple[str, int, SparseRules]], table: RuleTable, sizes: Sequence[int]) -> None:
    """Time an EM iteration in every phase on sampled trees; print seconds and what `GOAL` trees would take."""
    print(f"\n{'trees':>8} {'words':>6} {'sample':>8} {'encode':>8} {'nodes':>10}  EM iteration by phase, s (wall)")
    for n in sizes:
        began = time.perf_counter()
        treebank = sample_treebank(pcfg, n, seed=1, lengths=LENGTHS)
        binarise = Binarisation().binarise
        trees = [binarise(tree) for tree in treebank]
        sampled = time.perf_counter()
        forests, unknown = encode(trees, table)
        encoded = time.perf_counter()
        if unknown:
            raise SystemExit(f"{unknown} sampled trees use rules that the treebank does not have")
        words = sum(int(f.weights @ f.tokens) for f in forests) / n
        nodes = sum(len(f.rule) for f in forests)
        whole, shown = 0.0, []
        for name, iterations, rules in stages:
            if not iterations:
                continue
            begun = time.perf_counter()
            _, counts = expected_entries(forests, rules)
            rules.maximised(counts, SMALLEST)
            seconds = time.perf_counter() - begun
            whole += seconds * iterations
            shown.append(f"{name} {seconds:.3f}")
        times = f"{sampled - began:8.1f} {encoded - sampled:8.1f}"
        print(f"{n:8,} {words:6.1f} {times} {nodes:10,}  {'; '.join(shown[-4:])}")
        minutes = whole * GOAL / n / 60
        print(f"{'':8} all phases {whole:,.0f} s; {GOAL:,} trees in proportion {minutes:,.0f} min; {memory():,.0f} MB")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("treebank")
    parser.add_argument("--cycles", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scaling", type=int, nargs="+", default=[], metavar="TREES")
    arguments = parser.parse_args()
    config = SplitMerge(cycles=arguments.cycles)
    binarise = Binarisation().binarise
    trees = [binarise(tree) for tree in Treebank.read(arguments.treebank)]
    print(f"{len(trees):,} trees read in {time.process_time():.2f} s of process time, imports included\n")
    final, stages, table = train(trees, config, arguments.seed, bool(arguments.scaling))
    seconds = time.process_time()
    print(f"\nthe process: {seconds:.1f} s, {memory():,.0f} MB at most")
    if arguments.cycles in REFERENCE:
        reference, megabytes = REFERENCE[arguments.cycles]
        print(f"released trainer on wsj.train: {reference} s, {megabytes} MB; ratio {reference / seconds:.1f}")
    if arguments.scaling:
        scaling(to_pcfg(final, {}), stages, table, arguments.scaling)


if __name__ == "__main__":
    main()
