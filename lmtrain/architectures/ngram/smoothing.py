"""From counts to probabilities: unsmoothed, or interpolated Kneser-Ney."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.lmtrain.architectures.ngram._kernels import estimate as kernels
from truesource.lmtrain.architectures.ngram.trie import Trie

Smoothing = Literal["mle", "kneser_ney"]
FALLBACK = 0.5  #: discount of a length whose counts give none


@dataclass(frozen=True)
class NgramEstimate:
    """Log probabilities of the n-grams of a trie, nats; made by `estimate`."""

    trie: Trie  #: as `adjust` left it
    smoothing: Smoothing
    discount: FloatArray  #: (N, 3) taken from a count of 1, 2, and 3 or more, by length
    emitted: IntArray  #: (E,) tokens that can follow something: words, ``<unk>``, ``<eos>``
    log_prob: FloatArray  #: (G,) of the last token given those before it
    backoff: FloatArray  #: (C,) mass of a context that goes to the shorter one


def adjust(trie: Trie, smoothing: Smoothing) -> Trie:
    """The counts that an estimate is made from, in place of how often n-grams occur.

    ``mle`` takes them as they are. Under ``kneser_ney`` an n-gram of the greatest length counts as often as it occurs,
    a shorter one as often as different tokens stand before it; at the beginning of a sentence, where nothing does, as
    often as it occurs (as in KenLM).
    """
    if smoothing == "mle":
        return trie
    return replace(trie, count=kernels.continuation_counts(trie.count, trie.suffix, int(trie.level[-1])))


def estimate(
    trie: Trie,
    smoothing: Smoothing,
    emitted: IntArray,
    *,
    discount: FloatArray | None = None,
) -> NgramEstimate:
    """Probabilities of all n-grams.

    ``mle``: relative frequencies, p(w | h) = c(hw) / c(h.), without any smoothing. What was never seen after a context
    has probability zero; after a context that was never seen nothing is defined.

    ``kneser_ney``: interpolated modified Kneser-Ney (Chen & Goodman 1999, section 4.1; Kneser & Ney 1995). Each length
    is interpolated with the next shorter one, single tokens with the uniform distribution over ``emitted``.

    Args:
        trie: as `adjust` left it.
        smoothing: which of the two.
        emitted: tokens that can follow something.
        discount: (N, 3) of ``kneser_ney``, at most 1, 2 and 3; None: `discounts` of the counts.
    """
    if smoothing == "mle":
        discount = np.zeros((trie.order, 3))
    elif discount is None:
        counts = (trie.count[slice(*trie.bounds(length))] for length in range(1, trie.order + 1))
        discount = np.array([discounts(some) for some in counts])
    log_prob, backoff = np.empty(len(trie.word)), np.empty(int(trie.level[-1]))
    can_follow = np.zeros(trie.n_tokens, dtype=bool)
    can_follow[emitted] = True
    nothing = -np.inf if smoothing == "mle" else 0.0
    kernels.estimate(trie.start, trie.suffix, trie.count, trie.level, discount, can_follow, nothing, log_prob, backoff)
    return NgramEstimate(trie, smoothing, discount, emitted, log_prob, backoff)


def discounts(counts: Int32Array) -> tuple[float, float, float]:
    """Discounts of the n-grams of one length from how many of them count 1, 2, 3 and 4.

    With n_i of them counting i and Y = n_1 / (n_1 + 2 n_2), a count of i = 1, 2, and 3 or more loses
    i - (i + 1) Y n_{i+1} / n_i (Chen & Goodman 1999, equation 26). When one of n_1 to n_4 is 0 or a discount is not
    positive, as in very small or very repetitive corpora, all counts lose Y (the single discount of Kneser-Ney and of
    Ney, Essen & Kneser 1994); when n_1 or n_2 is 0 too, all lose 0.5.
    """
    n = kernels.counts_of_counts(counts).astype(float)
    if n[0] == 0 or n[1] == 0:
        return FALLBACK, FALLBACK, FALLBACK
    y = float(n[0] / (n[0] + 2 * n[1]))
    if n.all():
        one, two, three = (float(i - (i + 1) * y * n[i] / n[i - 1]) for i in (1, 2, 3))
        if min(one, two, three) > 0.0:
            return one, two, three
    return y, y, y
