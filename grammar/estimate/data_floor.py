"""The data floor: divergence from a known-rules grammar of a learner that counts the rules of sampled trees."""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError

SMOOTHING = 0.5  #: added to each count (Krichevsky and Trofimov 1981)
LARGE = 1e4  #: counts of a larger mean have their log expanded in a series, to 1e-12
SPREAD = 12.0  #: the sum extends so many standard deviations around a mean


def expected_log(mean: FloatArray, add: FloatArray) -> FloatArray:
    """Return E ln(X + add) of X ~ Poisson(mean), nats; all (N,), ``add`` above 0."""
    level, result = mean + add, np.empty(len(mean))
    large = mean > LARGE
    m, c = mean[large], level[large]
    result[large] = np.log(c) - m / (2 * c**2) + m / (3 * c**3) - (3 * m**2 + m) / (4 * c**4)
    pairs, places = np.unique(np.stack([mean[~large], add[~large]]), axis=1, return_inverse=True)
    values = np.empty(pairs.shape[1])
    for i, (m, a) in enumerate(pairs.T.tolist()):
        wide = SPREAD * math.sqrt(m) + 2 * SPREAD
        x = np.arange(max(0, math.floor(m - wide)), math.ceil(m + wide) + 1)
        log_pmf = x * math.log(m) - m - _log_factorials(x) if m > 0.0 else np.where(x == 0, 0.0, -np.inf)
        values[i] = np.exp(log_pmf) @ np.log(x + a)
    result[~large] = values[places.ravel()]
    return result


def _log_factorials(x: IntArray) -> FloatArray:
    from scipy.special import gammaln

    return np.asarray(gammaln(x + 1.0))


def data_floor(pcfg: PCFG, trees: int, smoothing: float = SMOOTHING, lengths: LengthRange | None = None) -> float:
    """Return expected KL(P || estimate) of derivations, nats a sentence, for a learner that counts rules of N trees.

    The learner knows the rules and not their probabilities: it estimates ``(count + s) / (count of the parent + s K)``
    for each of the K rules of a symbol. By the chain rule the divergence is the sum over symbols of E#[A] KL(p_A ||
    estimate), so its expectation follows from the expected numbers of rules, with counts taken as Poisson: exact to the
    order of 1/N^2. For large N it is d / (2 N), where d is the number of free parameters. A model of sentences has at
    most this divergence, since the divergence of sentences is at most the divergence of their derivations.

    Under a condition on length the formula applies to the rules that trees of such lengths have, with their expected
    numbers: a learner that knows the condition has the same leading term d / (2 N); higher orders are unknown.

    Args:
        pcfg: the true grammar.
        trees: N.
        smoothing: s, above 0: otherwise a rule missing from the trees has infinite cost.
        lengths: range of lengths of the trees, in words; None: any.

    Raises:
        InputError: there are no trees, the smoothing is not above 0, or expected counts are infinite.
    """
    if trees < 1 or not smoothing > 0.0:
        raise InputError(f"the data floor needs 1 tree or more and a smoothing above 0; got {trees} and {smoothing}")
    counts = expected_counts(pcfg, lengths)
    parent = np.concatenate([rules[:, 0] for rules, _ in pcfg.tables()])
    log_p = np.concatenate([logp for _, logp in pcfg.tables()])
    uses = np.concatenate([counts.binary, counts.unary, counts.lexical])
    of_symbol = np.bincount(parent, uses, len(pcfg.symbols)).astype(np.float64)
    if lengths is not None:
        of_parent = np.where(of_symbol > 0.0, of_symbol, 1.0)[parent]
        log_p = np.log(uses / of_parent, out=np.zeros(len(uses)), where=uses > 0.0)
    possible = slice(None) if lengths is None else uses > 0.0
    n_rules = np.bincount(parent[possible], minlength=len(pcfg.symbols)).astype(np.float64)
    log_count = expected_log(trees * uses, np.full(len(uses), smoothing))
    whole = expected_log(trees * of_symbol, smoothing * np.maximum(n_rules, 1.0))
    return float(uses @ (log_p - log_count)) + float(of_symbol @ whole)


def free_parameters(pcfg: PCFG) -> int:
    """Return the number of free probabilities: rules less symbols that have any."""
    parents = np.concatenate([rules[:, 0] for rules, _ in pcfg.tables()])
    return len(parents) - len(np.unique(parents))
