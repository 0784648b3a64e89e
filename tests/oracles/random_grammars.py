"""Hypothesis strategies: small consistent grammars of every shape, and sentences over their words."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from reference_inference import all_strings, rules_of, spectral_radius

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG

LIMIT = 0.85  #: spectral radius stays below
NAMES = ("S", "A", "B", "C", "D")
WORDS = ("a", "b", "c", "d")


def build(weights: dict[tuple[str, tuple[str, ...]], Fraction], damping: Fraction) -> PCFG:
    """A proper grammar; phrasal rules of recursive symbols give up the share ``damping`` to the word ``a``."""
    totals: dict[str, Fraction] = dict.fromkeys((left for left, _ in weights), Fraction(0))
    for (left, _), weight in weights.items():
        totals[left] += weight
    recursive = {left for left in totals if left in descendants(weights, left)}
    rules: list[tuple[str, tuple[str, ...], float]] = []
    for (left, children), weight in weights.items():
        kept = 1 - damping if left in recursive and children[0] not in WORDS else Fraction(1)
        rules.append((left, children, float(weight / totals[left] * kept)))
        if kept < 1:
            rules.append((left, ("a",), float(weight / totals[left] * damping)))
    return PCFG.from_rules(rules, start="S", words=lambda _, children: children[0] in WORDS)


def descendants(weights: dict[tuple[str, tuple[str, ...]], Fraction], left: str) -> set[str]:
    """Symbols that occur below ``left``."""
    found: set[str] = set()
    while True:
        more = {c for (a, children) in weights if a == left or a in found for c in children if c not in WORDS}
        if more <= found:
            return found
        found |= more


def damped(weights: dict[tuple[str, tuple[str, ...]], Fraction]) -> PCFG:
    """The grammar of `build`, its recursion damped until sentences have a mean length."""
    damping = Fraction(0)
    while True:
        pcfg = build(weights, damping)
        if spectral_radius(rules_of(pcfg), pcfg.symbols) < LIMIT:
            return pcfg
        damping += Fraction(1, 8)


@st.composite
def small_pcfgs(draw: st.DrawFn, max_symbols: int = 5, max_words: int = 4, unary_cycles: bool = True) -> PCFG:
    """Random grammars of 1 to 5 symbols and 1 to 4 words, all rule kinds on any symbol, consistent.

    Unary cycles, self loops, left recursion, symbols with words and phrases or with phrases only, symbols that
    the start does not reach: all occur. The spectral radius over all symbols is below 0.85, so every symbol is
    productive.
    """
    names = NAMES[: draw(st.integers(1, max_symbols))]
    words = WORDS[: draw(st.integers(1, max_words))]
    weights: dict[tuple[str, tuple[str, ...]], Fraction] = {}
    weight = st.integers(1, 9).map(Fraction)
    recursion = draw(st.sampled_from([True, True, False]))
    for i, left in enumerate(names):
        later = names[i + 1 :]
        children, below = (names if recursion else later), (names if recursion and unary_cycles else later)
        last = i == len(names) - 1  # some words below, whatever else is drawn
        spelled = draw(st.lists(st.sampled_from(words), min_size=int(last), max_size=2, unique=True))
        few = draw(st.integers(0, min(2, len(children) ** 2)))
        two = [(b, c) for b in children for c in children]
        pairs = draw(st.lists(st.sampled_from(two), min_size=few, max_size=3, unique=True)) if two else []
        few = draw(st.integers(0, min(1, len(below))))
        singles = draw(st.lists(st.sampled_from(below), min_size=few, max_size=2, unique=True)) if below else []
        kinds: list[tuple[str, ...]] = [*((w,) for w in spelled), *pairs, *((s,) for s in singles)]
        for kind in kinds or [(words[0],)]:
            weights[left, kind] = draw(weight)
    return damped(weights)


@st.composite
def linear_pcfgs(draw: st.DrawFn, sides: tuple[str, ...] = ("right", "left")) -> PCFG:
    """Random right- or left-linear grammars of 1 to 3 symbols down the spine and up to 2 over single tokens.

    Unary cycles of both kinds of symbols, self loops, single tokens on the spine, ambiguity: all occur. Every symbol is
    productive.
    """
    spine = NAMES[: draw(st.integers(1, 3))]
    tags = ("T", "U")[: draw(st.integers(0, 2))]
    left = draw(st.sampled_from(sides)) == "left"
    weights: dict[tuple[str, tuple[str, ...]], Fraction] = {}
    weight = st.integers(1, 9).map(Fraction)
    for name in (*spine, *tags):
        below = tags if name in tags else (*spine, *tags)
        spelled = draw(st.lists(st.sampled_from(WORDS[:3]), min_size=int(name in tags), max_size=2, unique=True))
        singles = draw(st.lists(st.sampled_from(below), max_size=2, unique=True)) if below else []
        two = [(t, x) for t in tags for x in below] if name not in tags else []
        pairs = draw(st.lists(st.sampled_from(two), min_size=1, max_size=4, unique=True)) if two else []
        kinds: list[tuple[str, ...]] = [*((w,) for w in spelled), *((s,) for s in singles)]
        kinds += [pair[::-1] if left else pair for pair in pairs]
        for kind in kinds or [("a",)]:
            weights[name, kind] = draw(weight)
    return damped(weights)


def sentences(max_size: int = 5, words: tuple[str, ...] = WORDS) -> st.SearchStrategy[list[str]]:
    """Sentences that a grammar may or may not be able to make."""
    return st.lists(st.sampled_from(words), min_size=1, max_size=max_size)


@st.composite
def cases(
    draw: st.DrawFn,
    max_size: int = 4,
    most: int = 1,
    max_symbols: int = 5,
    unary_cycles: bool = True,
    grammars: st.SearchStrategy[PCFG] | None = None,
) -> tuple[PCFG, list[list[str]]]:
    """A small grammar and 1 to ``most`` sentences: most are possible, of any length up to ``max_size``."""
    kinds = small_pcfgs(max_symbols=max_symbols, unary_cycles=unary_cycles) if grammars is None else grammars
    pcfg = draw(kinds)
    tables = [sorted(table) for table in all_strings(rules_of(pcfg), max_size)["S"] if table]
    found = []
    for _ in range(draw(st.integers(1, most))):
        if draw(st.sampled_from([True, True, True, False])) and tables:
            table = tables[-draw(st.integers(1, len(tables)))]  # longer ones are drawn more often
            found.append(list(table[draw(st.integers(0, len(table) - 1))]))
        else:
            found.append(draw(sentences(max_size)))
    return pcfg, found


def length_ranges(most: int = 6) -> st.SearchStrategy[LengthRange]:
    """Any range within 1..most."""
    ends = st.tuples(st.integers(1, most), st.integers(1, most))
    return ends.map(lambda pair: LengthRange(min(pair), max(pair)))


def as_split(pcfg: PCFG, n_start: int) -> PCFG:
    """A random grammar, its symbols but the start dealt out as substates of two labels."""
    others = [name for name in pcfg.symbols if name != "S"]
    names = {"S": "S"}
    trees: dict[str, Any] = {"S": 0}
    for label, members in (("X", others[: n_start % 4]), ("-Y-", others[n_start % 4 :])):
        names |= {name: f"{label}-{k}" for k, name in enumerate(members)}
        shapes: list[Any] = [None, 0, [0, 1], [[0, 1], 2], [[0, [1, 2]], 3]]
        if members:
            trees[label] = shapes[len(members)]
    symbols = tuple(names[name] for name in pcfg.symbols)
    labels = tuple(name.rpartition("-")[0] or name for name in symbols)
    return replace(pcfg, symbols=symbols, labels=labels).with_meta(split_trees=trees)
