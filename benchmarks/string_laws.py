"""How far the string law of one grammar is from that of another: the KL rate over sentences of the first.

``python benchmarks/string_laws.py TRUTH.npz OTHER.npz [--lengths 6..25] [--sentences 2000]``. Sentences are sampled
from the first grammar; both score them exactly, given the range of lengths. The mean of ln P - ln Q estimates the KL
rate without bias; its interval is the 95% one. Sentences that the other grammar cannot make are counted and left out.
"""

from __future__ import annotations

import argparse

import numpy as np
from recovery import SEED, compare

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import range_table
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth")
    parser.add_argument("other")
    parser.add_argument("--lengths", default="6..25")
    parser.add_argument("--sentences", type=int, default=2_000)
    given = parser.parse_args()
    low, high = map(int, given.lengths.split(".."))
    lengths = LengthRange(low, high)
    truth, other = PCFG.load(given.truth), PCFG.load(given.other)
    sampler = Sampler(truth, lengths)
    sentences = sampler.sentences(sampler.draw(given.sentences, random_state(SEED + 1)))
    tokens = np.array([len(sentence) + 1 for sentence in sentences])
    masses = [np.log(range_table(pcfg, lengths)[1]) for pcfg in (truth, other)]
    # `compare` scores the other grammar without the range: both sides get what the ranges differ by
    log_p = truth.exact.string_log_probs(sentences) - masses[0]
    _, rate, error, impossible = compare(other, sentences, log_p + masses[1], tokens)
    nats = -log_p.sum() / tokens.sum()
    print(f"{given.sentences:,} sentences of {lengths} tokens: {nats:.4f} nats per token of the truth itself")
    print(f"KL rate {rate:.4f} +- {error:.4f} nats per token; {impossible} sentences that the other cannot make")


if __name__ == "__main__":
    main()
