"""How much of a known grammar split-merge gets back from its trees: held-out likelihood and KL rate to the truth.

``python benchmarks/recovery.py [--trees 3000 10000 30000 100000 300000] [--cycles 7] [--figure FILE.svg]``. Trees are
sampled from the embedded English grammar and have treebank labels only (its agreement, selection and other states
are gone). Each induced grammar scores held-out sentences of the truth exactly; the mean of ln P - ln Q over them
estimates the KL rate without bias, and the interval is its 95% one. Sentences that the induced grammar cannot make (a
word or rule never seen) have infinite divergence; they are counted and left out of both sides.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from truesource.generator.sampler import Sampler, sample_treebank
from truesource.grammar.embedded import english
from truesource.grammar.estimate.relative_frequency import RuleTable
from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.estimate.split_merge.estep import encode
from truesource.grammar.estimate.split_merge.parameters import SparseRules
from truesource.grammar.estimate.split_merge.result import filtered, to_pcfg
from truesource.grammar.estimate.split_merge.trainer import PHASES, SplitMergeTrainer, Validation
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray, random_state
from truesource.grammar.support.printable import meter
from truesource.grammar.treebank import Binarisation, Treebank

SEED = 1
HELD_OUT = 4_000  #: sentences
GOAL = 0.01  #: the truth's log-likelihood, per token, up to this share

Row = tuple[int, int, float, float]  #: trees, cycles, KL rate, half of its interval


def compare(
    pcfg: PCFG, sentences: Sequence[list[str]], truth: FloatArray, lengths: IntArray
) -> tuple[float, float, float, int]:
    """Nats per token (ends of sentences are tokens), KL rate with half of its 95% interval, impossible sentences."""
    found = np.full(len(sentences), -np.inf)
    known = [i for i, sentence in enumerate(sentences) if all(word in pcfg.word_ids for word in sentence)]
    found[known] = pcfg.exact.string_log_probs([sentences[i] for i in known])
    possible = np.isfinite(found)
    tokens = lengths[possible]
    gap = (truth - found)[possible]
    rate = gap.sum() / tokens.sum()
    error = float(np.std(gap - rate * tokens) / tokens.mean() / np.sqrt(len(gap)))  # of a ratio
    return float(found[possible].sum() / tokens.sum()), float(rate), 1.96 * error, int((~possible).sum())


def recover(sizes: Sequence[int], config: SplitMerge) -> tuple[float, list[Row]]:
    """Train on each number of trees; the truth's nats per token, and a row for each grammar."""
    pcfg = english()
    sampler = Sampler(pcfg)
    sentences = sampler.sentences(sampler.draw(HELD_OUT, random_state(SEED + 1)))
    lengths = np.array([len(sentence) + 1 for sentence in sentences])
    truth = pcfg.exact.string_log_probs(sentences)
    entropy = float(truth.sum() / lengths.sum())
    print(f"truth: {pcfg!r}; {entropy:.4f} nats per token of {HELD_OUT:,} held-out sentences\n")
    columns = ("trees", "cycles", "symbols", "rules", "nats/token", "of truth", "KL rate", "+-", "impossible", "s")
    print(("{:>9} " * len(columns)).format(*columns))
    treebank = Treebank.from_trees(sample_treebank(pcfg, max(sizes), SEED), None).binarise(Binarisation())
    rows: list[Row] = []
    for size in sizes:
        trees = treebank.trees[:size]
        table = RuleTable.from_trees(trees)
        forests, _ = encode(trees, table)
        began = time.perf_counter()
        with meter("split-merge", config.iterations) as progress:
            trainer = SplitMergeTrainer(config, forests, Validation((), 0), SparseRules.initial(table), progress)
            for cycle in range(config.cycles + 1):
                for phase in PHASES if cycle else ():
                    trainer.run(cycle, phase, np.random.default_rng([SEED, cycle]))
                seconds = time.perf_counter() - began
                induced = to_pcfg(filtered(trainer.rules, config.filter), {})
                nats, rate, error, impossible = compare(induced, sentences, truth, lengths)
                rows.append((size, cycle, rate, error))
                rules = sum(induced.sizes()[kind] for kind in ("binary", "unary", "lexical"))
                counts = f"{size:9,} {cycle:9} {len(induced.symbols):9,} {rules:9,}"
                shares = f"{nats:10.4f} {nats / (nats + rate):9.4f} {rate:9.4f} {error:9.4f}"
                print(f"{counts} {shares} {impossible:10,} {seconds:9.1f}", flush=True)
    return entropy, rows


def draw(entropy: float, rows: Sequence[Row], path: Path) -> None:
    """KL rate against number of trees, a line for each number of cycles."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    cycles = sorted({row[1] for row in rows})
    for number, cycle in enumerate(cycles):
        part = [row for row in rows if row[1] == cycle]
        colour = plt.get_cmap("viridis")(number / max(1, len(cycles) - 1) * 0.9)
        label = "relative frequencies" if cycle == 0 else f"{cycle} cycle{'s' if cycle > 1 else ''}"
        x, y, error = ([row[i] for row in part] for i in (0, 2, 3))
        axis.errorbar(x, y, error, fmt="o-", color=colour, label=label, capsize=2, markersize=4)
    axis.axhline(-GOAL * entropy, color="grey", linestyle=":")
    goal = f"{GOAL:.0%} of the entropy"
    axis.text(0.01, -GOAL * entropy, goal, va="bottom", color="grey", fontsize=8, transform=axis.get_yaxis_transform())
    axis.set(xscale="log", yscale="log", xlabel="trees", ylabel="KL rate to the truth, nats per token")
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path)
    print(f"wrote {path}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, nargs="+", default=[3_000, 10_000, 30_000, 100_000, 300_000])
    parser.add_argument("--cycles", type=int, default=7)
    parser.add_argument(
        "--noise", type=float, default=0.5, help="with more of it, EM leaves the symmetric point sooner"
    )
    parser.add_argument("--em-split", type=int, default=150, help="iterations; 50 leave a tenth more divergence")
    parser.add_argument("--prior-rules", type=float, default=2.0, help="little: the truth's states differ sharply")
    parser.add_argument("--prior-lexicon", type=float, default=5.0)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    config = SplitMerge(
        cycles=options.cycles,
        noise=options.noise,
        em_split=options.em_split,
        prior_rules=options.prior_rules,
        prior_lexicon=options.prior_lexicon,
    )
    entropy, rows = recover(sorted(options.trees), config)
    if options.figure:
        draw(entropy, rows, options.figure)


if __name__ == "__main__":
    main()
