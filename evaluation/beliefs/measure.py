"""Share of a belief that a linear map reads from vectors, next to baselines without a network, and their picture.

A belief is a vector of numbers that a perfect predictor has to carry (`truesource.grammar.inference.beliefs`). R2 is
the share of its variance, all numbers together, that the best affine map explains in sentences that the map was not
fitted to (Shai et al. 2024). It is compared with the mean belief after the same last words, and with the map of the
model's own distribution of the next word, which it must know in any case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.measures.bootstrap import Interval, ends, resampled_ratio
from truesource.grammar.inference.beliefs import Beliefs
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.settings import DEFAULT_SEED

SHARES = (0.7, 0.8)  #: of the sentences, ends of the parts that maps are fitted to, and that choose the decay
DECAYS = (1e-8, 1e-6, 1e-4, 1e-2, 1.0)  #: of ridge regression, relative to the mean variance of the inputs
Vectors = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class BeliefParts:
    """Words of the sentences to fit to, to choose with, and to measure on; no sentence is in two parts."""

    train: IntArray
    dev: IntArray
    test: IntArray

    @classmethod
    def of(cls, sentence: IntArray) -> BeliefParts:
        """Divide words by their sentences (T,), ascending, in order.

        Raises:
            NothingToMeasureError: there are fewer than ten sentences.
        """
        different, number = np.unique(sentence, return_inverse=True)
        if len(different) < 10:
            raise NothingToMeasureError(
                f"{len(different)} sentences are too few to fit a map and to measure it on others; give ten or more",
                "too-few-sentences",
            )
        first, second = (round(share * len(different)) for share in SHARES)
        return cls(
            *(
                np.flatnonzero((number >= low) & (number < high))
                for low, high in zip((0, first, second), (first, second, len(different)), strict=True)
            )
        )


@dataclass(frozen=True, eq=False)
class AffineMap:
    """Reads one array from another, row by row: ``x @ weight + bias``."""

    weight: FloatArray  #: (D, d)
    bias: FloatArray  #: (d,)
    decay: float  #: of the ridge regression that it is from

    def __call__(self, x: Vectors) -> FloatArray:
        """Read (N, d) from rows (N, D)."""
        return np.asarray(x @ self.weight + self.bias, dtype=np.float64)


def fit(x: Vectors, targets: Vectors, parts: BeliefParts) -> AffineMap:
    """Fit the affine map of least squared error to the train part, with a decay from the dev part (ridge regression).

    A map from vectors to beliefs reads; a map from beliefs to vectors gives their mean change with a belief.

    Args:
        x: (T, D) vectors.
        targets: (T, d), such as beliefs.
        parts: of the T words.
    """
    inputs, outputs = x[parts.train].astype(np.float64), targets[parts.train].astype(np.float64)
    centre, mean = inputs.mean(axis=0), outputs.mean(axis=0)
    centred = inputs - centre
    values, turned = np.linalg.eigh(centred.T @ centred)
    product = turned.T @ (centred.T @ (outputs - mean))
    scale = max(float(values.sum()) / len(values), np.finfo(np.float64).tiny)
    best: tuple[float, AffineMap] | None = None
    for decay in DECAYS:
        weight = turned @ (product / (np.maximum(values, 0.0) + decay * scale)[:, None])
        candidate = AffineMap(weight, mean - centre @ weight, decay)
        loss = float(np.square(candidate(x[parts.dev]) - targets[parts.dev]).sum())
        if best is None or loss < best[0]:
            best = loss, candidate
    assert best is not None
    return best[1]


def r2(
    read: FloatArray, beliefs: FloatArray, parts: BeliefParts, sentence: IntArray, seed: int = DEFAULT_SEED
) -> Interval:
    """Return the share of the variance of beliefs that is read, on the test part; below 0: worse than their mean.

    Args:
        read: (T, d) read beliefs of each word; only the test part counts.
        beliefs: (T, d).
        parts: of the words.
        sentence: (T,) of each word; sentences are resampled.
        seed: of the resampling.
    """
    test = parts.test
    _, row = np.unique(sentence[test], return_inverse=True)
    away, centre = read[test] - beliefs[test], beliefs[parts.train].mean(axis=0)
    wrong = np.bincount(row, np.square(away).sum(axis=1)).astype(np.float64)
    spread = np.bincount(row, np.square(beliefs[test] - centre).sum(axis=1)).astype(np.float64)
    if not spread.sum() > 0.0:
        raise NothingToMeasureError("this belief is the same after all words, so there is nothing to read", "one-label")
    low, high = resampled_ratio(wrong, spread, seed=seed)
    return Interval(1.0 - float(wrong.sum() / spread.sum()), *ends(1.0 - high, 1.0 - low))


def readable(vectors: Vectors, beliefs: Beliefs, seed: int = DEFAULT_SEED) -> Interval:
    """Return R2 of the best affine map from vectors to a belief: fitted to most sentences, measured on the others.

    Args:
        vectors: (T, D), such as vectors of a layer of a network.
        beliefs: of the same T words.
        seed: of the interval.

    Raises:
        InputError: there is not one vector a word.
        NothingToMeasureError: there are fewer than ten sentences, or the belief never changes.
    """
    if vectors.ndim != 2 or len(vectors) != len(beliefs):
        raise InputError(
            f"{len(beliefs)} words need as many rows of numbers, but the array has the shape {vectors.shape}"
        )
    parts = BeliefParts.of(beliefs.sentence)
    read = fit(vectors, beliefs.values, parts)(vectors)
    return r2(read, beliefs.values, parts, beliefs.sentence, seed)


def mean_after(keys: Sequence[Sequence[Hashable]], beliefs: FloatArray, parts: BeliefParts) -> FloatArray:
    """Return for each word the mean belief of the train part after the same key; (T, d).

    Keys that the train part lacks have the mean of their next shorter key, or else the mean of all.

    Args:
        keys: for each length, the longest first, a key of each word, such as its last two words.
        beliefs: (T, d).
        parts: of the words.
    """
    result = np.tile(beliefs[parts.train].mean(axis=0), (len(beliefs), 1))
    for of_length in reversed(keys):
        rows: dict[Hashable, list[int]] = defaultdict(list)
        for i in parts.train.tolist():
            rows[of_length[i]].append(i)
        means = {key: beliefs[members].mean(axis=0) for key, members in rows.items()}
        for i, key in enumerate(of_length):
            if key in means:
                result[i] = means[key]
    return result


def last_words(beliefs: Beliefs, number: int) -> list[tuple[int, ...]]:
    """Return the last words up to each, ``number`` of them or as many as there are, as numbers."""
    words, position = beliefs.token.tolist(), beliefs.position.tolist()
    return [tuple(words[i - min(number - 1, at) : i + 1]) for i, at in enumerate(position)]


def neighbours(beliefs: Beliefs, number: int) -> list[tuple[int, ...]]:
    """Return the ``number`` words on either side of each word, as numbers; -1 beyond the ends of a sentence."""
    words, sentence = beliefs.token, beliefs.sentence
    table = np.full((len(words), 2 * number), -1, dtype=np.int64)
    for k in range(1, number + 1):
        same = sentence[k:] == sentence[:-k]
        table[k:, number - k] = np.where(same, words[:-k], -1)
        table[:-k, number + k - 1] = np.where(same, words[k:], -1)
    return [tuple(row) for row in table.tolist()]


@dataclass(frozen=True, eq=False)
class Picture:
    """Exact and read beliefs of some words, in the plane in which beliefs vary most."""

    truth: FloatArray  #: (N, 2)
    read: FloatArray  #: (N, 2)
    colour: FloatArray  #: (N, 3) from 0 to 1: equal beliefs have equal colours
    share: float  #: of the variance of beliefs in the plane


def picture(beliefs: FloatArray, read: FloatArray, most: int = 600) -> Picture:
    """Project exact and read beliefs on the first two principal components of the exact ones.

    Colours are the beliefs themselves if they are three numbers, else the first three components.

    Args:
        beliefs: (N, d).
        read: (N, d).
        most: rows of the picture; the first ones.
    """
    mean = beliefs.mean(axis=0)
    _, spread, axes = np.linalg.svd(beliefs - mean, full_matrices=False)
    axes = axes * np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]
    components = beliefs[:most] if beliefs.shape[1] == 3 else (beliefs[:most] - mean) @ axes[:3].T
    low, high = components.min(axis=0), components.max(axis=0)
    colour = np.full((len(components), 3), 0.4)
    colour[:, : components.shape[1]] = (components - low) / np.where(high > low, high - low, 1.0)
    plane = np.zeros((2, beliefs.shape[1]))
    plane[: len(axes)] = axes[:2]
    share = float(np.square(spread[:2]).sum() / np.square(spread).sum())
    return Picture((beliefs[:most] - mean) @ plane.T, (read[:most] - mean) @ plane.T, colour, share)


def divergences(log_truth: FloatArray, log_model: FloatArray) -> FloatArray:
    """Return KL(P || Q) of rows of log probabilities, (N,) nats.

    Args:
        log_truth: (N, V), -inf if impossible.
        log_model: (N, V), finite where the truth is.
    """
    truth = np.exp(log_truth)
    with np.errstate(invalid="ignore"):
        terms = np.where(truth > 0.0, truth * (log_truth - log_model), 0.0)
    return np.asarray(terms.sum(axis=1))
