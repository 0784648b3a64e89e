"""The E-step: likelihood of observed trees and expected rule counts, by inside-outside over substates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grammar.estimate.split_merge.encode import Forest
from grammar.estimate.split_merge.parameters import Layout, Parameters


@dataclass(frozen=True, eq=False)
class Inside:
    """Inside vectors of a forest's nodes, each scaled so that its largest entry is one."""

    offset: NDArray[np.int64]  #: (N,) where a node's vector starts
    vector: NDArray[np.float64]  #: all vectors, one after another
    scale: NDArray[np.float64]  #: (N,) factor taken out at the node; 0 where no substate can make its subtree
    log_probs: NDArray[np.float64]  #: (T,) log probability of each tree, nats; -inf where impossible


@dataclass(frozen=True)
class Likelihood:
    """Log-likelihood of trees under a grammar with substates."""

    total: float  #: nats, over the possible trees
    tokens: int  #: words of the possible trees
    impossible: int  #: trees of probability zero, left out of both

    @property
    def per_token(self) -> float | None:
        """Nats per word of the possible trees; None when there are none."""
        return self.total / self.tokens if self.tokens else None


def inside(forest: Forest, layout: Layout, prob: NDArray[np.float64]) -> Inside:
    """Inside vectors of every node, children first."""
    from grammar.estimate.split_merge import _kernels

    rules = layout.rules
    lengths = rules[forest.rule, 1]
    lengths[0] = 1
    offset = np.cumsum(lengths) - lengths
    vector = np.empty(int(lengths.sum()))
    scale, log_scale = np.empty(len(offset)), np.empty(len(offset))
    _kernels.inside(forest.rule, forest.left, forest.right, offset, rules, prob, vector, scale, log_scale)
    return Inside(offset, vector, scale, log_scale[forest.roots])


def likelihood(forests: Sequence[Forest], parameters: Parameters, *, unknown: int = 0) -> Likelihood:
    """Log-likelihood of the trees, substates summed out; ``unknown`` trees are impossible from the start."""
    parts = [(forest, inside(forest, parameters.layout, parameters.prob).log_probs) for forest in forests]
    return _sum(parts, unknown)


def _sum(parts: Sequence[tuple[Forest, NDArray[np.float64]]], unknown: int) -> Likelihood:
    total, tokens, impossible = 0.0, 0, unknown
    for forest, log_probs in parts:
        possible = np.isfinite(log_probs)
        total += float(np.sum(forest.weights[possible] * log_probs[possible]))
        tokens += int(np.sum(forest.weights[possible] * forest.tokens[possible]))
        impossible += int(forest.weights[~possible].sum())
    return Likelihood(total, tokens, impossible)


def expected_counts(forests: Sequence[Forest], parameters: Parameters) -> tuple[Likelihood, NDArray[np.float64]]:
    """Log-likelihood, and how often each fine rule is used in the trees in expectation.

    The counts are ``prob * d log-likelihood / d prob``, which is the derivative by the log probability.
    Trees of probability zero count nothing; the first result says how many there are.
    """
    from grammar.estimate.split_merge import _kernels

    layout, prob = parameters.layout, parameters.prob
    gradient = np.zeros_like(prob)
    parts: list[tuple[Forest, NDArray[np.float64]]] = []
    for forest in forests:
        up = inside(forest, layout, prob)
        out = np.zeros_like(up.vector)
        # A root has one substate, whose scaled inside value is one, so its outside weight is its count.
        out[up.offset[forest.roots]] = np.where(np.isfinite(up.log_probs), forest.weights, 0.0)
        args = (forest.rule, forest.left, forest.right, up.offset, layout.rules, prob, up.vector, up.scale)
        _kernels.outside(*args, out, gradient)
        parts.append((forest, up.log_probs))
    return _sum(parts, 0), gradient * prob
