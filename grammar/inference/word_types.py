"""Exact probability that a word occurs in a sentence, and expected numbers of different words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import expected_counts, length_table, range_table
from truesource.grammar.inference.occurrence import masses_by_length, tables_by_length, total_masses
from truesource.grammar.inference.word_pairs import emission_of, pair_weights
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError


def occurrence_by_length(pcfg: PCFG, high: int, words: Sequence[str] | None = None) -> FloatArray:
    """P(a sentence has m tokens and the word among them) for m = 0..high, (W, high+1); of all words by default.

    One programme over lengths per word, batches of words on all cores.
    """
    table = length_table(pcfg, high)
    ids = _ids(pcfg, words)
    found = np.zeros((len(ids), high + 1))
    found[ids >= 0] = masses_by_length(pcfg, table, ids[ids >= 0])
    return found


def occurrence_probabilities(
    pcfg: PCFG, lengths: LengthRange | None = None, words: Sequence[str] | None = None, *, tolerance: float = 0.0
) -> FloatArray:
    """``q_w = P(word w occurs in a sentence)``, (W,); of all words, in the grammar's order, by default.

    Precise to rounding for rare words too: what is summed are yields with the word, not 1 minus those without.
    Without ``lengths``, of sentences of derivations that end.

    Args:
        pcfg: the grammar.
        lengths: condition on this range.
        words: which words; 0 for one that the grammar does not have.
        tolerance: where the bounds of `occurrence_bounds` are closer than this share of the probability, return
            their middle instead (the relative error is at most half of it): rare words then cost next to nothing.

    Raises:
        InputError: no sentence has a length in the range, or no derivation ends; without ``lengths``, the spectral
            radius is 1, or with a tolerance 1 or more.
    """
    ids = _ids(pcfg, words)
    found = np.zeros(len(ids))
    left = np.flatnonzero(ids >= 0)
    if tolerance > 0.0:
        bounds = occurrence_bounds(pcfg, lengths)
        low, high = bounds.lower[ids[left]], bounds.upper[ids[left]]
        close = high - low <= tolerance * low
        found[left[close]] = (low[close] + high[close]) / 2
        left = left[~close]
    if lengths is None:
        found[left] = total_masses(pcfg, ids[left]) / pcfg.exact.total_mass
    else:
        table, z = range_table(pcfg, lengths)
        by_length = masses_by_length(pcfg, table, ids[left])
        found[left] = by_length[:, lengths.low :].sum(axis=1) / z
    return np.minimum(found, 1.0)


@dataclass(frozen=True, eq=False)
class OccurrenceBounds:
    """What the probability that each word occurs lies between."""

    lower: FloatArray  #: (V,) ``E c - E c (c - 1) / 2``, at least 0
    upper: FloatArray  #: (V,) ``E c``, at most 1


def occurrence_bounds(pcfg: PCFG, lengths: LengthRange | None = None) -> OccurrenceBounds:
    """Bonferroni's bounds on the probability that each word occurs, tight for rare words, all words at once.

    Raises:
        InputError: without ``lengths``, the spectral radius is 1 or more; with them, no sentence has such a length.
    """
    pairs = pair_weights(pcfg, lengths, neighbours=False)
    emission = emission_of(pcfg, pairs.tags).tocsc()
    twice = np.empty(emission.shape[1])
    for at in range(0, len(twice), 4096):
        some = emission[:, at : at + 4096]
        twice[at : at + 4096] = np.asarray(np.ones(len(pairs.tags)) @ some.multiply(pairs.weight @ some))
    once = expected_counts(pcfg, lengths).words
    return OccurrenceBounds(np.clip(once - twice, 0.0, 1.0), np.minimum(once, 1.0))


def expected_types(occurrence: FloatArray, sentences: Sequence[int] | IntArray) -> FloatArray:
    """Expected number of different words in m independent sentences, ``sum_w 1 - (1 - q_w)^m``, for each m, (K,).

    ``occurrence`` (V,) is what `occurrence_probabilities` gives for all words.
    """
    sizes = np.asarray(sentences)
    if (sizes < 0).any():
        raise InputError("a number of sentences cannot be negative")
    never = np.log1p(-np.minimum(occurrence, 1.0 - 2.0**-53))
    return np.array([-np.expm1(m * never).sum() for m in sizes.tolist()])


def types_per_length(pcfg: PCFG, high: int) -> FloatArray:
    """Expected number of different words in a sentence of m tokens, m = 0..high, (high+1,); 0 where none exists."""
    table = length_table(pcfg, high)
    total = np.zeros(high + 1)
    for _, part in tables_by_length(pcfg, table, np.arange(len(pcfg.terminals))):
        total += part.sum(axis=1)
    mass = table.masses[pcfg.start]
    return np.asarray(np.divide(total, mass, out=np.zeros(high + 1), where=mass > 0.0))


def _ids(pcfg: PCFG, words: Sequence[str] | None) -> IntArray:
    return np.arange(len(pcfg.terminals)) if words is None else pcfg.encode(words).astype(np.int64)
