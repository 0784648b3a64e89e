"""Exact scores through torch on a device, beside the compiled charts of the CPU: sentences a second, and differences.

    python benchmarks/accelerated.py [--device cuda] [--dtype float32] [--sentences 200] [--published]

Sentences of 6 to 25 words of embedded English; with ``--published``, of a random state-split grammar of 718 states and
270,000 binary rules. Memory is the most that the device, or for ``cpu`` this process, has held.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from shapes import PUBLISHED, split_grammar

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.embedded import english
from truesource.grammar.inference.any_order import AnyOrder, Pattern
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.threads import threads
from truesource.lmtrain.accelerated import Accelerated

LENGTHS = LengthRange(6, 25)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a call that has been made once before, and what it gives."""
    work()
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def furthest(found: Any, wanted: Any) -> float:
    """Largest difference of finite numbers."""
    pairs = zip(found, wanted, strict=True)
    return max(float(np.abs(np.where(np.isfinite(w), np.subtract(f, w), 0.0)).max()) for f, w in pairs)


def memory(device: str) -> float:
    """Most that has been held, GB."""
    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    """Measure, and print a table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--device", default="cpu")
    given.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    given.add_argument("--sentences", type=int, default=200)
    given.add_argument("--published", action="store_true")
    asked = given.parse_args()
    pcfg = split_grammar(*PUBLISHED) if asked.published else english()
    sampler, rng = Sampler(pcfg, LENGTHS), np.random.default_rng(1)
    text = [list(s) for s in sampler.sentences(sampler.draw(asked.sentences, random_state(1)))]
    patterns: Sequence[Pattern] = [[w if rng.random() < 0.5 else None for w in s] for s in text]
    began = time.perf_counter()
    there, here = Accelerated(pcfg, asked.device, asked.dtype), AnyOrder(pcfg)
    made = time.perf_counter() - began
    tasks: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
        ("strings", lambda: [there.string_log_probs(text)], lambda: [pcfg.exact.string_log_probs(text)]),
        ("masked words", lambda: there.masked_log_probs(text), lambda: pcfg.exact.masked_log_probs(text)),
        ("half known, strings", lambda: [there.log_probs(patterns)], lambda: [here.log_probs(patterns)]),
        ("half known, words", lambda: there.marginals(patterns), lambda: here.marginals(patterns)),
    ]
    if asked.dtype == "float64":
        causal = lambda: there.causal_log_probs(text), lambda: pcfg.exact.causal_log_probs(text)
        tasks.insert(1, ("next words", *causal))
    name = torch.cuda.get_device_name(asked.device) if torch.device(asked.device).type == "cuda" else asked.device
    print(f"{pcfg!r}; {len(text)} sentences of {sum(map(len, text)) / len(text):.1f} words")
    print(
        f"torch on {name}, {asked.dtype}, rules brought there in {made:.1f} s; compiled charts: {threads()} threads\n"
    )
    print(f"{'sentences a second':22} {'torch':>9} {'compiled':>9} {'ratio':>6} {'apart, nats':>12}")
    for what, ours, compiled in tasks:
        (spent, found), (seconds, wanted) = timed(ours), timed(compiled)
        row = f"{len(text) / spent:9.1f} {len(text) / seconds:9.1f} {seconds / spent:6.2f}"
        print(f"{what:22} {row} {furthest(found, wanted):12.1e}", flush=True)
    print(f"\nmost memory held: {memory(asked.device):.2f} GB")


if __name__ == "__main__":
    main()
