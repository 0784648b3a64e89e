"""Divergences of models of pieces per word, to be compared with models of words.

The KL(P || Q) of the next word, given the words before it, is the expected sum of the KL(P || Q) of its pieces (chain
rule). The pieces of the words of a text therefore estimate it with the same expectation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from truesource.evaluation.divergence.contexts import NAMES, Contexts
from truesource.grammar.pieces.truth import TokenisedTruth
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import NothingToMeasureError

ADDED = ("kl", "entropy_truth")  #: measures of a word that are sums over its pieces
#: why masked pieces have no divergences of words
NOT_ADDED = (
    "divergences of pieces add up to divergences of words only if each piece is given the pieces before it; use a"
    " causal model"
)
WRONG = ("special_mass", "impossible_mass")  #: probabilities that the first wrong piece of a word is such


def in_words(measured: Contexts, truth: TokenisedTruth, sentences: Sequence[Sequence[str]]) -> Contexts:
    """Return one context for each word and sentence end, from the contexts of their pieces.

    Measures that neither add up nor are probabilities of pieces are NaN; there are no divided divergences, and
    ``reliability`` is still of pieces.

    Args:
        measured: contexts of pieces.
        truth: of the pieces.
        sentences: of pieces, as they were measured.

    Raises:
        NothingToMeasureError: the pieces were masked (code ``masked``).
    """
    word = words_of(measured, truth, sentences)
    if len(word) != len(measured.values):
        raise NothingToMeasureError(NOT_ADDED, "masked")
    total = int(word[-1]) + 1
    values = np.full((total, len(NAMES)), np.nan)
    for name in ADDED:
        values[:, NAMES.index(name)] = added(word, measured.column(name))
    begins = np.flatnonzero(np.diff(word, prepend=-1))
    place = np.arange(len(word)) - begins[word]
    masses = np.stack([measured.column(name) for name in WRONG], axis=1)
    wrong, right = np.zeros((total, 2)), np.ones(total)
    for number in range(int(place.max()) + 1):  # the pieces of that number in their words
        here = place == number
        wrong[word[here]] += right[word[here], None] * masses[here]
        right[word[here]] *= np.maximum(1.0 - masses[here].sum(axis=1), 0.0)
    values[:, [NAMES.index(name) for name in WRONG]] = wrong
    sentence = measured.sentence[begins]
    sizes = np.bincount(np.unique(sentence, return_inverse=True)[1])
    return replace(
        measured,
        values=values,
        truth=added(word, measured.truth),
        model=added(word, measured.model),
        sentence=sentence,
        position=np.concatenate([np.arange(size) for size in sizes.tolist()]),
        length=np.repeat(sizes - 1, sizes),
        divided={},
    )


def words_of(measured: Contexts, truth: TokenisedTruth, sentences: Sequence[Sequence[str]]) -> IntArray:
    """Return the number of the word or sentence end of each context of pieces, (T,) from 0 on."""
    numbers = [truth.word_numbers(sentences[i]) for i in np.unique(measured.sentence).tolist()]
    first = np.cumsum([0, *(int(of[-1]) + 1 for of in numbers)])
    return np.concatenate([start + of for start, of in zip(first.tolist(), numbers, strict=False)])


def added(word: IntArray, values: FloatArray) -> FloatArray:
    """Return sums of values of contexts of pieces over the pieces of each word."""
    return np.bincount(word, values).astype(np.float64)
