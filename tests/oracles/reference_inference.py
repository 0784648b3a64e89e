"""Slow, obvious inference for tiny grammars: plain loops over dictionaries, nothing shared with the package."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.tree import Tree

String = tuple[str, ...]
MAX_ROUNDS = 20_000


@dataclass(frozen=True)
class Rules:
    """A grammar as lists of named rules."""

    start: str
    symbols: tuple[str, ...]
    words: tuple[str, ...]
    binary: tuple[tuple[str, str, str, float], ...]
    unary: tuple[tuple[str, str, float], ...]
    lexical: tuple[tuple[str, str, float], ...]


def rules_of(pcfg: PCFG) -> Rules:
    names, words = pcfg.symbols, pcfg.vocabulary
    return Rules(
        names[pcfg.start],
        names,
        words,
        tuple(
            (names[a], names[b], names[c], math.exp(p))
            for (a, b, c), p in zip(pcfg.binary.tolist(), pcfg.binary_logp.tolist(), strict=True)
        ),
        tuple(
            (names[a], names[b], math.exp(p))
            for (a, b), p in zip(pcfg.unary.tolist(), pcfg.unary_logp.tolist(), strict=True)
        ),
        tuple(
            (names[a], words[w], math.exp(p))
            for (a, w), p in zip(pcfg.lexical.tolist(), pcfg.lexical_logp.tolist(), strict=True)
        ),
    )


def unary_chains(rules: Rules) -> dict[tuple[str, str], float]:
    """Weight of all unary chains between two symbols: Gauss-Jordan on ``I - Un`` in exact fractions."""
    n = len(rules.symbols)
    at = {name: i for i, name in enumerate(rules.symbols)}
    table = [[Fraction(int(i == j)) for j in range(n)] + [Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    for a, b, p in rules.unary:
        table[at[a]][at[b]] -= Fraction(p)
    for column in range(n):
        pivot = next(r for r in range(column, n) if table[r][column] != 0)
        table[column], table[pivot] = table[pivot], table[column]
        head = table[column][column]
        table[column] = [x / head for x in table[column]]
        for r in range(n):
            if r != column and table[r][column] != 0:
                factor = table[r][column]
                table[r] = [x - factor * y for x, y in zip(table[r], table[column], strict=True)]
    return {(a, b): float(table[at[a]][n + at[b]]) for a in rules.symbols for b in rules.symbols}


# -- enumeration ------------------------------------------------------------------------------------


def all_strings(rules: Rules, high: int) -> dict[str, list[dict[String, float]]]:
    """Every string of 1 to ``high`` words that each symbol derives, with its probability: ``[symbol][length]``."""
    chains = unary_chains(rules)
    found: dict[str, list[dict[String, float]]] = {a: [{} for _ in range(high + 1)] for a in rules.symbols}
    for m in range(1, high + 1):
        bare: dict[str, dict[String, float]] = {a: defaultdict(float) for a in rules.symbols}
        if m == 1:
            for a, w, p in rules.lexical:
                bare[a][(w,)] += p
        for a, b, c, p in rules.binary:
            for k in range(1, m):
                for left, p_left in found[b][k].items():
                    for right, p_right in found[c][m - k].items():
                        bare[a][left + right] += p * p_left * p_right
        for a in rules.symbols:
            closed: dict[String, float] = defaultdict(float)
            for b in rules.symbols:
                if chains[a, b] > 0.0:
                    for string, p in bare[b].items():
                        closed[string] += chains[a, b] * p
            found[a][m] = dict(closed)
    return found


def derivations(rules: Rules, sentence: Sequence[str]) -> list[tuple[Tree, float]]:
    """Every derivation in which no unary chain visits a symbol twice, with its probability.

    All derivations there are when the grammar has no unary cycle; always the most probable one.
    """

    @cache
    def grow(a: str, i: int, j: int, above: frozenset[str]) -> list[tuple[Tree, float]]:
        found: list[tuple[Tree, float]] = []
        if j == i + 1:
            found += [(Tree(a, (w,)), p) for left, w, p in rules.lexical if left == a and w == sentence[i]]
        for left, b, c, p in rules.binary:
            if left == a:
                for k in range(i + 1, j):
                    pairs = itertools.product(grow(b, i, k, frozenset({b})), grow(c, k, j, frozenset({c})))
                    found += [(Tree(a, (x, y)), p * p_x * p_y) for (x, p_x), (y, p_y) in pairs]
        for left, b, p in rules.unary:
            if left == a and b not in above:
                found += [(Tree(a, (x,)), p * p_x) for x, p_x in grow(b, i, j, above | {b})]
        return found

    return grow(rules.start, 0, len(sentence), frozenset({rules.start}))


def tree_log_prob(rules: Rules, tree: Tree) -> float:
    """Sum of the log probabilities of a tree's rules.

    Raises:
        KeyError: the tree uses a rule that the grammar does not have.
    """
    phrasal = {(a, b, c): p for a, b, c, p in rules.binary} | {(a, b): p for a, b, p in rules.unary}
    lexical = {(a, w): p for a, w, p in rules.lexical}
    total = 0.0
    for node in tree.subtrees():
        first = node.children[0]
        if isinstance(first, str):
            assert len(node.children) == 1
            total += math.log(lexical[node.label, first])
        else:
            total += math.log(phrasal[(node.label, *(c.label for c in node.children if isinstance(c, Tree)))])
    return total


# -- inside, with wildcards -------------------------------------------------------------------------


def inside(rules: Rules, positions: Sequence[str | None]) -> dict[tuple[int, int, str], float]:
    """P(symbol derives these positions); None stands for any one word."""
    chains = unary_chains(rules)
    n = len(positions)
    chart: dict[tuple[int, int, str], float] = {}
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length
            bare = dict.fromkeys(rules.symbols, 0.0)
            if length == 1:
                for a, w, p in rules.lexical:
                    if positions[i] is None or positions[i] == w:
                        bare[a] += p
            for a, b, c, p in rules.binary:
                for k in range(i + 1, j):
                    bare[a] += p * chart[i, k, b] * chart[k, j, c]
            for a in rules.symbols:
                chart[i, j, a] = sum(chains[a, b] * bare[b] for b in rules.symbols)
    return chart


def joint(rules: Rules, positions: Sequence[str | None]) -> float:
    """P(a sentence has this length and these words), None for any word."""
    return inside(rules, positions)[0, len(positions), rules.start]


def length_mass(rules: Rules, high: int) -> list[float]:
    """P(a sentence has m words), m from 0 to ``high``."""
    chart = inside(rules, [None] * high)
    return [0.0, *(chart[0, m, rules.start] for m in range(1, high + 1))]


def conditioned_prefix(rules: Rules, prefix: Sequence[str], low: int, high: int) -> float:
    """P(a sentence starts with ``prefix`` | low <= its length <= high), by wildcards."""
    total = sum(length_mass(rules, high)[low:])
    lengths = range(max(low, len(prefix)), high + 1)
    return sum(joint(rules, [*prefix, *[None] * (m - len(prefix))]) for m in lengths) / total


# -- sums over all lengths, by iteration from below -------------------------------------------------


def total_mass(rules: Rules) -> dict[str, float]:
    """P(symbol derives a finite string): iteration of the fixed-point equation from zero."""
    mass = dict.fromkeys(rules.symbols, 0.0)
    for _ in range(MAX_ROUNDS):
        new = dict.fromkeys(rules.symbols, 0.0)
        for a, _w, p in rules.lexical:
            new[a] += p
        for a, b, p in rules.unary:
            new[a] += p * mass[b]
        for a, b, c, p in rules.binary:
            new[a] += p * mass[b] * mass[c]
        if max(abs(new[a] - mass[a]) for a in mass) < 1e-16:
            return new
        mass = new
    raise AssertionError("the total mass did not settle")


def prefix_probability(rules: Rules, prefix: Sequence[str]) -> float:
    """P(a sentence starts with ``prefix``), from the end of the prefix to its start.

    ``beyond[i][A]`` is P(A derives a string that starts with ``prefix[i:]``). Either A's left child ends
    inside the prefix, and the right child goes on, or the left child reaches beyond and the right child is free.
    """
    n = len(prefix)
    mass = total_mass(rules)
    if n == 0:
        return mass[rules.start]
    exact = inside(rules, prefix)
    beyond: list[dict[str, float]] = [dict.fromkeys(rules.symbols, 0.0) for _ in range(n)]
    for i in reversed(range(n)):
        fixed = dict.fromkeys(rules.symbols, 0.0)
        if i == n - 1:
            for a, w, p in rules.lexical:
                if w == prefix[i]:
                    fixed[a] += p
        for a, b, c, p in rules.binary:
            for k in range(i + 1, n):
                fixed[a] += p * exact[i, k, b] * beyond[k][c]
        value = dict(fixed)
        for _ in range(MAX_ROUNDS):
            new = dict(fixed)
            for a, b, p in rules.unary:
                new[a] += p * value[b]
            for a, b, c, p in rules.binary:
                new[a] += p * value[b] * mass[c]
            if all(abs(new[a] - value[a]) <= 1e-15 * new[a] for a in new):
                break
            value = new
        else:
            raise AssertionError("a prefix probability did not settle")
        beyond[i] = new
    return beyond[0][rules.start]


def expected(rules: Rules, gain: dict[str, float]) -> float:
    """Expected sum over the nodes of a derivation of ``gain[symbol]``, by iteration."""
    value = dict.fromkeys(rules.symbols, 0.0)
    for _ in range(MAX_ROUNDS):
        new = dict(gain)
        for a, b, p in rules.unary:
            new[a] += p * value[b]
        for a, b, c, p in rules.binary:
            new[a] += p * (value[b] + value[c])
        if all(abs(new[a] - value[a]) <= 1e-15 * abs(new[a]) for a in new):
            return new[rules.start]
        value = new
    raise AssertionError("an expectation did not settle")


def best_log_prob(rules: Rules, sentence: Sequence[str]) -> float:
    """Log probability of the most probable derivation: maximisation repeated until nothing changes."""
    n = len(sentence)
    best: dict[tuple[int, int, str], float] = {}
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length
            value = dict.fromkeys(rules.symbols, 0.0)
            if length == 1:
                for a, w, p in rules.lexical:
                    if w == sentence[i]:
                        value[a] = max(value[a], p)
            for a, b, c, p in rules.binary:
                for k in range(i + 1, j):
                    value[a] = max(value[a], p * best[i, k, b] * best[k, j, c])
            for _ in rules.symbols:
                for a, b, p in rules.unary:
                    value[a] = max(value[a], p * value[b])
            for a in rules.symbols:
                best[i, j, a] = value[a]
    top = best[0, n, rules.start]
    return math.log(top) if top > 0.0 else -math.inf


def spectral_radius(rules: Rules, among: Sequence[str]) -> float:
    """Of the matrix of expected children, over the symbols named."""
    at = {name: i for i, name in enumerate(among)}
    mean = np.zeros((len(at), len(at)))
    children = [(a, (b, c), p) for a, b, c, p in rules.binary] + [(a, (b,), p) for a, b, p in rules.unary]
    for a, kids, p in children:
        for kid in kids:
            if a in at and kid in at:
                mean[at[a], at[kid]] += p
    return float(np.abs(np.linalg.eigvals(mean)).max())


# -- long sentences ---------------------------------------------------------------------------------


def long_log_prob(rules: Rules, sentence: Sequence[str]) -> float:
    """ln P(sentence) of a grammar without unary rules, CKY in log space."""
    assert not rules.unary
    n = len(sentence)
    at = {name: i for i, name in enumerate(rules.symbols)}
    chart = np.full((len(at), n + 1, n + 1), -np.inf)
    for i, word in enumerate(sentence):
        for a, w, p in rules.lexical:
            if w == word:
                chart[at[a], i, i + 1] = np.logaddexp(chart[at[a], i, i + 1], math.log(p))
    for length, i in itertools.product(range(2, n + 1), range(n)):
        j = i + length
        if j > n:
            continue
        for a, b, c, p in rules.binary:
            parts = chart[at[b], i, i + 1 : j] + chart[at[c], i + 1 : j, j]
            top = parts.max()
            if top > -np.inf:
                total = top + math.log(np.exp(parts - top).sum()) + math.log(p)
                chart[at[a], i, j] = np.logaddexp(chart[at[a], i, j], total)
    return float(chart[at[rules.start], 0, n])
