"""The probability of a set of tokens together, after every context at once."""

from __future__ import annotations

import numpy as np

from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.lmtrain.architectures.ngram.smoothing import NgramEstimate


def log_mass(estimate: NgramEstimate, members: BoolArray) -> FloatArray:
    """Log probability that the next token is one of a set.

    With b(h) and h' as in `_kernels.estimate.estimate`, p(w | h) is b(h) p(w | h') where hw is not in
    the trie, so the mass of the set after h is the sum of its p(w | h) over the hw that are, plus b(h) times what of
    the mass after h' belongs to other tokens. One pass over the n-grams, shorter contexts first.

    Args:
        estimate: of the n-grams.
        members: (K,) which tokens are in the set.

    Returns:
        (C,) nats, by context; -inf where none of them can follow.
    """
    trie = estimate.trie
    n_contexts = len(estimate.backoff)
    context = np.repeat(np.arange(n_contexts), np.diff(trie.start))  # of every n-gram but the empty one
    chosen = 1 + np.flatnonzero(members[trie.word[1:]])
    context = context[chosen - 1]
    p = np.exp(estimate.log_prob)
    mass = np.bincount(context, p[chosen], minlength=n_contexts)
    shorter = np.bincount(context, p[np.maximum(trie.suffix[chosen], 0)], minlength=n_contexts)
    for length in range(1, trie.order):
        some = slice(*trie.bounds(length))
        others = np.maximum(mass[trie.suffix[some]] - shorter[some], 0.0)
        mass[some] += np.exp(estimate.backoff[some]) * others
    with np.errstate(divide="ignore"):
        found: FloatArray = np.log(mass)
    return found
