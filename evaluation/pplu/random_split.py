"""PPL and PPLu of words that are split in two at random (equations 7 to 14 of Roh et al. 2020).

A random split adds no information: a model that knows the probability beta of the halves has another PPL and the same
PPLu.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np

from truesource.evaluation.pplu.compare import UnigramPerplexity
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED

Knowledge = Literal["true", "counts"]


@dataclass(frozen=True)
class SplitPerplexities:
    """Perplexities before and after."""

    ppl: float
    ppl_split: float
    pplu: float
    pplu_split: float
    tokens: int  #: scored
    occurrences: int  #: of words that were split


def random_split(
    scored: UnigramPerplexity,
    words: Collection[str],
    beta: float,
    *,
    seed: int = DEFAULT_SEED,
    model: Knowledge = "true",
    unigram: Knowledge = "true",
) -> SplitPerplexities:
    """Replace every occurrence of some words by one of two new words, the first with probability beta in any context.

    Args:
        scored: scores of a model and its unigram distribution on a text.
        words: to split, each into two.
        beta: in (0, 1).
        seed: of the choices.
        model: its probabilities of the halves: ``true``: beta; ``counts``: the share of each in the text.
        unigram: the same, of the unigram distribution. With a model that knows beta and a unigram distribution that
            was counted, ln PPLu rises by ``n/T KL(counted || beta)``.

    Raises:
        InputError: beta is not between 0 and 1, or no such word was scored.
    """
    if not 0.0 < beta < 1.0:
        raise InputError(f"the probability of the first half is between 0 and 1, got {beta:g}")
    code = {word: i for i, word in enumerate(sorted(set(words)))}
    word = np.array([code.get(token, -1) for token in scored.tokens])
    at = np.flatnonzero(word >= 0)
    if not len(at):
        raise InputError("none of the words to split was scored")
    first = np.random.default_rng(seed).random(len(at)) < beta
    true = np.where(first, np.log(beta), np.log1p(-beta))
    n = np.bincount(word[at], minlength=len(code))
    k = np.bincount(word[at], weights=first, minlength=len(code))
    counted = np.log(np.where(first, k[word[at]], n[word[at]] - k[word[at]]) / n[word[at]])
    halves = {"true": true, "counts": counted}
    log_q, log_u = scored.log_model.copy(), scored.log_unigram.copy()
    log_q[at] += halves[model]
    log_u[at] += halves[unigram]
    return SplitPerplexities(
        ppl=_exp(-scored.log_model),
        ppl_split=_exp(-log_q),
        pplu=_exp(scored.log_unigram - scored.log_model),
        pplu_split=_exp(log_u - log_q),
        tokens=len(log_q),
        occurrences=len(at),
    )


def _exp(values: FloatArray) -> float:
    return float(np.exp(np.mean(values)))
