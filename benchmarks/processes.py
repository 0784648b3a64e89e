"""Processes: tokens a second, drawn and scored on one core, beside the grammar of the same settings where it fits.

python benchmarks/processes.py [--sentences 50000] [--seed 1]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

from truesource.generator.process_sampler import sampler_of
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.languages import LARGEST, parse
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.truth import Truth, process

#: language and range of lengths; those of few rules are compared with their grammars
CASES = (
    ("shuffle-dyck:k=2,depth=6", "none"),
    ("shuffle-dyck:k=4,depth=8", "2..60"),
    ("shuffle-dyck:k=64,depth=100", "2..60"),
    ("shuffle-dyck:k=1000,depth=100", "2..60"),
    ("copy:vocabulary=2,longest=6", "none"),
    ("copy:vocabulary=1000,longest=40", "none"),
    ("copy:vocabulary=1000,longest=40", "21..61"),
    ("copy:vocabulary=2,longest=6,marker=false", "none"),
    ("copy:vocabulary=1000,longest=40,marker=false", "none"),
)


def timed(task: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of one call, after its kernels are compiled."""
    begun = time.perf_counter()
    found = task()
    return time.perf_counter() - begun, found


def rates(truth: Truth, lengths: LengthRange | None, sentences: int, seed: int) -> tuple[int, float, float]:
    """Tokens, ends included; drawn a second; scored a second."""
    sampler = sampler_of(truth, lengths)
    truth.exact.causal_log_probs(sampler.sentences(sampler.draw(10, random_state(seed))), lengths)
    drawing, drawn = timed(lambda: sampler.draw(sentences, random_state(seed)))
    text = sampler.sentences(drawn)
    scoring, _ = timed(lambda: truth.exact.causal_log_probs(text, lengths))
    tokens = int(drawn.n_tokens.sum()) + len(drawn)
    return tokens, tokens / drawing, tokens / scoring


def main() -> None:
    """Print a table: a row a language."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    heads = ("drawn/s", "scored/s", "grammar")
    print(f"{'language':46} {'lengths':>8} {'tokens':>10}", *(f"{head:>11}" for head in heads), f"{'ratio':>7}")
    for name, written in CASES:
        lengths = LengthRange.parse(written)
        tokens, drawn, scored = rates(process(name), lengths, given.sentences, given.seed)
        beside = ""
        if parse(name)[1].n_rules() <= LARGEST:
            *_, other = rates(PCFG.load(name), lengths, max(200, given.sentences // 25), given.seed)
            beside = f"{other:11,.0f} {scored / other:7.1f}"
        print(f"{name:46} {written:>8} {tokens:10,} {drawn:11,.0f} {scored:11,.0f} {beside}", flush=True)
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB at most")


if __name__ == "__main__":
    main()
