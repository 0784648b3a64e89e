"""Kernels: passes over the trees of a forest, losses of merging sibling substates, and loops over the rules.

A batch is a run of nodes with one base rule A -> B C, so its nodes share every probability: vectors of up to WIDTH
nodes are transposed, substate by node, and each nonzero rule probability is one multiplication along the nodes.
``sizes`` (R, 3) is n_A, n_B, n_C per base rule; the dormant entries of a pair count as zero.

``rules`` (R, 5) holds per base rule its first place, n_A, n_B, n_C and the first row of A (see `parameters.Layout`);
their probabilities are `Entries`.
"""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import Entries, ForestNodes

WIDTH = 128  #: number of nodes whose vectors fit in the first-level cache


@kernel
def _turn(vector, offset, nodes, n, at, rows):
    """Copy the vectors of ``nodes`` into the columns of ``rows``; ``at`` receives their offsets."""
    for j in range(len(nodes)):
        at[j] = offset[nodes[j]]
    for k in range(n):
        row = rows[k]
        for j in range(len(nodes)):
            row[j] = vector[at[j] + k]


@kernel(fastmath={"contract", "reassoc"})
def inside(nodes: ForestNodes, sizes, entries: Entries, vector, scale, log_scale):
    """Fill inside vectors, each divided by its largest entry, ``scale``; ``log_scale`` sums over a node's subtree.

    ``vector`` is zero on entry.
    """
    rule, left, right, batches, offset = nodes
    first_pair, pair, first_entry, end_live, substate, prob = entries
    vector[0], scale[0], log_scale[0] = 1.0, 1.0, 0.0
    for i in range(1, batches[0]):
        largest, at = 0.0, offset[i]
        q = first_pair[rule[i]]
        first, last = first_entry[q], first_entry[first_pair[rule[i] + 1]]
        for k in range(first, last):
            largest = max(largest, prob[k])
        scale[i] = largest
        log_scale[i] = math.log(np.float64(largest)) if largest > 0.0 else -math.inf
        for k in range(first, last):
            vector[at + substate[k]] = prob[k] / largest
    most = max(sizes[:, 0].max(), sizes[:, 1].max(), sizes[:, 2].max())
    shape = (most, WIDTH + 8)
    ys, bs, cs = np.zeros(shape, vector.dtype), np.zeros(shape, vector.dtype), np.zeros(shape, vector.dtype)
    at_b, at_c = np.zeros(WIDTH, np.int64), np.zeros(WIDTH, np.int64)
    x, top = np.zeros(WIDTH, vector.dtype), np.zeros(WIDTH, vector.dtype)
    for m in range(len(batches) - 1):
        r = rule[batches[m]]
        n_a, n_b, n_c = sizes[r, 0], sizes[r, 1], sizes[r, 2]
        for i in range(batches[m], batches[m + 1], WIDTH):
            n = min(WIDTH, batches[m + 1] - i)
            _turn(vector, offset, left[i : i + n], n_b, at_b, bs)
            _turn(vector, offset, right[i : i + n], n_c, at_c, cs)
            ys[:n_a, :n] = 0.0
            for q in range(first_pair[r], first_pair[r + 1]):
                if end_live[q] == first_entry[q]:
                    continue
                b, c = bs[pair[q, 0]], cs[pair[q, 1]]
                for j in range(n):
                    x[j] = b[j] * c[j]
                k, last = first_entry[q], end_live[q]
                while k + 1 < last:
                    p, y, p1, y1 = prob[k], ys[substate[k]], prob[k + 1], ys[substate[k + 1]]
                    for j in range(n):
                        y[j] += p * x[j]
                        y1[j] += p1 * x[j]
                    k += 2
                if k < last:
                    p, y = prob[k], ys[substate[k]]
                    for j in range(n):
                        y[j] += p * x[j]
            top[:n] = 0.0
            for a in range(n_a):
                y = ys[a]
                for j in range(n):
                    top[j] = y[j] if y[j] > top[j] else top[j]
            for j in range(n):
                node = i + j
                scale[node] = top[j]
                if top[j] > 0.0:
                    log_scale[node] = math.log(np.float64(top[j])) + log_scale[left[node]] + log_scale[right[node]]
                    top[j] = 1.0 / top[j]
                else:
                    log_scale[node] = -math.inf
            for j in range(n):
                at = offset[i] + j * n_a
                for a in range(n_a):
                    vector[at + a] = ys[a, j] * top[j]


@kernel(fastmath={"contract", "reassoc"})
def outside(nodes: ForestNodes, sizes, entries: Entries, vector, scale, out, asleep_too, gradient):
    """Add d log-likelihood / d ``prob`` to ``gradient``; on entry ``out`` holds the weights of the roots.

    Derivatives by dormant entries are added only if ``asleep_too``.
    """
    rule, left, right, batches, offset = nodes
    first_pair, pair, first_entry, end_live, substate, prob = entries
    most = max(sizes[:, 0].max(), sizes[:, 1].max(), sizes[:, 2].max())
    shape = (most, WIDTH + 8)
    ys, bs, cs = np.zeros(shape, vector.dtype), np.zeros(shape, vector.dtype), np.zeros(shape, vector.dtype)
    ob, oc = np.zeros(shape, vector.dtype), np.zeros(shape, vector.dtype)
    at_b, at_c = np.zeros(WIDTH, np.int64), np.zeros(WIDTH, np.int64)
    x, t = np.zeros(WIDTH, vector.dtype), np.zeros(WIDTH, vector.dtype)
    for m in range(len(batches) - 2, -1, -1):
        r = rule[batches[m]]
        n_a, n_b, n_c = sizes[r, 0], sizes[r, 1], sizes[r, 2]
        for i in range(batches[m], batches[m + 1], WIDTH):
            n = min(WIDTH, batches[m + 1] - i)
            _turn(vector, offset, left[i : i + n], n_b, at_b, bs)
            _turn(vector, offset, right[i : i + n], n_c, at_c, cs)
            for j in range(n):
                t[j] = 1.0 / scale[i + j] if scale[i + j] > 0.0 else 0.0
            for a in range(n_a):
                y, at = ys[a], offset[i] + a
                for j in range(n):
                    y[j] = out[at + j * n_a] * t[j]
            ob[:n_b, :n] = 0.0
            oc[:n_c, :n] = 0.0
            for q in range(first_pair[r], first_pair[r + 1]):
                if end_live[q] == first_entry[q] and not asleep_too:
                    continue
                b, c = bs[pair[q, 0]], cs[pair[q, 1]]
                for j in range(n):
                    x[j] = b[j] * c[j]
                    t[j] = 0.0
                k, last = first_entry[q], end_live[q]
                while k + 3 < last:
                    p, p1, p2, p3 = prob[k], prob[k + 1], prob[k + 2], prob[k + 3]
                    y, y1, y2, y3 = ys[substate[k]], ys[substate[k + 1]], ys[substate[k + 2]], ys[substate[k + 3]]
                    s = s1 = s2 = s3 = p * 0
                    for j in range(n):
                        s += y[j] * x[j]
                        s1 += y1[j] * x[j]
                        s2 += y2[j] * x[j]
                        s3 += y3[j] * x[j]
                        t[j] += p * y[j] + p1 * y1[j] + p2 * y2[j] + p3 * y3[j]
                    gradient[k] += s
                    gradient[k + 1] += s1
                    gradient[k + 2] += s2
                    gradient[k + 3] += s3
                    k += 4
                while k < last:
                    p, y = prob[k], ys[substate[k]]
                    s = p * 0
                    for j in range(n):
                        s += y[j] * x[j]
                        t[j] += p * y[j]
                    gradient[k] += s
                    k += 1
                if asleep_too:
                    last = first_entry[q + 1]
                while k + 3 < last:
                    y, y1, y2, y3 = ys[substate[k]], ys[substate[k + 1]], ys[substate[k + 2]], ys[substate[k + 3]]
                    s = s1 = s2 = s3 = prob[k] * 0
                    for j in range(n):
                        s += y[j] * x[j]
                        s1 += y1[j] * x[j]
                        s2 += y2[j] * x[j]
                        s3 += y3[j] * x[j]
                    gradient[k] += s
                    gradient[k + 1] += s1
                    gradient[k + 2] += s2
                    gradient[k + 3] += s3
                    k += 4
                while k < last:
                    y = ys[substate[k]]
                    s = prob[k] * 0
                    for j in range(n):
                        s += y[j] * x[j]
                    gradient[k] += s
                    k += 1
                if end_live[q] == first_entry[q]:
                    continue
                up_b, up_c = ob[pair[q, 0]], oc[pair[q, 1]]
                for j in range(n):
                    up_b[j] += t[j] * c[j]
                    up_c[j] += t[j] * b[j]
            for j in range(n):
                at = at_b[j]
                for k in range(n_b):
                    out[at + k] += ob[k, j]
            if n_c > 1 or right[i] != 0:
                for j in range(n):
                    at = at_c[j]
                    for k in range(n_c):
                        out[at + k] += oc[k, j]
    for i in range(1, batches[0]):
        at = offset[i]
        if scale[i] > 0.0:
            for k in range(first_entry[first_pair[rule[i]]], first_entry[first_pair[rule[i] + 1]]):
                gradient[k] += out[at + substate[k]] / scale[i]


@kernel
def release(order, fresh, done, rule, first_parent, parents, waiting, place, ready, end):
    """Move the ready nodes from ``fresh`` on to the order; parents whose children are all done become ready.

    Nodes from ``fresh`` to ``done`` of the order are new. The parents of node i are ``parents[first_parent[i]]`` to
    ``parents[first_parent[i + 1]]``; ``waiting`` (N,) are the children left to do; ``place`` (N,) receives the position
    of each node; ready nodes of base rule r are put at ``end[r]`` in ``ready``.
    """
    for at in range(fresh, done):
        node = order[at]
        place[node] = at
        for k in range(first_parent[node], first_parent[node + 1]):
            parent = parents[k]
            waiting[parent] -= 1
            if waiting[parent] == 0:
                ready[end[rule[parent]]] = parent
                end[rule[parent]] += 1


@kernel
def merge_losses(nodes: ForestNodes, sizes, vector, out, weight, first_row, share, loss):
    """Add to ``loss`` (rows,) the cost of merging each sibling pair, at the row of its first substate.

    A node has one occurrence, in a tree of ``weight`` (N,); ``share`` (rows,) is the weight of a substate in the
    mixture with its sibling, ``first_row`` (R,) the first row of each base rule's parent.
    """
    rule, _, _, _, offset = nodes
    for i in range(1, len(rule)):
        if weight[i] == 0.0:
            continue
        r = rule[i]
        n, row = sizes[r, 0], first_row[r]
        y, v = out[offset[i] : offset[i] + n], vector[offset[i] : offset[i] + n]
        total = 0.0
        for a in range(n):
            total += y[a] * v[a]
        for a in range(0, n - 1, 2):
            apart = y[a] * v[a] + y[a + 1] * v[a + 1]
            if apart > 0.0:
                together = (y[a] + y[a + 1]) * (share[row + a] * v[a] + share[row + a + 1] * v[a + 1])
                loss[row + a] -= weight[i] * math.log(max(1.0 + (together - apart) / total, 1e-300))


@kernel
def maximise(rules, entries: Entries, scores, slept, smallest, dormant, result: Entries):
    """Compute the M-step: ``result`` is scores over their row's total, without results below ``smallest``.

    Within a pair, dormant entries, below ``dormant``, come last, from ``end_live`` on. An entry that was dormant has a
    score from ``slept`` iterations ago; its decrease is extrapolated over all of them. It keeps its probability if
    ``slept`` is 0, and so does a row without scores. Return the numbers of pairs and entries left.
    """
    first_pair, pair, first_entry, end_live, substate, prob = entries
    new_first_pair, new_pair, new_first_entry, new_end_live, new_substate, new_prob = result
    n_rows = 0
    for r in range(len(rules)):
        n_rows = max(n_rows, rules[r, 4] + rules[r, 1])
    totals = np.zeros(n_rows)
    for r in range(len(rules)):
        row = rules[r, 4]
        for k in range(first_entry[first_pair[r]], first_entry[first_pair[r + 1]]):
            totals[row + substate[k]] += scores[k]
    at, new = 0, 0
    sleeping = np.empty((rules[:, 1].max(), 2))
    for r in range(len(rules)):
        row = rules[r, 4]
        new_first_pair[r] = at
        for q in range(first_pair[r], first_pair[r + 1]):
            before, asleep = new, 0
            for k in range(first_entry[q], first_entry[q + 1]):
                total = totals[row + substate[k]]
                p = np.float64(prob[k])
                if total > 0.0 and k < end_live[q]:
                    p = scores[k] / total
                elif total > 0.0 and slept > 0:
                    p *= min(scores[k] / total / p, (scores[k] / total / p) ** slept)
                if p >= dormant:
                    new_substate[new], new_prob[new] = substate[k], p
                    new += 1
                elif p >= smallest:
                    sleeping[asleep, 0], sleeping[asleep, 1] = substate[k], p
                    asleep += 1
            new_end_live[at] = new
            for k in range(asleep):
                new_substate[new], new_prob[new] = sleeping[k, 0], sleeping[k, 1]
                new += 1
            if new > before:
                new_pair[at, 0], new_pair[at, 1], new_first_entry[at] = pair[q, 0], pair[q, 1], before
                at += 1
    new_first_pair[len(rules)] = at
    new_first_entry[at] = new
    return at, new


@kernel
def smooth(rules, lexical, entries: Entries, weight, end, new_first_entry, new_substate, new_prob):
    """Interpolate probabilities with the mean of their siblings.

    Siblings are adjacent rows: ``end`` (rows,) is one past the last sibling of a row. ``weight`` (2, rows) is the
    weight of the mean in a row's phrasal and lexical rules; ``lexical`` (R,) is 0 or 1. Return the new number of
    entries.
    """
    first_pair, pair, first_entry, _, substate, prob = entries
    new = 0
    buffer = np.zeros(rules[:, 1].max())
    for r in range(len(rules)):
        n_a, row = rules[r, 1], rules[r, 4]
        for q in range(first_pair[r], first_pair[r + 1]):
            new_first_entry[q] = new
            buffer[:n_a] = 0.0
            for k in range(first_entry[q], first_entry[q + 1]):
                buffer[substate[k]] = prob[k]
            a = 0
            while a < n_a:
                stop = end[row + a] - row
                total = 0.0
                for s in range(a, stop):
                    total += buffer[s]
                if total > 0.0:
                    for s in range(a, stop):
                        p = buffer[s]
                        if stop - a > 1:
                            w = weight[lexical[r], row + s]
                            p = (1.0 - w) * p + w * (total - p) / (stop - a - 1)
                        if p > 0.0:
                            new_substate[new], new_prob[new] = s, p
                            new += 1
                a = stop
    new_first_entry[len(pair)] = new
    return new
