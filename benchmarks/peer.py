"""Full next-token distributions against genlm-grammar, on one grammar read off trees, in one run.

``pip install genlm-grammar``, then ``python benchmarks/peer.py TREES.mrg.gz [--tokens 30]``. The grammar is the
unsplit relative-frequency one; the peer's mean time per token is over whole prefixes, its cache warm.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np
from genlm.grammar import CFG, EarleyLM, Float

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.estimate.relative_frequency import relative_frequency
from truesource.grammar.inference.batch import Distributions
from truesource.grammar.inference.distributions import next_token_distributions
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, random_state
from truesource.grammar.treebank import Treebank
from truesource.grammar.treebank.normalise import Normalisation


def masses(self: CFG) -> object:
    """Total weight of each symbol, by whole sweeps until nothing changes; stands in for the peer's `CFG.agenda`.

    The peer's own iteration stops after 100,000 single updates of a component, which on treebank grammars is far too
    early (next-token probabilities off by 0.1 and more), and without that limit did not end within minutes.
    """
    rules = list(self)
    names = {x: i for i, x in enumerate({*self.N, *self.V, *(x for r in rules for x in r.body)})}
    none = len(names)
    value = np.zeros(none + 1)
    value[none] = 1.0
    value[[names[x] for x in self.V]] = 1.0
    width = max(len(r.body) for r in rules)
    heads = np.array([names[r.head] for r in rules])
    bodies = np.full((len(rules), width), none)
    for row, rule in zip(bodies, rules, strict=True):
        row[: len(rule.body)] = [names[x] for x in rule.body]
    weights = np.array([float(r.w) for r in rules])
    symbols = [names[x] for x in self.N]
    for _ in range(100_000):
        new = value.copy()
        new[symbols] = np.bincount(heads, weights * value[bodies].prod(axis=1), minlength=len(value))[symbols]
        if np.abs(new - value).max() <= 1e-16:
            break
        value = new
    chart = self.R.chart()
    for x, i in names.items():
        if value[i] > 0.0:
            chart[x] = value[i]
    return chart


CFG.agenda = masses


def peer_grammar(pcfg: PCFG) -> CFG:
    """The peer's form of a grammar; words are told from symbols by a mark."""
    words = [f"w:{w}" for w in pcfg.vocabulary]
    names = [f"N:{s}" for s in pcfg.symbols]
    made = CFG(R=Float, S=names[pcfg.start], V=set(words))
    for (a, b, c), p in zip(pcfg.binary, np.exp(pcfg.binary_logp), strict=True):
        made.add(float(p), names[a], names[b], names[c])
    for (a, b), p in zip(pcfg.unary, np.exp(pcfg.unary_logp), strict=True):
        made.add(float(p), names[a], names[b])
    for (a, w), p in zip(pcfg.lexical, np.exp(pcfg.lexical_logp), strict=True):
        made.add(float(p), names[a], words[w])
    return made


def setting(trees: str | Path, n: int) -> tuple[PCFG, list[list[str]], int]:
    """The unsplit grammar of some trees, sentences drawn from it, and how many tokens a model of them predicts."""
    pcfg = relative_frequency(Treebank.read(trees, Normalisation(lengths=LengthRange(1, 60))))
    sampler = Sampler(pcfg, LengthRange(6, 25))
    sentences = sampler.sentences(sampler.draw(n, random_state(1)))
    return pcfg, sentences, sum(len(words) + 1 for words in sentences)


def ours(pcfg: PCFG, sentences: list[list[str]]) -> float:
    """Seconds that all distributions take, after the kernels are compiled."""
    list(next_token_distributions(pcfg.exact, sentences[:1], lambda block: None))
    begun = time.perf_counter()
    list(next_token_distributions(pcfg.exact, sentences, lambda block: None))
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees")
    parser.add_argument("--tokens", type=int, default=30, help="tokens that the peer predicts")
    parser.add_argument("--sentences", type=int, default=1000, help="sentences that ours predicts")
    options = parser.parse_args()
    pcfg, sentences, tokens = setting(options.trees, options.sentences)

    begun = time.perf_counter()
    peer = EarleyLM(peer_grammar(pcfg))
    setup = time.perf_counter() - begun
    wanted: list[tuple[int, int, FloatArray]] = []
    spent = 0.0
    for i, sentence in enumerate(sentences):
        for j in range(len(sentence) + 1):
            if len(wanted) >= options.tokens:
                break
            begun = time.perf_counter()
            found = peer.p_next(tuple(f"w:{w}" for w in sentence[:j]))
            spent += time.perf_counter() - begun
            row = np.array([found[f"w:{w}"] for w in pcfg.vocabulary] + [found[peer.eos]])
            wanted.append((i, j, row))

    mean = ours(pcfg, sentences) / tokens

    some = sentences[: wanted[-1][0] + 1]
    rows: dict[tuple[int, int], FloatArray] = {}

    def keep(block: Distributions) -> None:
        for row, members in zip(block.probability, block.members, strict=True):
            rows.update({(i, block.position): row for i in members})

    list(next_token_distributions(pcfg.exact, some, keep))
    gap = max(float(np.abs(rows[i, j] - row).max()) for i, j, row in wanted)
    relative = max(float(np.abs(rows[i, j] / np.where(row > 0, row, 1) - 1)[row > 1e-12].max()) for i, j, row in wanted)
    theirs = spent / len(wanted)
    print(f"{pcfg!r}, sentences of {tokens / len(sentences) - 1:.1f} words; the peer's set-up took {setup:.1f} s\n")
    head = f"{'ours ms':>9} {'peer ms':>9} {'ratio':>8} {'gap':>9} {'relative':>9}"
    print(f"{'full next-token distribution':30} {head}")
    print(f"{'per token':30} {1e3 * mean:9.4f} {1e3 * theirs:9.1f} {theirs / mean:8,.0f} {gap:9.1e} {relative:9.1e}")
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB, both in one process")


if __name__ == "__main__":
    main()
