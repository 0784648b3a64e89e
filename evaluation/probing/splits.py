"""Splits of probing items into train, dev and test, by word type or by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.probing import By
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import NothingToMeasureError

SHARES = (0.8, 0.1, 0.1)  #: shares of the items: train, dev, test
LARGEST = 0.01  #: maximum share of a word type in dev and test
ENOUGH = 2.0  #: how many times the items of dev and test must be left to choose from


@dataclass(frozen=True, eq=False)
class ProbingSplit:
    """The three parts of a split, none empty."""

    by: By
    train: IntArray
    dev: IntArray
    test: IntArray
    group: IntArray  #: (T,) group of each item, within one part; the unit of resampling and of transmission


def split(
    by: By, keys: Sequence[str], truth: IntArray, sentence: IntArray, seed: int, *, ends: Sequence[str] | None = None
) -> ProbingSplit:
    """Divide items 80/10/10.

    ``type``: word types are divided. A test item has a test type (a span: at one end or both), a dev item a dev
    type and no test type, a train item train types only. So no word type is in two parts; for spans, no train span has
    a dev or test type at an end. The train part has the most frequent type of each label (for spans: pair of types), so
    that every tested label is in train, and types with more than `LARGEST` of all items (or as many as
    leave enough for the rest), so that few words do not dominate the result. The other types come in random order: the
    first ones go to test until it has its share of items, the next to dev. A group is a word type; of spans, the one
    that puts the span in its part, the first of two. ``position``: the items in order, divided at sentence ends, which
    are the groups.

    Args:
        by: unit that parts must not share.
        keys: word type of each item, or of the first word of a span, (T,).
        truth: right label of each item, (T,).
        sentence: sentence of each item, ascending, (T,).
        seed: seed of the order of types.
        ends: for spans, type of the last word, (T,).

    Raises:
        InputError: there are too few word types, or sentences, to divide.
    """
    if by == "position":
        group = np.unique(sentence, return_inverse=True)[1].astype(np.int64)
        if group[-1] + 1 < len(SHARES):
            raise NothingToMeasureError(
                f"{group[-1] + 1} sentences are too few to divide into train, dev and test; add more",
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
                " not empty; add more sentences, or split by position",
                "too-few-words",
            )
    train, dev, test = (np.flatnonzero(of_item == i) for i in range(len(SHARES)))
    return ProbingSplit(by, train, dev, test, group)


def numbered(keys: Sequence[str]) -> IntArray:
    """Number keys, (T,), in the order of their first occurrence."""
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)


def _dealt(first: IntArray, last: IntArray, truth: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the part of each type: 0 train, 1 dev, 2 test."""
    other = last != first
    item = np.concatenate([np.arange(len(first)), np.flatnonzero(other)])
    types = np.concatenate([first, last[other]])
    sizes = np.bincount(types)  # number of items with the type at an end
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
        size, current = SHARES[which] * len(first), 0
        for i in order:
            new = 0 if part[i] else int((~taken[items[i]]).sum())
            if new and (current == 0 or abs(current + new - size) < abs(current - size)):
                part[i] = which
                taken[items[i]] = True
                current += new
            if current >= size:
                break
    return part


def _showing(first: IntArray, last: IntArray, truth: IntArray, sizes: IntArray) -> IntArray:
    """Return the types of the most frequent pair of ends of each label; of several, of more frequent types."""
    pairs, label = first * len(sizes) + last, truth.astype(np.int64)
    result, count = np.unique(np.stack([label, pairs]), axis=1, return_counts=True)
    ends = np.stack(np.divmod(result[1], len(sizes)))
    order = np.lexsort((-sizes[ends].min(axis=0), -count, result[0]))
    heads = np.unique(result[0][order], return_index=True)[1]
    return ends[:, order[heads]].ravel()


def _cut(sizes: IntArray) -> IntArray:
    """Return the part of each group in order; every part has at least one group."""
    middle = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    part: IntArray = np.searchsorted(np.cumsum(SHARES)[:-1], middle, side="right").astype(np.int64)
    part[0] = 0
    part[-1] = len(SHARES) - 1
    if not (part == 1).any():
        part[-2] = 1
    return part
