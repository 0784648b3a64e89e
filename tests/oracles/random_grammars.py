"""Hypothesis strategies: small consistent grammars of every shape, and sentences over their words."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st
from reference_inference import rules_of, spectral_radius

from grammar.conditioning import LengthRange
from grammar.pcfg import PCFG

LIMIT = 0.85  #: spectral radius stays below
NAMES = ("S", "A", "B", "C", "D")
WORDS = ("a", "b", "c", "d")


def build(weights: dict[tuple[str, tuple[str, ...]], Fraction], damping: Fraction) -> PCFG:
    """A proper grammar; phrasal rules give up the share ``damping`` to the word ``a``."""
    totals: dict[str, Fraction] = {}
    for (left, _), weight in weights.items():
        totals[left] = totals.get(left, Fraction(0)) + weight
    rules = [
        (left, children, float(weight / totals[left] * (1 if children[0] in WORDS else 1 - damping)))
        for (left, children), weight in weights.items()
    ]
    if damping:
        given: dict[str, Fraction] = dict.fromkeys(totals, Fraction(0))
        for (left, children), weight in weights.items():
            if children[0] not in WORDS:
                given[left] += weight / totals[left] * damping
        rules += [(left, ("a",), float(share)) for left, share in given.items() if share > 0]
    return PCFG.from_rules(rules, start="S", words=lambda _, children: children[0] in WORDS)


@st.composite
def small_pcfgs(draw: st.DrawFn, max_symbols: int = 5, max_words: int = 4, unary_cycles: bool = True) -> PCFG:
    """Random grammars of 1 to 5 symbols and 1 to 4 words, all rule kinds on any symbol, consistent.

    Unary cycles, self loops, left recursion, symbols with words and phrases, symbols that the start
    does not reach: all occur. The spectral radius over all symbols is below 0.85, so every symbol is productive.
    """
    names = NAMES[: draw(st.integers(1, max_symbols))]
    words = WORDS[: draw(st.integers(1, max_words))]
    weights: dict[tuple[str, tuple[str, ...]], Fraction] = {}
    weight = st.integers(1, 9).map(Fraction)
    for i, left in enumerate(names):
        below = names if unary_cycles else names[i + 1 :]
        spelled = draw(st.lists(st.sampled_from(words), max_size=3, unique=True))
        pairs = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=3, unique=True))
        singles = draw(st.lists(st.sampled_from(below), max_size=2, unique=True)) if below else []
        kinds: list[tuple[str, ...]] = [*((w,) for w in spelled), *pairs, *((s,) for s in singles)]
        for children in kinds or [(words[0],)]:
            weights[left, children] = draw(weight)
    damping = Fraction(0)
    while True:
        pcfg = build(weights, damping)
        if spectral_radius(rules_of(pcfg), pcfg.symbols) < LIMIT:
            return pcfg
        damping += Fraction(1, 8)


def sentences(max_size: int = 5, words: tuple[str, ...] = WORDS) -> st.SearchStrategy[list[str]]:
    """Sentences that a grammar may or may not be able to make."""
    return st.lists(st.sampled_from(words), min_size=1, max_size=max_size)


def length_ranges(most: int = 6) -> st.SearchStrategy[LengthRange]:
    """Any range within 1..most."""
    ends = st.tuples(st.integers(1, most), st.integers(1, most))
    return ends.map(lambda pair: LengthRange(min(pair), max(pair)))
