"""Which items a probe learns from, which it is chosen by, and which it is measured on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grammar.errors import InputError

By = Literal["type", "position"]
Ints = NDArray[np.int64]
SHARES = (0.8, 0.1, 0.1)  #: of the items: train, dev, test
LARGEST = 0.01  #: of all items: more frequent word types are not measured on
ENOUGH = 2.0  #: times as many items as dev and test take must be left to choose from


@dataclass(frozen=True, eq=False)
class Split:
    """Three parts, none empty; items of one group (a word type, or a sentence) are in one part only."""

    by: By
    train: Ints
    dev: Ints
    test: Ints
    group: Ints  #: (T,) group of each item; what is resampled, and what a code transmits at once


def split(by: By, keys: Sequence[str], truth: Ints, sentence: Ints, seed: int) -> Split:
    """Divide items in 80/10/10.

    ``type``: no word type (of a span: pair of end words) is in two parts. Learnt from are the most frequent type of
    each label, so that no label is asked for that was never shown, and types with more than `LARGEST` of all items (or
    as many as leave enough for the rest), so that no few words decide the result. The other types come in random order,
    and each goes to the part that lacks the largest share of its items. ``position``: the items in order, cut at the
    ends of sentences.

    Args:
        by: what the parts must not share.
        keys: (T,) word type of each item.
        truth: (T,) its right label.
        sentence: (T,) its sentence, ascending.
        seed: of the order of types.

    Raises:
        InputError: there are too few word types, or sentences, to divide.
    """
    if by == "position":
        group = np.unique(sentence, return_inverse=True)[1].astype(np.int64)
        if group[-1] + 1 < len(SHARES):
            raise InputError(f"{group[-1] + 1} sentences are too few to divide into train, dev and test; give more")
        part = _cut(np.bincount(group))
    else:
        group = _types(keys)
        part = _dealt(group, truth, np.random.default_rng([seed, 1]))
    parts = [np.flatnonzero(part[group] == i) for i in range(len(SHARES))]
    if not all(map(len, parts)):
        raise InputError(
            f"{group.max() + 1} word types are too few to divide so that every label is in train, and dev and test are"
            " not empty; give more sentences, or split by position"
        )
    train, dev, test = parts
    return Split(by, train, dev, test, group)


def _types(keys: Sequence[str]) -> Ints:
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)


def _dealt(group: Ints, truth: Ints, rng: np.random.Generator) -> Ints:
    """Part of each type."""
    sizes = np.bincount(group)
    counts = np.zeros((len(sizes), int(truth.max()) + 1), dtype=np.int64)
    np.add.at(counts, (group, truth), 1)
    free = np.ones(len(sizes), dtype=bool)
    free[counts.argmax(axis=0)] = False  # of a label that never occurs, the first type
    rising = np.sort(sizes[free])
    enough = np.searchsorted(np.cumsum(rising), ENOUGH * sum(SHARES[1:]) * len(group))
    if enough < len(rising):
        free &= sizes <= max(LARGEST * len(group), rising[enough])
    wanted = np.array(SHARES) * len(group)
    held = np.array([sizes[~free].sum(), 0.0, 0.0])
    part = np.zeros(len(sizes), dtype=np.int64)
    for i in rng.permutation(len(sizes)).tolist():
        if free[i]:
            part[i] = int(np.argmax((wanted - held) / wanted))
            held[part[i]] += sizes[i]
    return part


def _cut(sizes: Ints) -> Ints:
    """Part of each group in order; every part has one at least."""
    middle = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    part: Ints = np.searchsorted(np.cumsum(SHARES)[:-1], middle, side="right").astype(np.int64)
    part[0] = 0
    part[-1] = len(SHARES) - 1
    if not (part == 1).any():
        part[-2] = 1
    return part
