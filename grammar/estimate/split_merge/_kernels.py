"""Compiled loops of split-merge training over the nodes of a forest; plain arrays in and out.

Common arguments: ``rule``, ``left``, ``right`` (N,) describe the nodes (see `encode.Forest`); ``offset``
(N,) is where a node's vector starts; ``rules`` (R, 5) holds per base rule its position in ``prob``, n_A, n_B,
n_C and the first row of A (see `parameters.Layout`).
"""

import math

import numpy as np
from numba import njit

TINY = 1e-40  #: smaller probabilities are taken as zero


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def inside(rule, left, right, offset, rules, prob, vector, scale, log_scale):  # type: ignore[no-untyped-def]
    """Fill inside vectors, each over its largest entry ``scale``; ``log_scale`` sums a node's subtree."""
    vector[0], scale[0], log_scale[0] = 1.0, 1.0, 0.0
    for i in range(1, len(rule)):
        w, n_a, n_b, n_c = rules[rule[i], 0], rules[rule[i], 1], rules[rule[i], 2], rules[rule[i], 3]
        at, at_b, at_c = offset[i], offset[left[i]], offset[right[i]]
        y = vector[at : at + n_a]
        y[:] = 0.0
        for b in range(n_b):
            for c in range(n_c):
                x = vector[at_b + b] * vector[at_c + c]
                if x != 0.0:
                    p = prob[w : w + n_a]
                    for a in range(n_a):
                        y[a] += x * p[a]
                w += n_a
        largest = 0.0
        for a in range(n_a):
            largest = max(largest, y[a])
        scale[i] = largest
        if largest > 0.0:
            y /= largest
            log_scale[i] = math.log(largest) + log_scale[left[i]] + log_scale[right[i]]
        else:
            log_scale[i] = -math.inf


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def outside(rule, left, right, offset, rules, prob, vector, scale, out, gradient):  # type: ignore[no-untyped-def]
    """Add d log-likelihood / d ``prob`` to ``gradient``; ``out`` comes in with the roots' weights.

    Substates that cannot make a node's words are skipped: whatever their outside value, they count nothing.
    """
    for i in range(len(rule) - 1, 0, -1):
        if scale[i] == 0.0:
            continue
        w, n_a, n_b, n_c = rules[rule[i], 0], rules[rule[i], 1], rules[rule[i], 2], rules[rule[i], 3]
        at, at_b, at_c = offset[i], offset[left[i]], offset[right[i]]
        y = out[at : at + n_a]
        y /= scale[i]
        for b in range(n_b):
            for c in range(n_c):
                x = vector[at_b + b] * vector[at_c + c]
                if x != 0.0:
                    p = prob[w : w + n_a]
                    g = gradient[w : w + n_a]
                    total = 0.0
                    for a in range(n_a):
                        total += y[a] * p[a]
                        g[a] += y[a] * x
                    out[at_b + b] += total * vector[at_c + c]
                    out[at_c + c] += total * vector[at_b + b]
                w += n_a


@njit(cache=True, nogil=True)
def row_totals(rules, scores, totals):  # type: ignore[no-untyped-def]
    """Add the scores of each row to ``totals``."""
    for r in range(len(rules)):
        n_a, row = rules[r, 1], rules[r, 4]
        start = rules[r, 0]
        for w in range(start, start + n_a * rules[r, 2] * rules[r, 3], n_a):
            for a in range(n_a):
                totals[row + a] += scores[w + a]


@njit(cache=True, nogil=True)
def normalise(rules, scores, prob, totals):  # type: ignore[no-untyped-def]
    """``prob`` = scores over the row's total, where the row has any; ``totals`` comes in as zeros."""
    row_totals(rules, scores, totals)
    for r in range(len(rules)):
        n_a, row = rules[r, 1], rules[r, 4]
        start = rules[r, 0]
        for w in range(start, start + n_a * rules[r, 2] * rules[r, 3], n_a):
            for a in range(n_a):
                if totals[row + a] > 0.0:
                    p = scores[w + a] / totals[row + a]
                    prob[w + a] = p if p >= TINY else 0.0


@njit(cache=True, nogil=True)
def _sizes(rule, left, right, rules):  # type: ignore[no-untyped-def]
    """Nodes, and vector entries, of the tree below each node with every occurrence counted."""
    nodes, entries = np.zeros(len(rule), np.int64), np.zeros(len(rule), np.int64)
    for i in range(1, len(rule)):
        nodes[i] = 1 + nodes[left[i]] + nodes[right[i]]
        entries[i] = rules[rule[i], 1] + entries[left[i]] + entries[right[i]]
    return nodes, entries


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def merge_losses(  # type: ignore[no-untyped-def]
    rule, left, right, offset, rules, prob, vector, scale, roots, weights, share, loss
):
    """Add to ``loss`` (rows,) what each sibling pair's merge would cost, at the row of its first substate.

    The cost is a logarithm per occurrence, so unlike expected counts it cannot be collected over equal
    subtrees: every tree is walked, with outside vectors scaled so that a node's posterior sums to one.
    ``share`` (rows,) is the weight of a substate in the mixture with its sibling.
    """
    nodes, entries = _sizes(rule, left, right, rules)
    most_nodes, most_entries = 0, 0
    for root in roots:
        most_nodes, most_entries = max(most_nodes, nodes[root]), max(most_entries, entries[root])
    queue, place = np.zeros(most_nodes, np.int64), np.zeros(most_nodes, np.int64)
    out = np.zeros(most_entries)
    for t in range(len(roots)):
        if weights[t] == 0.0:
            continue
        queue[0], place[0], head, tail = roots[t], 0, 0, 1
        out[0] = 1.0
        used = rules[rule[roots[t]], 1]
        while head < tail:
            i, at_out = queue[head], place[head]
            head += 1
            w, n_a, n_b, n_c = rules[rule[i], 0], rules[rule[i], 1], rules[rule[i], 2], rules[rule[i], 3]
            row = rules[rule[i], 4]
            y, v = out[at_out : at_out + n_a], vector[offset[i] : offset[i] + n_a]
            total = 0.0
            for a in range(n_a):
                total += y[a] * v[a]
            for a in range(n_a):
                y[a] /= total
            for a in range(0, n_a - 1, 2):
                apart = y[a] * v[a] + y[a + 1] * v[a + 1]
                together = (y[a] + y[a + 1]) * (share[row + a] * v[a] + share[row + a + 1] * v[a + 1])
                loss[row + a] -= weights[t] * math.log(max(1.0 - apart + together, 1e-300))
            if left[i] == 0:
                continue
            at_b, at_c = offset[left[i]], offset[right[i]]
            out_b, out_c = out[used : used + n_b], out[used + n_b : used + n_b + n_c]
            out_b[:] = 0.0
            if right[i] != 0:
                out_c[:] = 0.0
            y /= scale[i]
            for b in range(n_b):
                for c in range(n_c):
                    p = prob[w : w + n_a]
                    total = 0.0
                    for a in range(n_a):
                        total += y[a] * p[a]
                    out_b[b] += total * vector[at_c + c]
                    if right[i] != 0:
                        out_c[c] += total * vector[at_b + b]
                    w += n_a
            queue[tail], place[tail] = left[i], used
            tail += 1
            used += n_b
            if right[i] != 0:
                queue[tail], place[tail] = right[i], used
                tail += 1
                used += n_c
