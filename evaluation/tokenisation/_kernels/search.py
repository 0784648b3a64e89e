"""Numba kernels: paths of a lattice in the order of a key, best first.

Arcs are sorted by end, those that end at i are ``first[i]`` to ``first[i + 1] - 1``, and start at ``source``. A set of
paths is an end of a path, from a position to the right; its key is the largest among its paths. A set is split by
walking to 0 along the path that has the key: at every position passed, each other arc begins a new set. Sets
wait in a heap if their key is among the ``k`` largest so far: different keys belong to different paths, so
no other set contains one of the first ``k`` paths.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from truesource.generator._kernels import uniform_open
from truesource.grammar._kernels.kernel import copy, kernel, room

Array = Any  # numpy arrays; element types are in the docstrings

_ROUNDING = 1e-14  #: rounding error of a difference of running sums, relative to the whole


@kernel
def _up(keys: Array, slots: Array, size: int, key: float, slot: int) -> None:
    """Put an item into a heap of ``size`` items that has its largest key first, of equal ones the smallest slot."""
    i = size
    while i > 0:
        above = (i - 1) >> 1
        if keys[above] > key or (keys[above] == key and slots[above] < slot):
            break
        keys[i] = keys[above]
        slots[i] = slots[above]
        i = above
    keys[i] = key
    slots[i] = slot


@kernel
def _down(keys: Array, slots: Array, size: int, key: float, slot: int) -> None:
    """Put an item in place of the first of a heap of ``size`` items."""
    i = 0
    while 2 * i + 1 < size:
        below = 2 * i + 1
        if below + 1 < size:
            tied = keys[below + 1] == keys[below] and slots[below + 1] < slots[below]
            if keys[below + 1] > keys[below] or tied:
                below += 1
        if keys[below] < key or (keys[below] == key and slots[below] > slot):
            break
        keys[i] = keys[below]
        slots[i] = slots[below]
        i = below
    keys[i] = key
    slots[i] = slot


@kernel
def _admit(kept: Array, numbers: Array, n_kept: int, k: int, key: float) -> tuple[int, float]:
    """Add a key to the heap of the ``k`` largest, as negatives; return its size, and the lower limit of keys."""
    if n_kept < k:
        _up(kept, numbers, n_kept, -key, 0)
        n_kept += 1
    else:
        _down(kept, numbers, k, -key, 0)
    return n_kept, -kept[0] if n_kept == k else -np.inf


@kernel
def _prune(keys: Array, slots: Array, size: int, free: Array, limit: float) -> tuple[int, int]:
    """Drop the items of a heap below ``limit``; return the numbers of remaining items and of ``free`` slots."""
    left, n_free = 0, 0
    for i in range(size):
        key, slot = keys[i], slots[i]
        if key >= limit:
            _up(keys, slots, left, key, slot)
            left += 1
        else:
            free[n_free] = slot % len(free)
            n_free += 1
    return left, n_free


@kernel
def _write(store: Array, bounds: Array, s: int, row: Array, at: int, arc: int, other: int, shared: int) -> None:
    """Write path ``s``: arcs of ``row`` from ``at``, then ``arc``, then the last ``shared`` arcs of ``other``."""
    used, own = bounds[s], len(row) - at
    copy(store, used, row, at, len(row))
    if arc >= 0:
        store[used + own] = arc
        end = bounds[other + 1]
        copy(store, used + own + 1, store, end - shared, end)


@kernel
def n_best(first: Array, source: Array, score: Array, k: int) -> tuple[Array, Array, Array]:
    """Find the ``k`` paths with the largest sums, of at least ``k``: arcs (T,) int32, bounds (k+1,), sums (k,).

    The key of a set is minus its losses: by how much each arc is below the best arc at its end. The first
    path is the result of `sums.best`. Of sets with equal keys, earlier ones come first (a slot in the heap is
    its number plus ``capacity`` times the number of earlier sets), so that the order does not depend on ``k``.
    """
    n = len(first) - 2
    best = np.empty(n + 1)
    length = np.zeros(n + 1, dtype=np.int64)
    back = np.empty(n + 1, dtype=np.int64)
    loss = np.empty(len(source))
    least = np.full(n + 1, np.inf)  # the smallest loss at positions on the best path to i
    best[0] = 0.0
    for i in range(1, n + 1):
        low, high = first[i], first[i + 1]
        if low == high:
            continue
        chosen = low
        for a in range(low, high):
            loss[a] = best[source[a]] + score[a]
            fewer = length[source[a]] < length[source[chosen]]
            if loss[a] > loss[chosen] or (loss[a] == loss[chosen] and fewer):
                chosen = a
        best[i] = loss[chosen]
        length[i] = length[source[chosen]] + 1
        back[i] = chosen
        least[i] = least[source[chosen]]
        for a in range(low, high):
            loss[a] = best[i] - loss[a]
            if a != chosen:
                least[i] = min(least[i], loss[a])
    capacity = 4 * k + 64
    keys, slots, free = np.empty(capacity), np.empty(capacity, dtype=np.int64), np.arange(capacity)
    kept, numbers = np.empty(k), np.empty(k, dtype=np.int64)
    places, arcs, others, shares = (
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity, dtype=np.int64),
    )
    row = np.empty(n, dtype=np.int32)
    store = np.empty(n, dtype=np.int32)
    bounds = np.zeros(k + 1, dtype=np.int64)
    sums = np.empty(k)
    size, n_free, found = 0, capacity, 0
    n_kept, limit = _admit(kept, numbers, 0, k, 0.0)
    key, i, arc, other, shared = 0.0, n, -1, -1, 0
    for s in range(k):
        if s > 0:
            key, slot = keys[0], slots[0] % capacity
            size -= 1
            _down(keys, slots, size, keys[size], slots[size])
            i, arc, other, shared = places[slot], arcs[slot], others[slot], shares[slot]
            free[n_free] = slot
            n_free += 1
        at = n
        to_right = shared + (1 if arc >= 0 else 0)
        while i > 0 and key - least[i] > limit:
            chosen = back[i]
            for a in range(first[i], first[i + 1]):
                if a == chosen or not key - loss[a] > limit:
                    continue
                if n_free == 0:
                    size, n_free = _prune(keys, slots, size, free, limit)
                n_free -= 1
                slot = free[n_free]
                places[slot], arcs[slot], others[slot], shares[slot] = source[a], a, s, n - at + to_right
                found += 1
                _up(keys, slots, size, key - loss[a], found * capacity + slot)
                size += 1
                n_kept, limit = _admit(kept, numbers, n_kept, k, key - loss[a])
            at -= 1
            row[at] = chosen
            i = source[chosen]
        while i > 0:
            at -= 1
            row[at] = back[i]
            i = source[back[i]]
        bounds[s + 1] = bounds[s] + n - at + to_right
        store = room(store, bounds[s + 1])
        _write(store, bounds, s, row, at, arc, other, shared)
        sums[s] = best[n] + key
    return store[: bounds[k]], bounds, sums


@kernel
def top_down(
    first: Array,
    source: Array,
    score: Array,
    log_forward: Array,
    running: Array,
    guarded: Array,
    avoided: Array,
    log_rest: Array,
    k: int,
    state: Array,
) -> tuple[Array, Array, Array, float]:
    """Sample the first ``k`` paths, if each path arrives at an exponential time whose rate is its probability.

    Returns them as in `n_best`, in order of arrival, with sums of scores; and - log of the time of the next.
    There must be more than ``k`` paths. The key of a set is - log of the time t of its first path. The arc of that path
    is sampled as for any path; the first path through another arc, of a set with probability p, arrives Exp(1) / p
    after t, since such times have no memory.
    """
    n = len(first) - 2
    most = k + 1
    log_z = log_forward[n]
    capacity = 4 * most + 64
    keys, slots, free = np.empty(capacity), np.empty(capacity, dtype=np.int64), np.arange(capacity)
    kept, numbers = np.empty(most), np.empty(most, dtype=np.int64)
    places, arcs, others, shares = (
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity, dtype=np.int64),
    )
    totals, guards = np.empty(capacity), np.empty(capacity, dtype=np.bool_)
    row = np.empty(n, dtype=np.int32)
    store = np.empty(n, dtype=np.int32)
    bounds = np.zeros(k + 1, dtype=np.int64)
    sums = np.empty(k)
    size, n_free = 0, capacity
    on = len(avoided) > 0
    key = (log_rest[n] if on else 0.0) - math.log(-math.log(uniform_open(state)))
    n_kept, limit = _admit(kept, numbers, 0, most, key)
    i, arc, other, shared, total = n, -1, -1, 0, 0.0
    for s in range(k):
        if s > 0:
            key, slot = keys[0], slots[0]
            size -= 1
            _down(keys, slots, size, keys[size], slots[size])
            i, arc, other, shared = places[slot], arcs[slot], others[slot], shares[slot]
            total, on = totals[slot], guards[slot]
            free[n_free] = slot
            n_free += 1
        at = n
        to_right = shared + (1 if arc >= 0 else 0)
        # probability of the set over the latest time that counts, or more, since ``limit`` will rise
        reach = math.exp(total + log_forward[i] + (log_rest[i] if on else 0.0) - log_z - limit)
        while i > 0:
            low, high = first[i], first[i + 1]
            chosen = low
            if high - low > 1:
                cumulative = guarded if on else running
                whole = cumulative[high - 1]
                x = uniform_open(state) * whole
                while chosen < high - 1 and cumulative[chosen] <= x:
                    chosen += 1
                more = _ROUNDING * whole
                before, own = 0.0, 0.0
                for a in range(low, high):
                    after = cumulative[a]
                    weight = after - before + more
                    before = after
                    if a == chosen:
                        own = weight
                        continue
                    u = uniform_open(state)
                    if u * whole >= reach * weight:  # Exp(1) = -log(1 - u) > u comes too late
                        continue
                    stays = on and a == avoided[i]
                    log_p = total + score[a] + log_forward[source[a]] - log_z
                    if stays:
                        log_p += log_rest[source[a]]
                    later = math.log(-math.log1p(-u)) - log_p
                    top = max(-key, later)
                    new = -(top + math.log1p(math.exp(-abs(key + later))))
                    if not new > limit:
                        continue
                    if n_free == 0:
                        size, n_free = _prune(keys, slots, size, free, limit)
                    n_free -= 1
                    slot = free[n_free]
                    places[slot], arcs[slot], others[slot], shares[slot] = source[a], a, s, n - at + to_right
                    totals[slot], guards[slot] = total + score[a], stays
                    _up(keys, slots, size, new, slot)
                    size += 1
                    n_kept, limit = _admit(kept, numbers, n_kept, most, new)
                reach *= own / whole
            on = on and chosen == avoided[i]
            total += score[chosen]
            at -= 1
            row[at] = chosen
            i = source[chosen]
        bounds[s + 1] = bounds[s] + n - at + to_right
        store = room(store, bounds[s + 1])
        _write(store, bounds, s, row, at, arc, other, shared)
        sums[s] = total
    return store[: bounds[k]], bounds, sums, keys[0]
