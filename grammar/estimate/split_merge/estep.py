"""The E-step: likelihood of observed trees and expected rule counts, by inside-outside over substates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from truesource.grammar.estimate.split_merge._kernels.arrays import ForestNodes
from truesource.grammar.estimate.split_merge.encode import Forest
from truesource.grammar.estimate.split_merge.parameters import Parameters
from truesource.grammar.estimate.split_merge.sparse import SparseRules
from truesource.grammar.support.arrays import FloatArray

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Inside:
    """Inside vectors of a forest's nodes, each scaled so that its largest entry is one."""

    nodes: ForestNodes
    vector: NDArray[Any]  #: all vectors, one after another
    scale: NDArray[Any]  #: (N,) factor taken out at the node; 0 where no substate can make its subtree
    log_probs: FloatArray  #: (T,) log probability of each tree, nats; -inf where impossible


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


def inside(forest: Forest, rules: SparseRules) -> Inside:
    """Inside vectors of every node, children first."""
    from truesource.grammar.estimate.split_merge._kernels import charts as kernels

    lengths = rules.sizes[forest.rule, 0]
    lengths[0] = 1
    offset = np.cumsum(lengths) - lengths
    vector = np.zeros(int(lengths.sum()), dtype=rules.prob.dtype)
    scale, log_scale = np.empty(len(offset), dtype=rules.prob.dtype), np.empty(len(offset))
    nodes = ForestNodes(forest.rule, forest.left, forest.right, forest.batches, offset)
    kernels.inside(nodes, rules.sizes, rules.entries, vector, scale, log_scale)
    return Inside(nodes, vector, scale, log_scale[forest.roots])


def likelihood(forests: Sequence[Forest], grammar: Parameters | SparseRules, *, unknown: int = 0) -> Likelihood:
    """Log-likelihood of the trees, substates summed out; ``unknown`` trees are impossible from the start."""
    rules = grammar if isinstance(grammar, SparseRules) else SparseRules.of(grammar)
    rules = rules.awake()
    return _sum(list(zip(forests, _each(_log_probs, forests, rules), strict=True)), unknown)


def _sum(parts: Sequence[tuple[Forest, FloatArray]], unknown: int) -> Likelihood:
    total, tokens, impossible = 0.0, 0, unknown
    for forest, log_probs in parts:
        possible = np.isfinite(log_probs)
        total += float(np.sum(forest.weights[possible] * log_probs[possible]))
        tokens += int(np.sum(forest.weights[possible] * forest.tokens[possible]))
        impossible += int(forest.weights[~possible].sum())
    return Likelihood(total, tokens, impossible)


def expected_counts(forests: Sequence[Forest], parameters: Parameters) -> tuple[Likelihood, FloatArray]:
    """Log-likelihood, and how often each fine rule is used in the trees in expectation, (layout.size,).

    The counts are ``prob * d log-likelihood / d prob``, which is the derivative by the log probability.
    Trees of probability zero count nothing; the first result says how many there are.
    """
    rules = SparseRules.of(parameters)
    score, counts = expected_entries(forests, rules)
    return score, rules.flat(counts)


def expected_entries(
    forests: Sequence[Forest], rules: SparseRules, *, asleep_too: bool = True
) -> tuple[Likelihood, FloatArray]:
    """As `expected_counts`, for the entries of ``rules``: (E,); unless ``asleep_too``, 0 for dormant phrasal ones."""
    gradient = np.zeros(len(rules.prob))
    parts: list[tuple[Forest, FloatArray]] = []
    derivative = partial(_derivative, asleep_too=asleep_too)
    for forest, (log_probs, part) in zip(forests, _each(derivative, forests, rules), strict=True):
        gradient += part  # in the order of the forests, on any number of threads
        parts.append((forest, log_probs))
    return _sum(parts, 0), gradient * rules.prob


def _derivative(forest: Forest, rules: SparseRules, asleep_too: bool) -> tuple[FloatArray, FloatArray]:
    """Log probability of each tree, and the derivative of their sum by each rule probability.

    Where float32 is out of its range, float64 takes over.
    """
    from truesource.grammar.estimate.split_merge._kernels import charts as kernels

    up = inside(forest, rules)
    out, gradient = np.zeros_like(up.vector), np.zeros(len(rules.prob))
    # A root has one substate, whose scaled inside value is one, so its outside weight is its count.
    out[up.nodes.offset[forest.roots]] = np.where(np.isfinite(up.log_probs), forest.weights, 0.0)
    kernels.outside(up.nodes, rules.sizes, rules.entries, up.vector, up.scale, out, asleep_too, gradient)
    in_range = bool(np.isfinite(up.log_probs).all() and np.isfinite(gradient).all())
    if not in_range and rules.prob.dtype != np.float64:
        return _derivative(forest, rules.astype(np.float64), asleep_too)
    return up.log_probs, gradient


def _log_probs(forest: Forest, rules: SparseRules) -> FloatArray:
    log_probs = inside(forest, rules).log_probs
    if not np.isfinite(log_probs).all() and rules.prob.dtype != np.float64:
        return inside(forest, rules.astype(np.float64)).log_probs
    return log_probs


def _each(work: Callable[[Forest, SparseRules], T], forests: Sequence[Forest], rules: SparseRules) -> Iterator[T]:
    """Results of ``work`` for each forest, in their order; as many at once as there are threads."""
    from joblib import Parallel, delayed

    from truesource.grammar.inference.batch import threads

    n = min(threads(), len(forests))
    if n <= 1:
        yield from (work(forest, rules) for forest in forests)
        return
    parallel = Parallel(n_jobs=n, prefer="threads", return_as="generator", pre_dispatch=n)
    yield from parallel(delayed(work)(forest, rules) for forest in forests)
