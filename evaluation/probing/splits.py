"""Splits of probing items into train, dev and test, by word type or by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.probing import By
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import NothingToMeasureError

SHARES = (0.8, 0.1, 0.1)  #: of the items: train, dev, test
LARGEST = 0.01  #: of all items: more frequent word types are not measured on
ENOUGH = 2.0  #: times as many words of items as dev and test take must be left to choose from


@dataclass(frozen=True, eq=False)
class ProbingSplit:
    """Three parts, none empty."""

    by: By
    train: IntArray
    dev: IntArray
    test: IntArray
    group: IntArray  #: (T,) group of each item, in one part only; what is resampled, and what a code transmits at once


def split(
    by: By, keys: Sequence[str], truth: IntArray, sentence: IntArray, seed: int, *, ends: Sequence[str] | None = None
) -> ProbingSplit:
    """Divide items in 80/10/10.

    ``type``: word types are divided. A test item has a test type (of a span: at one end at least), a dev item a dev
    type and no test type, a train item train types only. So no word type is in two parts; of spans, no train span has
    a dev or test type at an end. Learnt from are the most frequent type of each label (of spans: pair of types), so
    that no label is asked for that was never shown, and types with more than `LARGEST` of all items (or as many as
    leave enough for the rest), so that no few words decide the result. The other types come in random order: the first
    ones go to test until it has its share of items, the next to dev. A group is a word type; of spans, the one that
    puts the span in its part, the first of two. ``position``: the items in order, cut at the ends of sentences, which
    are the groups.

    Args:
        by: what the parts must not share.
        keys: (T,) word type of each item; of a span, of its first word.
        truth: (T,) its right label.
        sentence: (T,) its sentence, ascending.
        seed: of the order of types.
        ends: (T,) of spans, type of the last word.

    Raises:
        InputError: there are too few word types, or sentences, to divide.
    """
    if by == "position":
        group = np.unique(sentence, return_inverse=True)[1].astype(np.int64)
        if group[-1] + 1 < len(SHARES):
            raise NothingToMeasureError(
                f"{group[-1] + 1} sentences are too few to divide into train, dev and test; give more",
                "too-few-sentences",
            )
        of_item = _cut(np.bincount(group))[group]
    else:
        both = numbered([*keys, *(keys if ends is None else ends)])
        first, last = np.split(both, 2)
        part = _dealt(first, last, truth, np.random.default_rng([seed, 1]))
        of_item = np.maximum(part[first], part[last])
        group = np.where(part[first] == of_item, first, last)
        if len(np.unique(of_item)) < len(SHARES):
            raise NothingToMeasureError(
                f"{len(part)} word types are too few to divide so that every label is in train, and dev and test are"
                " not empty; give more sentences, or split by position",
                "too-few-words",
            )
    train, dev, test = (np.flatnonzero(of_item == i) for i in range(len(SHARES)))
    return ProbingSplit(by, train, dev, test, group)


def numbered(keys: Sequence[str]) -> IntArray:
    """Number of each key, (T,), in the order in which they come first."""
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)


def _dealt(first: IntArray, last: IntArray, truth: IntArray, rng: np.random.Generator) -> IntArray:
    """Part of each type: 0 train, 1 dev, 2 test."""
    other = last != first
    item = np.concatenate([np.arange(len(first)), np.flatnonzero(other)])
    types = np.concatenate([first, last[other]])
    sizes = np.bincount(types)  # items that have it at an end
    items = np.split(item[np.argsort(types, kind="stable")], np.cumsum(sizes)[:-1])
    free = np.ones(len(sizes), dtype=bool)
    free[_showing(first, last, truth, sizes)] = False
    rising = np.sort(sizes[free])
    enough = np.searchsorted(np.cumsum(rising), ENOUGH * sum(SHARES[1:]) * len(types))
    if enough < len(rising):
        free &= sizes <= max(LARGEST * len(first), rising[enough])
    order = [i for i in rng.permutation(len(sizes)).tolist() if free[i]]
    part = np.zeros(len(sizes), dtype=np.int64)
    taken = np.zeros(len(first), dtype=bool)
    for which in (2, 1):
        wanted, held = SHARES[which] * len(first), 0
        for i in order:
            new = 0 if part[i] else int((~taken[items[i]]).sum())
            if new and (held == 0 or abs(held + new - wanted) < abs(held - wanted)):
                part[i] = which
                taken[items[i]] = True
                held += new
            if held >= wanted:
                break
    return part


def _showing(first: IntArray, last: IntArray, truth: IntArray, sizes: IntArray) -> IntArray:
    """Types of the most frequent pair of ends of each label; of several, the pair of the more frequent types."""
    pairs, label = first * len(sizes) + last, truth.astype(np.int64)
    result, count = np.unique(np.stack([label, pairs]), axis=1, return_counts=True)
    ends = np.stack(np.divmod(result[1], len(sizes)))
    order = np.lexsort((-sizes[ends].min(axis=0), -count, result[0]))
    heads = np.unique(result[0][order], return_index=True)[1]
    return ends[:, order[heads]].ravel()


def _cut(sizes: IntArray) -> IntArray:
    """Part of each group in order; every part has one at least."""
    middle = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    part: IntArray = np.searchsorted(np.cumsum(SHARES)[:-1], middle, side="right").astype(np.int64)
    part[0] = 0
    part[-1] = len(SHARES) - 1
    if not (part == 1).any():
        part[-2] = 1
    return part
