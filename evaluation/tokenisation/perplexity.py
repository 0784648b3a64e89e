"""Perplexity per word between white space, and bits per character and byte: canonical and marginal."""

from __future__ import annotations

import math
import sys

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.measures.bootstrap import ci_part, ends, resampled_ratios
from truesource.evaluation.tokenisation.estimators.registry import ONE_BEST
from truesource.evaluation.tokenisation.results import Evaluation
from truesource.grammar.conditioning import DEFAULT_SEED

LN2 = math.log(2.0)
MOST = math.log(sys.float_info.max)  #: nats, whose exponential is the largest float


def perplexities(evaluation: Evaluation, seed: int = DEFAULT_SEED) -> dict[str, dict[str, Score]]:
    """How well each run predicts the documents (Cao & Rimell 2021, section 4.1).

    By label, ``one-best`` among them: ``ppl``, ``exp(-sum of log P(D) / sum of words)``; ``bits_per_character`` and
    ``bits_per_byte``; and, but for ``one-best``, ``improvement``: (ppl of T* - ppl) / ppl of T*, a share below 1. Of
    the first and the last there is none where it is beyond the largest float (some 709 nats a word: text without white
    space), and no interval where only an end of that is.
    Words, characters and bytes are those of the original texts, white space and the end of the text not counted as
    words; whether P holds the end of the text is in the signature (``eos``). Logarithms are of estimates: those of
    unbiased ones are too low on average, so that perplexities are too high. Intervals are of a document bootstrap, in
    which all runs meet the same documents, and hold nothing of the error of the estimates themselves (see `Total`).
    """
    one_best = evaluation.one_best
    words, characters, n_bytes = evaluation.words, evaluation.characters, evaluation.n_bytes
    found: dict[str, dict[str, Score]] = {}
    for label in evaluation.runs:
        log_p = evaluation.log_p(label)
        total = np.stack([-log_p, -log_p / LN2, -log_p / LN2, one_best - log_p], axis=1)
        count = np.stack([words, characters, n_bytes, words], axis=1)
        value = total.sum(axis=0) / count.sum(axis=0)
        intervals = resampled_ratios(total, count, seed=seed)
        intervals[:, :3] = np.maximum(intervals[:, :3], 0.0)  # of surprisals
        parts = {"ci": ci_part(len(words), seed, "document"), "words": int(words.sum())}
        signed = {
            unit: evaluation.signed(label, bound=evaluation.total(label).bound, unit=unit, **parts)
            for unit in ("per-word", "bits", "share")
        }
        scores: dict[str, Score] = {}
        with np.errstate(over="ignore"):  # an end beyond the largest float is none
            ppl, improvement = np.exp(intervals[:, 0]), -np.expm1(intervals[::-1, 3])
        if value[0] <= MOST:
            scores["ppl"] = Score("ppl", math.exp(value[0]), signed["per-word"], *ends(*ppl))
        for i, name in ((1, "bits_per_character"), (2, "bits_per_byte")):
            scores[name] = Score(name, float(value[i]), signed["bits"], *ends(*intervals[:, i]))
        if label != ONE_BEST and value[3] <= MOST:
            scores["improvement"] = Score("improvement", -math.expm1(value[3]), signed["share"], *ends(*improvement))
        found[label] = scores
    return found


def perplexity(nats: float) -> float | None:
    """Of a word, from its nats; None where it is beyond the largest float."""
    return math.exp(nats) if nats <= MOST else None
