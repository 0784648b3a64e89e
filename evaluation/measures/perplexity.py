"""Perplexity and relative perplexity, pooled over the corpus, with sentence-bootstrap intervals."""

from __future__ import annotations

import numpy as np

from evaluation.measures.bootstrap import Interval, resampled_ratio
from evaluation.measures.paired import FloatArray, Paired


def perplexity(log_prob: FloatArray) -> float:
    """``exp(-mean ln q)`` over all scored positions, pooled (never a mean of per-sentence perplexities).

    Of masked scores this is the pseudo-perplexity (Salazar et al. 2020).
    """
    return float(np.exp(-np.mean(log_prob)))


def perplexities(paired: Paired, seed: int = 0) -> dict[str, Interval]:
    """``ppl`` of the model, ``bound`` of the oracle, their ratio ``relative_ppl``, and ``kl``, each with its interval.

    ``kl = ln relative_ppl = mean(ln P - ln Q)`` is an unbiased estimate of the divergence KL(P || Q) in nats per
    token. Sentences are resampled, model and oracle together.
    """
    model, oracle, counts = paired.sums()
    values = {
        "ppl": (-model, perplexity(paired.model)),
        "bound": (-oracle, perplexity(paired.oracle)),
        "relative_ppl": (oracle - model, float(np.exp(np.mean(paired.oracle - paired.model)))),
    }
    found = {}
    for name, (total, value) in values.items():
        low, high = np.exp(resampled_ratio(total, counts, seed=seed))
        found[name] = Interval(value, float(low), float(high))
    ends = resampled_ratio(oracle - model, counts, seed=seed)
    found["kl"] = Interval(float(np.mean(paired.oracle - paired.model)), *map(float, ends))
    return found
