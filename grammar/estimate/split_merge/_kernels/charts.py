"""Compiled inside and outside passes over the nodes of a forest, a batch at a time; plain arrays in and out.

A batch is a run of nodes with one base rule A -> B C, so its nodes share every probability: vectors of up to
WIDTH nodes are turned around, substate by node, and each rule probability that is not zero is one
multiplication along the nodes.

``sizes`` (R, 3) is n_A, n_B, n_C per base rule; the dormant entries of a pair are taken as zero.
"""

import math

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar.estimate.split_merge._kernels.arrays import Entries, ForestNodes

WIDTH = 128  #: nodes whose vectors are in the first-level cache together


@kernel
def _turn(vector, offset, nodes, n, at, rows):
    """Copy the vectors of ``nodes`` into the columns of ``rows``; ``at`` receives where they start."""
    for j in range(len(nodes)):
        at[j] = offset[nodes[j]]
    for k in range(n):
        row = rows[k]
        for j in range(len(nodes)):
            row[j] = vector[at[j] + k]


@kernel(fastmath={"contract", "reassoc"})
def inside(nodes: ForestNodes, sizes, entries: Entries, vector, scale, log_scale):
    """Fill inside vectors, each over its largest entry ``scale``; ``log_scale`` sums a node's subtree.

    ``vector`` comes in as zeros.
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
    """Add d log-likelihood / d ``prob`` to ``gradient``; ``out`` comes in with the roots' weights.

    Entries taken as zero get theirs only where ``asleep_too``.
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
