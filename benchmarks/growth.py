"""How the time of exact scores grows with words and with rules: part of ``benchmarks/roofline.py --growth``.

Random state-split grammars (``benchmarks/shapes.py``), one batch of sentences of one length, CPU time of one thread.
The exponent is the slope of a line through the logarithms, with its 95% interval by Student's t; beside it is the
slope of the counted multiply-adds over the same points. Given a range of lengths, sentences of n words are scored given
n / 2 to n words. Words in any order: half of them are known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from linear import draw
from operations import counting
from scipy.stats import linregress, t
from shapes import split_grammar

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.any_order import AnyOrder
from truesource.grammar.pcfg import PCFG

BASE = (330, 31_000)  #: states and binary rules, for growth with words
WORDS = (5, 8, 13, 20, 32, 50)
SIZES = ((120, 4_000), (220, 12_000), (330, 31_000), (500, 100_000), (718, 272_000))
LENGTH = 13  #: words, for growth with rules
BATCH = 32  #: sentences side by side at every point: all charts fit the memory budget, so all loops are as wide
TASKS = ("causal", "masked", "conditioned", "any order")
Sentences = Sequence[Sequence[str]]


class Point(NamedTuple):
    """One grammar and one length."""

    rules: int
    words: int
    milliseconds: dict[str, float]  #: of one sentence, by task
    adds: dict[str, float]  #: multiply-adds


class Slope(NamedTuple):
    """An exponent and half of its 95% interval."""

    value: float
    half: float


def grammar(states: int, rules: int) -> PCFG:
    """A grammar of one family."""
    return split_grammar(states, rules, max(rules // 20, 40), 4 * rules, 20_000)


def measure(pcfg: PCFG, n: int) -> Point:
    """Time and operations of every task, of sentences of n words."""
    exact, truth, rng = pcfg.exact, AnyOrder(pcfg), np.random.default_rng(1)
    sentences = draw(pcfg, LengthRange(n, n), BATCH)
    lengths = LengthRange(max(n // 2, 1), n)
    patterns = [[w if k else None for w, k in zip(s, rng.random(n) < 0.5, strict=True)] for s in sentences]
    tasks: dict[str, tuple[Callable[[Any], object], Sequence[Any]]] = {
        "causal": (exact.causal_log_probs, sentences),
        "masked": (exact.masked_log_probs, sentences),
        "conditioned": (lambda some: exact.causal_log_probs(some, lengths), sentences),
        "any order": (truth.marginals, patterns),
    }
    milliseconds, adds = {}, {}
    for name, (work, some) in tasks.items():
        work(some[:1])
        begun = time.process_time()
        work(some)
        milliseconds[name] = 1e3 * (time.process_time() - begun) / BATCH
        with counting() as tally:
            work(some)
        adds[name] = float(tally.adds) / BATCH
    shown = "".join(f"{milliseconds[name]:13.2f}{adds[name] / 1e6:10.2f}" for name in TASKS)
    print(f"{len(pcfg.binary):10,}{n:7}{shown}", flush=True)
    return Point(len(pcfg.binary), n, milliseconds, adds)


def slope(x: Sequence[float], y: Sequence[float]) -> Slope:
    """Of the logarithms."""
    found = linregress(np.log(x), np.log(y))
    return Slope(float(found.slope), float(t.ppf(0.975, len(x) - 2) * found.stderr))


def slopes(points: Sequence[Point], x: Sequence[float]) -> dict[str, tuple[Slope, Slope]]:
    """Of time and of operations, by task."""
    return {
        name: (slope(x, [p.milliseconds[name] for p in points]), slope(x, [p.adds[name] for p in points]))
        for name in TASKS
    }


def growth(quick: bool, path: Path | None) -> dict[str, Any]:
    """Measure, print and plot; points and exponents."""
    print("ms and million multiply-adds a sentence\n")
    print(f"{'rules':>10}{'words':>7}" + "".join(f"{name:>13}{'M adds':>10}" for name in TASKS))
    sizes, words, base, length = (SIZES[:3], WORDS[:3], SIZES[0], 6) if quick else (SIZES, WORDS, BASE, LENGTH)
    pcfg = grammar(*base)
    by_words = [measure(pcfg, n) for n in words]
    by_rules = [measure(grammar(*size), length) for size in sizes]
    result: dict[str, Any] = {"points": {"words": by_words, "rules": by_rules}, "exponents": {}}
    print(f"\n{'exponent of':12}{'task':>13}{'time':>20}{'operations':>20}")
    for what, points in (("words", by_words), ("rules", by_rules)):
        found = slopes(points, [float(getattr(point, what)) for point in points])
        result["exponents"][what] = found
        for name, both in found.items():
            cells = "".join(f"{one.value:>12.2f} ± {one.half:5.2f}" for one in both)
            print(f"{what:12}{name:>13}{cells}")
    if path is not None:
        plot(by_words, by_rules, path)
    return result


def plot(by_words: Sequence[Point], by_rules: Sequence[Point], path: Path) -> None:
    """Time against words and rules, the counted operations of causal scores for comparison."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib import ticker

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, points, what in ((axes[0], by_words, "words"), (axes[1], by_rules, "rules")):
        x = [getattr(point, what) for point in points]
        for name, style in zip(TASKS, ("o-", "s-", "^-", "d-"), strict=True):
            axis.plot(x, [point.milliseconds[name] for point in points], style, label=name)
        scale = points[-1].milliseconds["causal"] / points[-1].adds["causal"]
        scaled = [scale * point.adds["causal"] for point in points]
        axis.plot(x, scaled, ":", color="grey", label="multiply-adds of causal (scaled)")
        axis.set(xscale="log", yscale="log", ylabel="CPU ms a sentence")
        axis.legend(frameon=False, fontsize="small")
    axes[0].xaxis.set_minor_locator(ticker.NullLocator())
    axes[0].set_xticks(words := [point.words for point in by_words], [str(n) for n in words])
    axes[0].set(xlabel="words in the sentence", title=f"{by_words[0].rules:,} binary rules")
    axes[1].set(xlabel="binary rules", title=f"sentences of {by_rules[0].words} words")
    figure.savefig(path)
    print(f"wrote {path}")
