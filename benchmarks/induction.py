"""Split-merge training on a treebank: time, memory, size and likelihood (``limits.py`` has the released trainer's).

``python benchmarks/induction.py TREEBANK [--cycles 5]`` trains once and prints a line per phase. With
``--scaling 1000 10000 100000 500000 [--figure FILE.svg]`` it then samples treebanks of so many trees of 6 to 20 words
from the grammar and runs ``truesource induce`` on each, reading and writing included: wall and processor time, memory.
Set ``TRUESOURCE_THREADS=1`` for figures of one core. ``--set relaxation=1.8 em_split=25 em_merge=10`` trains by
over-relaxed EM, and ``--seed 1 2 3`` once with each of these seeds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.estimate.relative_frequency import RuleTable
from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.estimate.split_merge.estep import encode, likelihood
from truesource.grammar.estimate.split_merge.parameters import SparseRules
from truesource.grammar.estimate.split_merge.result import filtered, to_pcfg
from truesource.grammar.estimate.split_merge.trainer import PHASES, SplitMergeTrainer, Validation
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.printable import meter
from truesource.grammar.support.threads import threads
from truesource.grammar.tree import Tree
from truesource.grammar.treebank import Binarisation, Treebank

LENGTHS = LengthRange(6, 20)
CHUNK = 10_000  #: trees sampled and written at a time


class Cost(NamedTuple):
    """What one run of `truesource induce` took."""

    trees: int
    words: int
    wall: float  #: seconds
    cpu: float  #: seconds
    megabytes: float  #: most held at once


def memory() -> float:
    """Most memory this process has held, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def held(pid: int) -> float:
    """Most memory that a running program has held, MB; what its parent held is not counted (``ru_maxrss`` does)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0  # it has just ended
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)


def measured(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> tuple[float, float, float]:
    """Seconds on the clock and of all processors that a command and its children take, and the most MB it holds."""
    began, before, megabytes = time.perf_counter(), os.times(), 0.0
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, env=environment)
        while process.poll() is None:
            megabytes = max(megabytes, held(process.pid))
            time.sleep(0.05)
        wall, after = time.perf_counter() - began, os.times()
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(map(str, command))} failed:\n{said.read().decode()}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu, megabytes


def options(given: Sequence[str]) -> list[str]:
    """Options of `truesource induce` for settings ``KEY=VALUE`` of split-merge training."""
    return [word for key in given for word in ("--set", f"split_merge.{key}")]


def train(trees: Sequence[Tree], config: SplitMerge, seed: int) -> PCFG:
    """Train and print a line per phase; the grammar."""
    table = RuleTable.from_trees(trees)
    forests, _ = encode(trees, table)
    titles = f"{'s (wall)':>10} {'substates':>10} {'rules':>10} {'nats':>12} {'per token':>10}"
    print(f"{'phase':12} {'s (process)':>12} {titles}")
    with meter("split-merge", config.iterations) as progress:
        trainer = SplitMergeTrainer(config, forests, Validation((), 0), SparseRules.initial(table), progress)
        for cycle in range(1, config.cycles + 1):
            for phase in PHASES:
                began = time.process_time(), time.perf_counter()
                trainer.run(cycle, phase, np.random.default_rng([seed, cycle]))
                took = time.process_time() - began[0], time.perf_counter() - began[1]
                last = trainer.trace[-1]
                per_token = last["log_likelihood"]
                total = per_token * table.n_tokens
                sizes = f"{last['substates']:10,} {last['rules']:10,} {total:12,.0f} {per_token:10.4f}"
                print(f"{cycle} {phase:10} {took[0]:12.2f} {took[1]:10.2f} {sizes}", flush=True)
    final = filtered(trainer.rules, config.filter)
    print(f"filtered: {likelihood(forests, final).total:,.0f} nats")
    return to_pcfg(final, {})


def write_sampled(pcfg: PCFG, n: int, path: Path) -> int:
    """Sample ``n`` trees into a file; their number of words."""
    sampler, words = Sampler(pcfg, LENGTHS), 0
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as stream:
        for chunk in range(0, n, CHUNK):
            drawn = sampler.draw(min(CHUNK, n - chunk), random_state(1, chunk))
            for tree in sampler.trees(drawn):
                words += len(tree.leaves())
                stream.write(f"{tree}\n")
    return words


def scaling(pcfg: PCFG, sizes: Sequence[int], cycles: int, given: Sequence[str]) -> list[Cost]:
    """Run the command on sampled treebanks; print a line for each."""
    titles = ("trees", "words", "wall s", "CPU s", "peak MB", "trees/s")
    print(f"\n{cycles} cycles, {threads()} threads, whole command\n" + ("{:>10} " * len(titles)).format(*titles))
    found: list[Cost] = []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = Path(folder) / "trees.mrg.gz"
            words = write_sampled(pcfg, n, path)
            command = [Path(sys.executable).with_name("truesource"), "induce", path, "--cycles", str(cycles), "--force"]
            wall, cpu, megabytes = measured([*command, *options(given), "-o", Path(folder) / "grammar.npz"])
            found.append(Cost(n, words, wall, cpu, megabytes))
            cost = f"{wall:10.1f} {found[-1].cpu:10.1f} {found[-1].megabytes:10,.0f}"
            print(f"{n:10,} {words:10,} {cost} {n / wall:10,.0f}", flush=True)
    return found


def draw(costs: Sequence[Cost], cycles: int, given: Sequence[str], path: Path) -> None:
    """Time and memory against number of trees, with the settings ``given``."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    trees = [cost.trees for cost in costs]
    axes[0].plot(trees, [cost.wall for cost in costs], "o-", label=f"wall, {threads()} threads")
    axes[0].plot(trees, [cost.cpu for cost in costs], "s--", label="processor")
    linear = [costs[-1].wall * n / trees[-1] for n in trees]
    axes[0].plot(trees, linear, ":", color="grey", label="in proportion")
    axes[0].set(xscale="log", yscale="log", xlabel="trees", ylabel="seconds")
    axes[0].set_title(f"truesource induce --cycles {cycles}\n{' '.join(given)}".strip())
    axes[0].legend(frameon=False)
    axes[1].plot(trees, [cost.megabytes / 1024 for cost in costs], "o-")
    axes[1].set(xscale="log", xlabel="trees", ylabel="most memory, GiB", ylim=(0, None))
    figure.savefig(path)
    print(f"wrote {path}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebank")
    parser.add_argument("--cycles", type=int, default=5)
    parser.add_argument("--seed", type=int, nargs="+", default=[1])
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of split-merge training")
    parser.add_argument("--scaling", type=int, nargs="+", default=[], metavar="TREES")
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    values = {key: json.loads(value) for key, value in (word.split("=", 1) for word in arguments.set)}
    config = SplitMerge(cycles=arguments.cycles, **values)
    trees = Treebank.read(arguments.treebank).binarise(Binarisation()).trees
    print(f"{len(trees):,} trees read in {time.process_time():.2f} s of process time, imports included\n")
    for seed in arguments.seed:
        began = time.process_time()
        pcfg = train(trees, config, seed)
        print(f"\nseed {seed}: {time.process_time() - began:.1f} s; the process held {memory():,.0f} MB at most\n")
    if arguments.scaling:
        costs = scaling(pcfg, sorted(arguments.scaling), arguments.cycles, arguments.set)
        if arguments.figure:
            draw(costs, arguments.cycles, arguments.set, arguments.figure)


if __name__ == "__main__":
    main()
