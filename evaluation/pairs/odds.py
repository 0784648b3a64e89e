"""Log odds of pairs (of word frequencies, grammar, model), and the sums whose ratios are the measures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.measures.bootstrap import (
    Interval,
    counting,
    ends,
    proportion,
    resampled_measures,
    resampled_ratios,
)
from truesource.evaluation.measures.correlation import NEAR_ONE
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Pair, Words
from truesource.generator.language_model import LanguageModel, ScoringFrame
from truesource.generator.model_checks import checked_scores
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.printable import too_few

FRAME = ScoringFrame()  #: every word, and the end of the sentence
TIE = 1e-9  #: nats; log odds nearer to zero prefer neither side
COLUMNS = (
    *("decided", "correct", "unigram_decided", "unigram_correct"),
    *("finite", "model_truth", "truth_truth", "model_model", "distance"),
    *("pairs", "choice", "choice_truth", "choice_error"),
    *("contexts", "context", "context_truth"),
)
#: each measure as numerator and denominator; ``correlation`` is made of three sums
RATIOS = {
    "accuracy": ("correct", "decided"),
    "unigram_accuracy": ("unigram_correct", "unigram_decided"),
    "slope": ("model_truth", "truth_truth"),
    "log_odds_error": ("distance", "finite"),
    "choice": ("choice", "pairs"),
    "choice_truth": ("choice_truth", "pairs"),
    "choice_error": ("choice_error", "pairs"),
    "context": ("context", "contexts"),
    "context_truth": ("context_truth", "contexts"),
}
#: between which values a measure lies; all others are shares
_RANGES = {
    "correlation": (-1.0, 1.0),
    "slope": (-math.inf, math.inf),
    "log_odds_error": (0.0, math.inf),
    "context": (-math.inf, math.inf),
    "context_truth": (-math.inf, math.inf),
}
PROPORTIONS = ("accuracy", "unigram_accuracy")  #: with intervals of proportions
MEASURES = ("accuracy", "unigram_accuracy", "correlation", *(name for name in RATIOS if "accuracy" not in name))


def unigram_log_odds(lexicon: Lexicon, a: Sequence[str], b: Sequence[str]) -> float | None:
    """Return the sum of ln u(w) over ``a`` less the sum over ``b``, without common words; None if one is not finite."""
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
    """Return the pairs with the log probabilities of a grammar, sides as they are."""
    sentences = list(dict.fromkeys(words for pair in pairs for words in (pair.a, pair.b)))
    values = lexicon.pcfg.exact.string_log_probs(sentences).tolist()
    log_probs = {words: value if np.isfinite(value) else None for words, value in zip(sentences, values, strict=True)}
    return [
        replace(
            pair,
            log_p_a=log_probs[pair.a],
            log_p_b=log_probs[pair.b],
            unigram_log_odds=unigram_log_odds(lexicon, pair.a, pair.b),
        )
        for pair in pairs
    ]


def truth_log_odds(pairs: Sequence[Pair], pcfg: PCFG, model: LanguageModel) -> FloatArray:
    """Return the log odds of the grammar that a model is compared with, (P,) nats, as `model_log_odds`.

    For a causal model it is ln P(a)/P(b), as in the pairs; for a masked model the difference of the exact sums of
    ln P(word | all others), for a model in any order the difference of ln P(sentence | its length).
    """
    if model.objective != "causal":
        return model_log_odds(Oracle(pcfg, model.objective), pairs)
    sides = [np.array([-np.inf if p is None else p for p in side], dtype=np.float64) for side in _log_ps(pairs)]
    return _difference(sides[0], sides[1])


def _log_ps(pairs: Sequence[Pair]) -> tuple[list[float | None], list[float | None]]:
    return [pair.log_p_a for pair in pairs], [pair.log_p_b for pair in pairs]


def model_log_odds(model: LanguageModel, pairs: Sequence[Pair]) -> FloatArray:
    """Return ln Q(a)/Q(b) of a causal model, else the difference of pseudo-log-likelihoods or of ELBOs, (P,) nats.

    They are infinite if the model cannot make one side, NaN if it can make neither.
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
    """Return the mask of the pairs with a word that the model reads as ``<unk>``, (P,)."""
    if model.vocabulary is None:
        return np.zeros(len(pairs), dtype=bool)
    vocabulary = set(model.vocabulary)
    return np.array([not vocabulary.issuperset((*pair.a, *pair.b)) for pair in pairs], dtype=bool)


def pair_sums(truth: FloatArray, model: FloatArray, unigram: FloatArray) -> FloatArray:
    """Return the terms of each pair in every sum, (P, K) in the order of ``COLUMNS``.

    The order of the sentences of a pair is arbitrary. So correlation and slope count every pair in both orders,
    which makes their means zero: ``sum x y / sqrt(sum x^2 sum y^2)`` and ``sum x y / sum x^2``. Probabilities of a
    choice, ``sigma(log odds)``, are of the sentence that the truth prefers, 0.5 if it prefers none. Infinite odds
    count for accuracies and choices only; so do pairs of which the model can make neither sentence, as pairs without
    preference.

    Args:
        truth: (P,) log odds of the truth, nats; infinite if it cannot make one side.
        model: (P,) of the model; infinite if it cannot make one side, NaN if it can make neither.
        unigram: (P,) of word frequencies; NaN if unknown.
    """
    prefers = preferred(truth)
    chance = np.where(np.isnan(model), 0.5, expit(model))
    decided = prefers != 0.0
    finite = np.isfinite(truth) & np.isfinite(model)
    x, y = (np.where(finite, side, 0.0) for side in (truth, model))
    comparable = finite & decided & np.isfinite(unigram)
    u = np.where(np.isfinite(unigram), unigram, 0.0)
    side = np.where(decided, prefers, 1.0)
    columns = {
        "decided": decided,
        "correct": decided * _right(preferred(model), prefers),
        "unigram_decided": decided & np.isfinite(unigram),
        "unigram_correct": decided * np.isfinite(unigram) * _right(preferred(u), prefers),
        "finite": finite,
        "model_truth": x * y,
        "truth_truth": x * x,
        "model_model": y * y,
        "distance": np.abs(x - y),
        "pairs": np.ones(len(truth)),
        "choice": np.where(decided & ~np.isnan(model), expit(side * model), 0.5),
        "choice_truth": np.where(decided, expit(side * truth), 0.5),
        "choice_error": np.abs(chance - expit(truth)),
        "contexts": comparable,
        "context": comparable * side * (y - u),
        "context_truth": comparable * side * (x - u),
    }
    return np.stack([np.asarray(columns[name], dtype=np.float64) for name in COLUMNS], axis=1)


def preferred(odds: FloatArray) -> FloatArray:
    """Return 1 if log odds prefer the first side, -1 if the second, 0 if neither, or if they are NaN."""
    return np.where(np.isnan(odds) | (np.abs(odds) <= TIE), 0.0, np.sign(odds))


def _right(own: FloatArray, prefers: FloatArray) -> FloatArray:
    """Return 1 if the same side is preferred, 0.5 if ``own`` prefers neither."""
    return np.where(own == 0.0, 0.5, own == prefers)


def by_source(values: FloatArray, source: Sequence[int]) -> FloatArray:
    """Return sums over pairs of one source, (N, K)."""
    _, row = np.unique(np.asarray(source, dtype=np.int64), return_inverse=True)
    sums = np.zeros((int(row.max()) + 1, values.shape[1]))
    np.add.at(sums, row, values)
    return sums


def measures(sums: FloatArray, names: Sequence[str] = MEASURES, *, seed: int) -> dict[str, Interval]:
    """Return measures with 95% intervals, except measures without data.

    Accuracies have intervals of proportions, see `evaluation.measures.bootstrap.proportion`; the others have bootstrap
    intervals.

    Args:
        sums: (N, K), see `by_source`.
        names: of measures.
        seed: of the resampling of sources.
    """
    totals = sums.sum(axis=0)
    results: dict[str, Interval] = {}
    ratios = [name for name in names if name in RATIOS and name not in PROPORTIONS]
    above, below = (sums[:, [COLUMNS.index(RATIOS[name][side]) for name in ratios]] for side in (0, 1))
    intervals = dict(zip(ratios, resampled_ratios(above, below, seed=seed).T, strict=True))
    for name in names:
        if name in PROPORTIONS:
            share = proportion(*(sums[:, COLUMNS.index(part)] for part in RATIOS[name]))
            if share is not None:
                results[name] = share
            continue
        value = _measure(name, totals)
        if np.isfinite(value):
            interval = intervals[name] if name in intervals else _correlation_ends(sums, value, seed)
            results[name] = Interval(value, *ends(*np.clip(interval, *_RANGES.get(name, (0.0, 1.0)))))
    return results


def sources(sums: FloatArray, name: str) -> int:
    """Return the number of sources that count in a measure.

    Args:
        sums: (N, K), see `by_source`.
        name: of the measure.
    """
    return counting(sums[:, COLUMNS.index("truth_truth" if name == "correlation" else RATIOS[name][1])])


def _correlation_ends(sums: FloatArray, value: float, seed: int) -> FloatArray:
    """Return the interval of the correlation, on the scale of Fisher's z, (2,); NaN of too few sources."""
    columns = [COLUMNS.index(part) for part in ("model_truth", "truth_truth", "model_model")]
    if too_few(sources(sums, "correlation")):
        return np.full(2, np.nan)
    if abs(value) >= NEAR_ONE:  # a straight line, on which Fisher's z is infinite
        return np.full(2, value)

    def fisher(moments: NDArray[Any]) -> NDArray[Any]:
        correlation = moments[:, :1] / np.sqrt(moments[:, 1:2] * moments[:, 2:])
        return np.asarray(0.5 * (np.log(1.0 + correlation) - np.log(1.0 - correlation)))

    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.tanh(resampled_measures(fisher, sums[:, columns], seed=seed)[:, 0]))


def _measure(name: str, totals: FloatArray) -> float:
    """Return one measure of the sums of all sources, NaN if its denominator is zero."""
    column = dict(zip(COLUMNS, totals.tolist(), strict=True))
    if name == "correlation":
        above, below = column["model_truth"], math.sqrt(column["truth_truth"] * column["model_model"])
    else:
        above, below = (column[part] for part in RATIOS[name])
    return above / below if below > 0.0 else math.nan
