"""Expected numbers of strings that are too rare for float64, one string at a time, as logarithms.

Without a range of lengths the pass of `truesource.grammar.inference.windows` runs in numpy's extended precision, whose
smallest number is about 1e-4932 on processors that have it. Given a range, the number of a string is the sum over
positions of the probability that a sentence has it there, which charts of single sentences compute at any size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.rules import left_corner_matrix, mean_matrix, unary_matrix
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

SHARES = (None, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4)  #: of rules off the shortest derivations; None: uniform
DECAYING = 0.9  #: spectral radius below which expected numbers are small

Wide = Any  #: an array of `numpy.longdouble`


def with_moderate_rules(pcfg: PCFG, lengths: LengthRange | None) -> PCFG:
    """Return a grammar with the same possible sentences and no small rule probabilities.

    Without ``lengths`` the shortest derivation of each symbol gets enough probability for derivations to end.

    Raises:
        InputError: derivations do not end with any of these probabilities.
    """
    parent = [rules[:, 0] for rules, _ in pcfg.tables()]
    number = np.bincount(np.concatenate(parent), minlength=len(pcfg.symbols))
    shortest = _shortest(pcfg)
    for share in SHARES:
        logs = []
        for symbol, short in zip(parent, shortest, strict=True):
            if share is None:
                logs.append(-np.log(number[symbol]))
            else:
                alone = number[symbol] == 1
                rest = share / np.maximum(number[symbol] - 1.0, 1.0)
                logs.append(np.log(np.where(short, np.where(alone, 1.0, 1.0 - share), rest)))
        result = replace(pcfg, binary_logp=logs[0], unary_logp=logs[1], lexical_logp=logs[2])
        if lengths is not None or result.exact.spectral_radius < DECAYING:
            return result
    raise InputError("cannot decide which strings are possible but too rare for float64; give a range of lengths")


def _shortest(pcfg: PCFG) -> list[Any]:
    """Return which rules of each symbol begin its lowest derivation tree, a mask for each of the three kinds."""
    height = np.full(len(pcfg.symbols), np.inf)
    chosen = [np.zeros(len(rules), dtype=bool) for rules, _ in pcfg.tables()]
    left = True
    level = 0.0
    while left:
        left, level = False, level + 1.0
        fresh = np.full(len(height), False)
        for mask, (rules, _) in zip(chosen, pcfg.tables(), strict=True):
            below = rules[:, 1:]
            ready = np.isinf(height[rules[:, 0]]) & ~fresh[rules[:, 0]]
            if mask is not chosen[2]:
                ready &= np.isfinite(height[below]).all(axis=1)
            places = np.flatnonzero(ready)
            first = places[np.unique(rules[places, 0], return_index=True)[1]]
            mask[first] = True
            fresh[rules[first, 0]] = True
            left |= bool(len(first))
        height[fresh] = level
    return chosen


class RareStrings:
    """Logarithms of expected numbers of strings of word numbers in a sentence.

    Args:
        pcfg: the grammar.
        hiding: the grammar with a last word that represents any word, from
            `truesource.grammar.inference.windows.with_any_word`.
        lengths: condition on this range.
    """

    def __init__(self, pcfg: PCFG, hiding: PCFG, lengths: LengthRange | None) -> None:
        self._pcfg, self._hiding, self._lengths = pcfg, hiding, lengths

    def log_numbers(self, string: Sequence[int]) -> tuple[float, float]:
        """Return ln of the expected numbers of a string of one word or more, and of sentences that end with it."""
        return self._free(string) if self._lengths is None else self._in_range(string, self._lengths)

    def _in_range(self, string: Sequence[int], lengths: LengthRange) -> tuple[float, float]:
        words, size = [self._pcfg.vocabulary[i] for i in string], len(string)
        texts = [[self._hiding.vocabulary[-1]] * j + words for j in range(max(lengths.high - size + 1, 0))]
        if not texts:
            return -math.inf, -math.inf
        rows = self._hiding.exact.causal_log_probs(texts, lengths)
        double = [len(text) * math.log(2.0) for text in texts]  # words have half their probability there
        anywhere = [float(row[:-1].sum()) + more for row, more in zip(rows, double, strict=True)]
        last = [float(row.sum()) + more for row, more in zip(rows, double, strict=True)]
        return float(np.logaddexp.reduce(anywhere)), float(np.logaddexp.reduce(last))

    @cached_property
    def _tables(self) -> tuple[Wide, Wide, Wide, Wide]:
        """Unary chains, right corners and left corners (S, S), and weights outside each symbol, (S,)."""
        pcfg, mass = self._pcfg, self._pcfg.exact.mass
        useful = mass > 0.0
        a, b, c = pcfg.binary.T
        right = unary_matrix(pcfg)
        np.add.at(right, (a, c), np.exp(pcfg.binary_logp) * mass[b])
        matrices = unary_matrix(pcfg), right, left_corner_matrix(pcfg, mass), mean_matrix(pcfg, mass)
        chains, right, left, mean = (_star(np.where(useful, matrix, 0.0)) for matrix in matrices)
        return chains, right, left, mean[pcfg.start] / np.longdouble(pcfg.exact.total_mass)

    def _free(self, string: Sequence[int]) -> tuple[float, float]:
        pcfg = self._pcfg
        chains, right, left, outside = self._tables
        a, b, c = pcfg.binary.T
        p = np.exp(pcfg.binary_logp.astype(np.longdouble))
        n = len(pcfg.symbols)

        def spread(at: Any, values: Wide) -> Wide:
            result = np.zeros(n, dtype=np.longdouble)
            np.add.at(result, at, values)
            return result

        spans: dict[tuple[int, int], Wide] = {}
        ends: list[Wide] = []
        begins: list[Wide] = []
        for t in range(1, len(string) + 1):
            rules = slice(*pcfg.exact.lexicon.start[string[t - 1] : string[t - 1] + 2])
            leaf = spread(pcfg.exact.lexicon.parent[rules], np.exp(pcfg.lexical_logp[rules].astype(np.longdouble)))
            for s in range(t - 1, -1, -1):
                bare = leaf if s == t - 1 else np.zeros(n, dtype=np.longdouble)
                for m in range(s + 1, t):
                    bare = bare + spread(a, p * spans[s, m][b] * spans[m, t][c])
                spans[s, t] = chains @ bare
            end = leaf if t == 1 else np.zeros(n, dtype=np.longdouble)
            begin = np.zeros(n, dtype=np.longdouble)
            for s in range(1, t):
                end = end + spread(a, p * ends[s - 1][b] * spans[s, t][c])
                begin = begin + spread(c, p * begins[s - 1][a] * spans[s, t][b])
            ends.append(right @ end)
            begins.append(left.T @ (begin + spread(c, outside[a] * p * ends[-1][b])))
        last = ends[-1][pcfg.start] / np.longdouble(pcfg.exact.total_mass)
        sums = spread(pcfg.lexical[:, 0], np.exp(pcfg.lexical_logp.astype(np.longdouble)))
        return _log(begins[-1] @ sums + last), _log(last)


def _star(matrix: FloatArray) -> Wide:
    """Return ``(I - matrix)^-1`` of a non-negative matrix of small spectral radius, in extended precision."""
    result = matrix.astype(np.longdouble)
    for k in range(len(result)):
        result = result + np.outer(result[:, k] / (1.0 - result[k, k]), result[k])
    return result + np.eye(len(result), dtype=np.longdouble)


def _log(value: Wide) -> float:
    return float(np.log(value)) if value > 0.0 else -math.inf
