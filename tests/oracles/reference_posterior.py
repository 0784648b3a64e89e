"""Slow, obvious posteriors for tiny grammars: the weight of a sentence with parts of its derivations reweighted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truesource.grammar.pcfg import PCFG

STEP = 1e-30  #: of complex-step differentiation, which has no rounding error
Span = tuple[int, int]


@dataclass
class Reweighted:
    """Factors of what stands over one span, for each state or rule; all ones by default."""

    nodes: NDArray[np.complex128]  #: (S,) every node
    bottoms: NDArray[np.complex128]  #: (S,) the lower end of the unary chain
    unary: NDArray[np.complex128]  #: (S, S) every unary rule
    binary: NDArray[np.complex128]  #: (n+1, R) every binary rule, by split


class Reference:
    """P(sentence) as a function of such factors; derivatives are expected counts, zeros are exclusions."""

    def __init__(self, pcfg: PCFG, sentence: Sequence[str]) -> None:
        self.pcfg, self.sentence = pcfg, tuple(sentence)
        self.total = self.weight((0, 1), lambda _: None).real

    def weight(self, at: Span, change: Callable[[Reweighted], None]) -> complex:
        pcfg, n, size = self.pcfg, len(self.sentence), len(self.pcfg.symbols)
        steps = np.zeros((size, size), dtype=complex)
        for (a, b), p in zip(pcfg.unary.tolist(), np.exp(pcfg.unary_logp), strict=True):
            steps[a, b] = p
        chart: dict[Span, NDArray[np.complex128]] = {}
        for length in range(1, n + 1):
            for i in range(n - length + 1):
                j = i + length
                factor = Reweighted(
                    np.ones(size, complex),
                    np.ones(size, complex),
                    np.ones((size, size), complex),
                    np.ones((n + 1, len(pcfg.binary)), complex),
                )
                if (i, j) == at:
                    change(factor)
                bare = np.zeros(size, dtype=complex)
                if length == 1:
                    for (a, w), p in zip(pcfg.lexical.tolist(), np.exp(pcfg.lexical_logp), strict=True):
                        if pcfg.vocabulary[w] == self.sentence[i]:
                            bare[a] += p
                for k in range(i + 1, j):
                    for r, (a, b, c) in enumerate(pcfg.binary.tolist()):
                        p = np.exp(pcfg.binary_logp[r]) * factor.binary[k, r]
                        bare[a] += p * chart[i, k][b] * chart[k, j][c]
                up = np.diag(factor.nodes)
                chart[i, j] = np.linalg.solve(np.eye(size) - up @ (steps * factor.unary), up @ (bare * factor.bottoms))
        return complex(chart[0, n][pcfg.start])

    def count(self, at: Span, change: Callable[[Reweighted, complex], None]) -> float:
        """Expected number of the parts that ``change`` multiplies by its second argument."""
        return self.weight(at, lambda factor: change(factor, 1 + STEP * 1j)).imag / STEP / self.total

    def occurs(self, at: Span, change: Callable[[Reweighted, complex], None]) -> float:
        """P(there is at least one of these parts)."""
        return 1.0 - self.weight(at, lambda factor: change(factor, 0.0)).real / self.total


def nodes(states: Sequence[int]) -> Callable[[Reweighted, complex], None]:
    """All nodes of these states."""

    def change(factor: Reweighted, by: complex) -> None:
        factor.nodes[list(states)] *= by

    return change


def bottoms(states: Sequence[int]) -> Callable[[Reweighted, complex], None]:
    """Lower ends of unary chains of these states."""

    def change(factor: Reweighted, by: complex) -> None:
        factor.bottoms[list(states)] *= by

    return change


def unary(above: Sequence[int], below: Sequence[int]) -> Callable[[Reweighted, complex], None]:
    """Unary rules from any of these states to any of those."""

    def change(factor: Reweighted, by: complex) -> None:
        factor.unary[np.ix_(list(above), list(below))] *= by

    return change


def binary(split: int, rules: Sequence[int]) -> Callable[[Reweighted, complex], None]:
    """These binary rules at one split."""

    def change(factor: Reweighted, by: complex) -> None:
        factor.binary[split, list(rules)] *= by

    return change
