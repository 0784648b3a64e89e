"""The coarsest partition of the states of an automaton that is compatible with its transitions."""

from __future__ import annotations

import numpy as np

from truesource.grammar.support.arrays import IntArray


def coarsest_partition(step: IntArray, label: IntArray) -> IntArray:
    """Refine classes of states until states of one class lead to states of one class, on every column.

    As in the algorithm of Hopcroft (1971), only states that lead to a state of a new class are compared again, so that
    a chain of N states does not take N comparisons of all states.

    Args:
        step: (N, k) the next state on each column.
        label: (N,) the initial class of each state.

    Returns:
        The class of each state, (N,), from 0; the order of classes has no meaning.
    """
    label = np.unique(label, return_inverse=True)[1].astype(np.int64)
    n = len(label)
    classes = int(label.max(initial=-1)) + 1
    again = np.arange(n)  # states whose next states may have new classes
    while len(again):
        group = label[again]
        for column in step[again].T:
            group = np.unique(group * n + label[column], return_inverse=True)[1]
        size = np.bincount(group)
        old = np.empty(len(size), dtype=np.int64)
        old[group] = label[again]
        whole = np.bincount(label, minlength=classes) == np.bincount(label[again], minlength=classes)
        by_size = np.lexsort((-size, old))
        largest = by_size[np.unique(old[by_size], return_index=True)[1]]  # group of each class
        stays = np.zeros(len(size), dtype=bool)  # groups that keep the number of their class, at most one of each
        stays[largest[whole[old[largest]]]] = True
        new = np.where(stays, old, classes - 1 + np.cumsum(~stays))
        classes += int((~stays).sum())
        changed = np.zeros(n, dtype=bool)
        changed[again] = new[group] != label[again]
        label[again] = new[group]
        again = np.flatnonzero(changed[step].any(axis=1))
    return np.unique(label, return_inverse=True)[1].astype(np.int64)
