"""Does self-training help? Trees of a parser as more training data, judged by the exact truth.

``python benchmarks/self_training.py [--gold 3500] [--text 50000] [--cycles 5]``. The truth is the embedded English
grammar. A parser that covers unknown words (lexicon ``parse``) is induced from a few of its trees, and parses more of
its sentences. A grammar (lexicon ``generate``) is induced from the few true trees, from the parses alone, from both
together, and, for comparison, from as many true trees. Each is scored by the KL rate of the truth to it on held-out
sentences, as in ``benchmarks/recovery.py``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
from recovery import HELD_OUT, SEED, compare

from truesource.evaluation.parsing import compare_brackets
from truesource.generator.sampler import Sampler, sample_treebank
from truesource.grammar.embedded import english
from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.estimate.split_merge.train import split_merge
from truesource.grammar.parsing import ParseMethod
from truesource.grammar.parsing.parser import Parse, Parser
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.tree import Tree
from truesource.grammar.treebank import Binarisation, Treebank


def induced(trees: Sequence[Tree], cycles: int, lexicon: str = "generate") -> PCFG:
    """A grammar of treebank trees."""
    bank = Treebank.from_trees(trees, None).binarise(Binarisation())
    return split_merge(bank.trees, SplitMerge(cycles=cycles, lexicon=lexicon), seed=SEED).pcfg


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=int, default=3_500, help="true trees that the parser learns from")
    parser.add_argument("--text", type=int, default=50_000, help="sentences to parse")
    parser.add_argument("--cycles", type=int, default=5)
    options = parser.parse_args()
    truth = english()
    sampler = Sampler(truth)
    held_out = sampler.sentences(sampler.draw(HELD_OUT, random_state(SEED + 1)))
    lengths = np.array([len(sentence) + 1 for sentence in held_out])
    log_p = truth.exact.string_log_probs(held_out)
    trees = Treebank.from_trees(sample_treebank(truth, options.gold + options.text, SEED), None).trees
    gold, wanted = list(trees[: options.gold]), list(trees[options.gold :])
    taught = induced(gold, options.cycles, "parse")
    began = time.process_time()
    found = Parser(taught, ParseMethod.MAX_RULE).parse_all([tree.leaves() for tree in wanted])
    seconds = time.process_time() - began
    parsed = [parse.tree if isinstance(parse, Parse) else None for parse in found]
    scores = compare_brackets(wanted, parsed)
    quality = f"labelled F1 {scores.f1:.2%}, {scores.missing} without a tree"
    print(f"{len(wanted):,} sentences parsed in {seconds:.0f} s of CPU: {quality}")
    kept = [tree for tree in parsed if tree is not None]
    grammars = {
        f"{len(gold):,} true trees": induced(gold, options.cycles),
        f"{len(kept):,} parses": induced(kept, options.cycles),
        "both": induced([*gold, *kept], options.cycles),
        f"{len(trees):,} true trees": induced(list(trees), options.cycles),
    }
    print(
        f"\n{'induced from':22}{'symbols':>10}{'rules':>10}{'nats/token':>12}{'KL rate':>10}{'+-':>8}{'impossible':>12}"
    )
    for name, pcfg in grammars.items():
        nats, rate, error, impossible = compare(pcfg, held_out, log_p, lengths)
        rules = sum(pcfg.sizes()[kind] for kind in ("binary", "unary", "lexical"))
        figures = f"{len(pcfg.symbols):>10,}{rules:>10,}{nats:>12.4f}{rate:>10.4f}{error:>8.4f}{impossible:>12,}"
        print(f"{name:22}{figures}", flush=True)


if __name__ == "__main__":
    main()
