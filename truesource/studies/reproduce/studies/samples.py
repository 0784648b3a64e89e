"""Samples of a run: strings that its models generate, and text of the best predictors that see k words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.stats import binomtest

from truesource.evaluation.measures.bootstrap import TAILS
from truesource.grammar.inference.windows import Windows
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import load_truth
from truesource.lmtrain.decoding.decode import draw
from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.truth import endless
from truesource.run.config import RunConfig
from truesource.studies.reproduce.run_records import RunRecord, models_of, record_of

CONTEXTS = (1, 2, 4, 8, 16)  #: numbers of words that predictors see
RESAMPLES = 1000  #: of the bootstrap over strings
AT_ONCE = 1000  #: strings that are drawn from the truth at once


def generated_strings(folder: Path, config: RunConfig) -> list[RunRecord]:
    """Measure ancestral samples of each model, as many as ``evaluation.sentences``.

    ``accuracy``: share of them that the grammar can make, with an exact binomial interval; ``distinct``: share of
    different strings among these, if there are any.
    """
    truth, number = load_truth(folder / "grammar" / "grammar.npz"), config.evaluation.sentences
    assert isinstance(truth, PCFG) and number is not None
    records = []
    for entry, model in models_of(folder, config):
        sampled = draw(model, number, Decoding(), seed=config.seed).sentences
        some = [sentence for sentence in sampled if sentence]
        possible = np.isfinite(truth.exact.string_log_probs(some))
        right = [sentence for sentence, holds in zip(some, possible, strict=True) if holds]
        ends = binomtest(len(right), number).proportion_ci()
        record = {"name": "accuracy", "value": len(right) / number, "low": ends.low, "high": ends.high}
        records.append(record_of(entry, {**record, "sentences": number}))
        if right:
            distinct = len({tuple(sentence) for sentence in right}) / len(right)
            records.append(record_of(entry, {"name": "distinct", "value": distinct, "sentences": len(right)}))
    return records


def k_gram_samples(folder: Path, config: RunConfig) -> list[RunRecord]:
    """Statistics of ``evaluation.sentences`` strings of the truth, and of as many of each of its exact k-gram models.

    The language has strings of one length. A model sees `CONTEXTS` words, not the position, and draws word by word from
    P_k of `truesource.grammar.inference.windows.Windows`, given that the string does not end before it has that length.
    The first k words have all words before them as their context, so they are as in the truth.

    Records have ``words``, the number k, or ``all`` for the truth, and 95% intervals over strings. Of a language of two
    words: ``variance`` of the sum of spins, 1 and -1, divided by the number of words, and ``kurtosis``, its excess over
    the 3 of a Gaussian, with percentiles of the bootstrap. Of other languages: ``impossible``, the share of strings
    that the truth cannot make, with the interval of Wilson.

    Raises:
        InputError: strings have several lengths, or none continues after some k words.
    """
    truth, lengths = load_truth(folder / "grammar" / "grammar.npz"), config.corpus.lengths
    assert isinstance(truth, PCFG) and config.evaluation.sentences is not None
    number = config.evaluation.sentences
    batches = endless(truth, batch=min(number, AT_ONCE), seed=config.seed, lengths=lengths)
    windows, rng = Windows(truth, lengths), np.random.default_rng([config.seed, number])
    texts = _beginnings(truth, batches, number)
    records = list(_string_records(truth, texts, "all", rng))
    for words in (k for k in CONTEXTS if k < texts.shape[1]):
        continuations = continued(windows, _beginnings(truth, batches, number, words), texts.shape[1], rng)
        records += _string_records(truth, continuations, words, rng)
    return records


def _beginnings(truth: PCFG, batches: Iterator[list[list[str]]], number: int, words: int | None = None) -> Int32Array:
    """Return the first words (None: all) of strings of one length, as numbers, (N, words)."""
    rows: list[Int32Array] = []
    while len(rows) < number:
        rows += [truth.encode(each[:words]) for each in next(batches)]
    if len({len(row) for row in rows}) > 1:
        raise InputError("strings have several lengths; take a language, or corpus.lengths, of one length")
    return np.stack(rows[:number])


def continued(windows: Windows, first: Int32Array, length: int, rng: np.random.Generator) -> Int32Array:
    """Draw strings of ``length`` words, (N, length): after the first k, from a predictor that sees k words.

    It has the distributions of `Windows` without the end. Any k + 1 words in a row occur in the language, so each
    window has a distribution.

    Args:
        windows: of the grammar.
        first: (N, k) word numbers, that begin strings.
        length: more than k.
        rng: source of random numbers.

    Raises:
        InputError: no string continues after some k words.
    """
    n_words, words = len(windows.pcfg.vocabulary), first.shape[1]
    if n_words**words >= 2**62:
        raise InputError(f"windows of {words} words of {n_words} cannot be numbered; take fewer")
    texts = np.concatenate([first, np.empty((len(first), length - words), dtype=np.int32)], axis=1)
    place_values = n_words ** np.arange(words - 1, -1, -1, dtype=np.int64)
    numbered, upto = np.empty(0, dtype=np.int64), np.empty((0, n_words))  # windows, cumulative distributions
    for place in range(words, length):
        seen = texts[:, place - words : place].astype(np.int64)
        different, at, whose = np.unique(seen @ place_values, return_index=True, return_inverse=True)
        new = ~np.isin(different, numbered)
        if new.any():
            into = np.searchsorted(numbered, different[new])
            upto = np.insert(upto, into, np.cumsum(_distributions(windows, seen[at[new]]), axis=1), axis=0)
            numbered = np.insert(numbered, into, different[new])
        below = upto[np.searchsorted(numbered, different)][whose]
        texts[:, place] = (rng.random(len(texts))[:, None] >= below[:, :-1]).sum(axis=1)
    return texts


def _distributions(windows: Windows, seen: IntArray) -> FloatArray:
    """Return P(next word | these k words, the string continues), (N, V)."""
    law = windows.next_words(seen)[:, :-1]
    total = law.sum(axis=1, keepdims=True)
    if not (total > 0.0).all():
        lost = " ".join(windows.pcfg.vocabulary[word] for word in seen[int(np.argmin(total[:, 0]))])
        raise InputError(f"no string continues after {lost!r}; take fewer words")
    return np.asarray(law / total)


def _string_records(truth: PCFG, texts: Int32Array, words: int | str, rng: np.random.Generator) -> Iterator[RunRecord]:
    """Yield the records of strings, (N, n)."""
    records = _moments(texts, rng) if len(truth.vocabulary) == 2 else _impossible(truth, texts)
    for record in records:
        yield RunRecord({**record, "words": words, "grammar": truth.identity, "sentences": len(texts)})


def _moments(texts: Int32Array, rng: np.random.Generator) -> Iterator[Mapping[str, Any]]:
    """Yield the variance and excess kurtosis of the sums of strings of two words."""
    sums = (1.0 - 2.0 * texts).sum(axis=1)
    again = [rng.choice(sums, len(sums)) for _ in range(RESAMPLES)]
    for name, of in (("variance", lambda each: each.var(ddof=1) / texts.shape[1]), ("kurtosis", stats.kurtosis)):
        low, high = np.quantile([of(each) for each in again], TAILS)
        yield {"name": name, "value": float(of(sums)), "low": float(low), "high": float(high)}


def _impossible(truth: PCFG, texts: Int32Array) -> Iterator[Mapping[str, Any]]:
    """Yield the share of strings of probability 0."""
    strings = [[truth.vocabulary[word] for word in row] for row in texts.tolist()]
    wrong = int(np.isneginf(truth.exact.string_log_probs(strings)).sum())
    ends = stats.binomtest(wrong, len(strings)).proportion_ci(method="wilson")
    yield {"name": "impossible", "value": wrong / len(strings), "low": float(ends.low), "high": float(ends.high)}
