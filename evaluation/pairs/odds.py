"""Log odds of pairs: of word frequencies, of the grammar, and of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Pair, Words
from truesource.generator.abilities import checked_scores
from truesource.generator.language_model import LanguageModel, ScoringFrame
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray

FRAME = ScoringFrame()  #: every word, and the end of the sentence


def unigram_log_odds(lexicon: Lexicon, a: Sequence[str], b: Sequence[str]) -> float | None:
    """Sum of ln u(w) over ``a`` less that over ``b``, words in common left out; None where one is not finite."""
    left, right = Counter(a), Counter(b)
    total = 0.0
    for side, sign in ((left - right, 1.0), (right - left, -1.0)):
        for word, times in sorted(side.items()):
            number = lexicon.pcfg.word_ids.get(word)
            if number is None or not np.isfinite(lexicon.unigram[number]):
                return None
            total += sign * times * float(lexicon.unigram[number])
    return total


def with_truth(pairs: Sequence[Pair], lexicon: Lexicon) -> list[Pair]:
    """The pairs with the log probabilities of a grammar, sides as they are."""
    sentences = list(dict.fromkeys(words for pair in pairs for words in (pair.a, pair.b)))
    values = lexicon.pcfg.exact.string_log_probs(sentences).tolist()
    known = {words: value if np.isfinite(value) else None for words, value in zip(sentences, values, strict=True)}
    return [
        replace(
            pair,
            log_p_a=known[pair.a],
            log_p_b=known[pair.b],
            unigram_log_odds=unigram_log_odds(lexicon, pair.a, pair.b),
        )
        for pair in pairs
    ]


def truth_log_odds(pairs: Sequence[Pair], pcfg: PCFG, model: LanguageModel) -> FloatArray:
    """What a model is compared with, (P,) nats: as `model_log_odds`, of the grammar.

    For a causal model ln P(a)/P(b), as it stands in the pairs; for a masked model the difference of the exact sums of
    ln P(word | all others).
    """
    if model.objective == "masked":
        return model_log_odds(Oracle(pcfg, "masked"), pairs)
    sides = [np.array([-np.inf if p is None else p for p in side], dtype=np.float64) for side in _log_ps(pairs)]
    return _difference(sides[0], sides[1])


def _log_ps(pairs: Sequence[Pair]) -> tuple[list[float | None], list[float | None]]:
    return [pair.log_p_a for pair in pairs], [pair.log_p_b for pair in pairs]


def model_log_odds(model: LanguageModel, pairs: Sequence[Pair]) -> FloatArray:
    """Ln Q(a)/Q(b) for a causal model, the difference of pseudo-log-likelihoods for a masked one, (P,) nats.

    Infinite where the model cannot make one side, NaN where it can make neither.
    """
    sentences: list[Words] = list(dict.fromkeys(words for pair in pairs for words in (pair.a, pair.b)))
    if not sentences:
        return np.empty(0)
    scores = checked_scores(model, sentences, FRAME)
    total = np.bincount(scores.sentence, scores.log_prob, minlength=len(sentences)).astype(np.float64)
    total[scores.impossible] = -np.inf
    numbers = {words: i for i, words in enumerate(sentences)}
    return _difference(
        total[np.array([numbers[pair.a] for pair in pairs], dtype=np.int64)],
        total[np.array([numbers[pair.b] for pair in pairs], dtype=np.int64)],
    )


def _difference(a: FloatArray, b: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return a - b


def outside_vocabulary(model: LanguageModel, pairs: Sequence[Pair]) -> BoolArray:
    """Which pairs have a word that the model reads as ``<unk>``, (P,)."""
    if model.vocabulary is None:
        return np.zeros(len(pairs), dtype=bool)
    known = set(model.vocabulary)
    return np.array([not known.issuperset((*pair.a, *pair.b)) for pair in pairs], dtype=bool)
