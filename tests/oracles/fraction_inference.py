"""Inference in exact fractions, for tiny grammars of any range of probabilities; nothing shared with the package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from truesource.grammar.pcfg import PCFG

Words = Sequence[int | None]  #: word numbers; None is any one word


def closure(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    """``(I - matrix)^-1`` by Gauss-Jordan elimination."""
    n = len(matrix)
    unit = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    table = [[unit[i][j] - matrix[i][j] for j in range(n)] + unit[i] for i in range(n)]
    for k in range(n):
        pivot = next(r for r in range(k, n) if table[r][k] != 0)
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [x / table[k][k] for x in table[k]]
        for r in range(n):
            if r != k and table[r][k] != 0:
                table[r] = [x - table[r][k] * y for x, y in zip(table[r], table[k], strict=True)]
    return [row[n:] for row in table]


def log(value: Fraction) -> float:
    """Natural logarithm of a fraction of any size; -inf at zero."""
    return math.log(value.numerator) - math.log(value.denominator) if value > 0 else -math.inf


class FractionGrammar:
    """A grammar whose derivations all end, with fractions for probabilities."""

    def __init__(self, pcfg: PCFG) -> None:
        def rules(table: np.ndarray, logp: np.ndarray) -> list[tuple[tuple[int, ...], Fraction]]:
            return [(tuple(r), Fraction(math.exp(p))) for r, p in zip(table.tolist(), logp.tolist(), strict=True)]

        self.start, self.states = pcfg.start, range(len(pcfg.symbols))
        self.words = range(len(pcfg.vocabulary))
        self.binary = rules(pcfg.binary, pcfg.binary_logp)
        self.unary = rules(pcfg.unary, pcfg.unary_logp)
        self.lexical = rules(pcfg.lexical, pcfg.lexical_logp)
        chains = [[Fraction(0)] * len(self.states) for _ in self.states]
        for (a, b), p in self.unary:
            chains[a][b] += p
        corners = [list(row) for row in chains]
        for (a, b, _), p in self.binary:
            corners[a][b] += p
        self.chains, self.corners = closure(chains), closure(corners)

    def _closed(self, bare: list[Fraction], rows: list[list[Fraction]]) -> list[Fraction]:
        return [sum((x * y for x, y in zip(row, bare, strict=True)), Fraction(0)) for row in rows]

    def _leaf(self, word: int | None) -> list[Fraction]:
        bare = [Fraction(0) for _ in self.states]
        for (a, w), p in self.lexical:
            if word is None or w == word:
                bare[a] += p
        return bare

    def inside(self, words: Words) -> dict[tuple[int, int], list[Fraction]]:
        """Of every span, P(symbol derives it)."""
        chart: dict[tuple[int, int], list[Fraction]] = {}
        n = len(words)
        for length in range(1, n + 1):
            for i in range(n - length + 1):
                j = i + length
                bare = self._leaf(words[i]) if length == 1 else [Fraction(0) for _ in self.states]
                for (a, b, c), p in self.binary:
                    for k in range(i + 1, j):
                        bare[a] += p * chart[i, k][b] * chart[k, j][c]
                chart[i, j] = self._closed(bare, self.chains)
        return chart

    def joint(self, words: Words) -> Fraction:
        """P(a sentence has these words and this length)."""
        return self.inside(words)[0, len(words)][self.start]

    def prefix(self, words: Words) -> Fraction:
        """P(a sentence begins with these words) (Jelinek and Lafferty 1991)."""
        n, chart = len(words), self.inside(words)
        beyond: dict[int, list[Fraction]] = {}
        for i in reversed(range(n)):
            bare = self._leaf(words[i]) if i == n - 1 else [Fraction(0) for _ in self.states]
            for (a, b, c), p in self.binary:
                for k in range(i + 1, n):
                    bare[a] += p * chart[i, k][b] * beyond[k][c]
            beyond[i] = self._closed(bare, self.corners)
        return beyond[0][self.start]

    def masked(self, words: Words, at: int) -> tuple[Fraction, Fraction]:
        """P(all words), and P(all but the one at this position, and the length)."""
        return self.joint(words), self.joint([*words[:at], None, *words[at + 1 :]])

    def given_lengths(self, prefix: Words, low: int, high: int) -> tuple[Fraction, Fraction]:
        """P(a sentence begins so and has a length in the range), and P(a length in the range)."""
        sizes = range(max(low, len(prefix)), high + 1)
        begun = sum((self.joint([*prefix, *[None] * (m - len(prefix))]) for m in sizes), Fraction(0))
        return begun, sum((self.joint([None] * m) for m in range(low, high + 1)), Fraction(0))
