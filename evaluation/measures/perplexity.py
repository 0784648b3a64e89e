"""Perplexity and relative perplexity, pooled over the corpus, with intervals from resampled sentences."""

from __future__ import annotations

import numpy as np

from truesource.evaluation.measures.bootstrap import Interval, ends, resampled_ratio, resampled_ratios
from truesource.evaluation.measures.paired import Paired
from truesource.generator.language_model import TokenScores
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.support.arrays import FloatArray


def perplexity(log_prob: FloatArray) -> float:
    """``exp(-mean ln q)`` over all scored positions, pooled (never a mean of per-sentence perplexities).

    Of masked scores this is the pseudo-perplexity (Salazar et al. 2020).
    """
    return float(np.exp(-np.mean(log_prob)))


def perplexity_interval(scores: TokenScores, seed: int = DEFAULT_SEED) -> Interval:
    """The perplexity of all scored positions, at least one; sentences are resampled.

    Args:
        scores: of one model.
        seed: of the resampling.
    """
    _, row = np.unique(scores.sentence, return_inverse=True)
    total, counts = (np.bincount(row, weights).astype(np.float64) for weights in (-scores.log_prob, None))
    found = resampled_ratio(total, counts, seed=seed)
    with np.errstate(over="ignore"):
        return Interval(perplexity(scores.log_prob), *ends(*np.exp(np.maximum(found, 0.0))))


def perplexities(paired: Paired, seed: int = DEFAULT_SEED) -> dict[str, Interval]:
    """``ppl`` of the model, ``bound`` of the oracle, their ratio ``relative_ppl``, and ``kl``, each with its interval.

    ``kl = ln relative_ppl = mean(ln P - ln Q)`` is an unbiased estimate of the divergence KL(P || Q) in nats per
    token. Sentences are resampled, model and oracle together.
    """
    model, oracle, counts = paired.sums()
    totals = np.stack([-model, -oracle, oracle - model], axis=1)
    found = resampled_ratios(totals, np.repeat(counts[:, None], 3, axis=1), seed=seed)
    found[:, :2] = np.maximum(found[:, :2], 0.0)  # surprisals
    kl = float(np.mean(paired.oracle - paired.model))
    values = perplexity(paired.model), perplexity(paired.oracle), float(np.exp(kl))
    with np.errstate(over="ignore"):
        intervals = [Interval(value, *ends(*at)) for value, at in zip(values, np.exp(found).T, strict=True)]
    return {
        **dict(zip(("ppl", "bound", "relative_ppl"), intervals, strict=True)),
        "kl": Interval(kl, *ends(*found[:, 2])),
    }
