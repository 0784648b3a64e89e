"""Numba kernels: random and best paths through a lattice.

Arcs are sorted by end, those that end at i are ``first[i]`` to ``first[i + 1] - 1``, and start at ``source``. ``score``
has the scores of arcs times the inverse temperature, nats. A path is written left to right, as arc numbers. Random
paths are sampled from right to left: the arc that ends at a position is sampled by ``running``, the sums of the weights
of the paths from 0 through each arc, restarted at each position (in any unit).

One path may be avoided. While a sample has followed it so far, the sums are in ``guarded``, which excludes the
rest of that path; ``avoided`` (n+1,) has its arc at each position, -1 if it does not pass.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from truesource.generator._kernels import mixed_with, seeded, uniform_open
from truesource.grammar._kernels.kernel import copy, kernel, room

Array = Any  # numpy arrays; element types are in the docstrings

# -- sums --------------------------------------------------------------------------------------------------------------


@kernel
def forward(first: Array, source: Array, score: Array) -> tuple[Array, Array]:
    """Compute the log of the sum of exp(score) over the paths from 0 to i (n+1,), nats, or -inf; and ``running`` (A,).

    Exponentials are taken of differences to the largest term only, as in `_kernels.lattice`.
    """
    n = len(first) - 2
    log = np.full(n + 1, -np.inf)
    running = np.empty(len(source))
    log[0] = 0.0
    for i in range(1, n + 1):
        low, high = first[i], first[i + 1]
        if high - low == 1:
            log[i] = log[source[low]] + score[low]
            running[low] = 1.0
        elif high > low:
            best, top = low, -np.inf
            for a in range(low, high):
                term = log[source[a]] + score[a]
                if term > top:
                    best, top = a, term
            rest, total = 0.0, 0.0
            for a in range(low, high):
                if a == best:
                    total += 1.0
                else:
                    term = math.exp(log[source[a]] + score[a] - top)
                    rest += term
                    total += term
                running[a] = total
            log[i] = top + math.log1p(rest)
    return log, running


@kernel
def count_up_to(first: Array, source: Array, limit: int) -> Any:
    """Count paths up to ``limit``."""
    n = len(first) - 2
    count = np.zeros(n + 1, dtype=np.int64)
    count[0] = 1
    for i in range(1, n + 1):
        total = 0
        for a in range(first[i], first[i + 1]):
            total += count[source[a]]
        if total >= limit:  # each of them continues to the end
            return limit
        count[i] = total
    return count[n]


@kernel
def guard(first: Array, source: Array, score: Array, log_forward: Array, path: Array) -> tuple[Array, Array, Array]:
    """Build the arrays with which kernels avoid one path.

    Returns ``avoided`` (n+1,); ``guarded`` (A,); and ``log_rest`` (n+1,), log probability that not all of the rest
    follows the path, at its positions. It is a sum over paths that leave it, never 1 minus the rest of the path.
    """
    n = len(first) - 2
    avoided = np.full(n + 1, -1, dtype=np.int64)
    guarded = np.zeros(len(source))
    term = np.empty(len(source))
    log_rest = np.full(n + 1, -np.inf)
    i = 0
    for s in range(len(path)):
        rest = log_rest[i]
        best = path[s]
        i += 1
        while not first[i] <= best < first[i + 1]:
            i += 1
        avoided[i] = best
        top = -np.inf
        for a in range(first[i], first[i + 1]):
            term[a] = log_forward[source[a]] + score[a] - log_forward[i]
            if a == best:
                term[a] += rest
            top = max(top, term[a])
        if top == -np.inf:
            continue
        total = 0.0
        for a in range(first[i], first[i + 1]):
            total += math.exp(term[a] - top)
            guarded[a] = total
        log_rest[i] = top + math.log(total)
    return avoided, guarded, log_rest


# -- random paths ------------------------------------------------------------------------------------------------------


@kernel
def _draw(
    first: Array,
    source: Array,
    score: Array,
    running: Array,
    guarded: Array,
    avoided: Array,
    state: Array,
    row: Array,
) -> tuple[int, float]:
    """Sample a path into the end of ``row`` (n,); return its start in the row, and its score.

    Nothing is avoided if ``avoided`` is empty.
    """
    i = at = len(row)
    total = 0.0
    on = len(avoided) > 0
    while i > 0:
        low, high = first[i], first[i + 1]
        cumulative = guarded if on else running
        a = low
        if high - low > 1:
            x = uniform_open(state) * cumulative[high - 1]
            while a < high - 1 and cumulative[a] <= x:
                a += 1
        on = on and a == avoided[i]
        at -= 1
        row[at] = a
        total += score[a]
        i = source[a]
    return at, total


@kernel
def draw(
    first: Array,
    source: Array,
    score: Array,
    running: Array,
    guarded: Array,
    avoided: Array,
    k: int,
    seed: int,
    stream: int,
) -> tuple[Array, Array, Array]:
    """Sample ``k`` independent paths: arcs (T,) int32, bounds (k+1,), sums of scores (k,)."""
    n = len(first) - 2
    state = seeded(seed, stream)
    row = np.empty(n, dtype=np.int32)
    store = np.empty(n, dtype=np.int32)
    bounds = np.zeros(k + 1, dtype=np.int64)
    totals = np.empty(k)
    for s in range(k):
        at, totals[s] = _draw(first, source, score, running, guarded, avoided, state, row)
        used = bounds[s]
        bounds[s + 1] = used + n - at
        store = room(store, bounds[s + 1])
        copy(store, used, row, at, n)
    return store[: bounds[k]], bounds, totals


@kernel
def draw_any(first: Array, source: Array, score: Array, k: int, seed: int, stream: int) -> tuple[Array, Array, Array]:
    """Run ``forward`` and ``draw`` in one call, avoiding no path, with scores less log Z; fast on short texts."""
    log, running = forward(first, source, score)
    arcs, bounds, totals = draw(
        first, source, score, running, np.empty(0), np.empty(0, dtype=np.int64), k, seed, stream
    )
    return arcs, bounds, totals - log[-1]


@kernel
def _same(store: Array, low: int, high: int, row: Array, at: int) -> bool:
    """Return True if a path in ``store`` equals the path at the end of ``row``."""
    if high - low != len(row) - at:
        return False
    i = 0
    while low + i < high and store[low + i] == row[at + i]:
        i += 1
    return low + i == high


@kernel
def race(
    first: Array,
    source: Array,
    score: Array,
    running: Array,
    guarded: Array,
    avoided: Array,
    k: int,
    seed: int,
    stream: int,
) -> tuple[Array, Array, Array, float]:
    """Sample with replacement, at times of a Poisson process, until ``k`` + 1 different paths have occurred.

    Returns the first ``k`` as in `draw`, and the time of the last. There must be more than ``k`` paths.
    """
    n = len(first) - 2
    state = seeded(seed, stream)
    row = np.empty(n, dtype=np.int32)
    store = np.empty(n, dtype=np.int32)
    bounds = np.zeros(k + 1, dtype=np.int64)
    totals = np.empty(k)
    hashes = np.empty(k, dtype=np.uint64)
    size = 4
    while size < 4 * k:
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    found = 0
    time = 0.0
    while True:
        time -= math.log(uniform_open(state))
        at, total = _draw(first, source, score, running, guarded, avoided, state, row)
        h = np.uint64(0)
        for s in range(at, n):
            h = mixed_with(h, np.uint64(row[s]))
        slot = np.int64(h & np.uint64(size - 1))
        new = True
        while table[slot] >= 0:
            s = table[slot]
            if hashes[s] == h and _same(store, bounds[s], bounds[s + 1], row, at):
                new = False
                break
            slot = (slot + 1) & (size - 1)
        if not new:
            continue
        if found == k:
            return store[: bounds[k]], bounds, totals, time
        used = bounds[found]
        bounds[found + 1] = used + n - at
        store = room(store, bounds[found + 1])
        copy(store, used, row, at, n)
        totals[found] = total
        hashes[found] = h
        table[slot] = found
        found += 1
