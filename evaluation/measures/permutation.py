"""Whether two samples have the same word frequencies: sentences dealt out anew, words counted again.

What is permuted are sentences, which are independent. To permute tokens, as if the words of a sentence had nothing to
do with each other, rejects true null hypotheses wherever words recur within sentences.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from joblib import Parallel, delayed

from truesource.evaluation.measures.integer_corpus import Encoded
from truesource.evaluation.measures.monte_carlo import ChanceTest, Tail, judged
from truesource.evaluation.measures.repetitions import PERMUTATIONS
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.inference.batch import threads
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter

RANKS = 10_000  #: most frequent words that rank-frequency distributions are taken over, by default
STATISTICS = ("tv", "linf", "rank_ks")
_BATCH = 16  #: permutations a task


def compare_words(of: Encoded, others: Encoded, *, ranks: int = RANKS) -> dict[str, float]:
    """Distances between the word frequencies of two samples.

    ``tv`` and ``linf`` as `evaluation.measures.distances`; ``rank_ks`` the Kolmogorov-Smirnov distance of their
    rank-frequency distributions, each ranked by its own counts (Meister & Cotterell 2021, section 5).

    Raises:
        InputError: the samples were not encoded together.
    """
    from truesource.evaluation.measures._kernels import permutation as kernels

    _together(of, others)
    found = np.empty(3)
    kernels.compare(of.counts(), others.counts(), ranks, found)
    return dict(zip(STATISTICS, map(float, found), strict=True))


def permuted_words(
    of: Encoded, others: Encoded, *, ranks: int = RANKS, draws: int = PERMUTATIONS, seed: int = DEFAULT_SEED
) -> dict[str, FloatArray]:
    """The distances of `compare_words` for random deals of all sentences to two samples of these sizes, (draws,) each.

    Every permutation has its own generator, so that the numbers do not depend on how many cores share the work.

    Raises:
        InputError: the samples were not encoded together.
    """
    from truesource.evaluation.measures._kernels import permutation as kernels

    _together(of, others)
    tokens = np.concatenate([of.tokens, others.tokens]).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([of.lengths, others.lengths]))]).astype(np.int64)
    pooled = of.counts() + others.counts()
    states = np.random.default_rng(seed).integers(0, 2**64, size=(draws, 4), dtype=np.uint64)
    found = np.empty((draws, len(STATISTICS)))
    parts = [slice(a, min(a + _BATCH, draws)) for a in range(0, draws, _BATCH)]
    run = delayed(kernels.permutations)
    with meter("permuting sentences", total=draws) as progress:
        parallel = Parallel(n_jobs=threads(), prefer="threads", return_as="generator")
        work = (run(tokens, offsets, pooled, len(of), states[part], ranks, found[part]) for part in parts)
        for part, _ in zip(parts, parallel(work), strict=True):
            progress.advance(part.stop - part.start)
    return dict(zip(STATISTICS, found.T, strict=True))


def permutation_tests(
    of: Encoded,
    others: Encoded,
    *,
    ranks: int = RANKS,
    draws: int = PERMUTATIONS,
    seed: int = DEFAULT_SEED,
    tail: Tail = "upper",
) -> Mapping[str, ChanceTest]:
    """ChanceTest the distances of `compare_words`.

    Args:
        of: one sample.
        others: the other, encoded together with it.
        ranks: of ``rank_ks``.
        draws: permutations.
        seed: of them.
        tail: see `truesource.evaluation.measures.monte_carlo.p_value`.

    Raises:
        InputError: the samples were not encoded together.
    """
    null = permuted_words(of, others, ranks=ranks, draws=draws, seed=seed)
    return {name: judged(value, null[name], tail) for name, value in compare_words(of, others, ranks=ranks).items()}


def _together(of: Encoded, others: Encoded) -> None:
    if of.vocabulary != others.vocabulary:
        raise InputError("the two samples have different codes for words; encode them together")
