"""Compiled walk over every tree for what merging sibling substates would cost; plain arrays in and out."""

import math

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar.estimate.split_merge._kernels.arrays import Entries, ForestNodes


@kernel
def _sizes(rule, left, right, sizes):
    """Nodes, and vector entries, of the tree below each node with every occurrence counted."""
    nodes, entries = np.zeros(len(rule), np.int64), np.zeros(len(rule), np.int64)
    for i in range(1, len(rule)):
        nodes[i] = 1 + nodes[left[i]] + nodes[right[i]]
        entries[i] = sizes[rule[i], 0] + entries[left[i]] + entries[right[i]]
    return nodes, entries


@kernel(fastmath={"contract", "reassoc"})
def merge_losses(nodes: ForestNodes, sizes, entries: Entries, vector, scale, roots, weights, first_row, share, loss):
    """Add to ``loss`` (rows,) what each sibling pair's merge would cost, at the row of its first substate.

    The cost is a logarithm per occurrence, so unlike expected counts it cannot be collected over equal
    subtrees: every tree is walked, with outside vectors scaled so that a node's posterior sums to one.
    ``share`` (rows,) is the weight of a substate in the mixture with its sibling; ``first_row`` (R,) the
    first row of each base rule's parent; the other arguments are those of `charts.inside`.
    """
    rule, left, right, _, offset = nodes
    first_pair, pair, first_entry, end_live, substate, prob = entries
    n_nodes, n_entries = _sizes(rule, left, right, sizes)
    most_nodes, most_entries = 0, 0
    for root in roots:
        most_nodes, most_entries = max(most_nodes, n_nodes[root]), max(most_entries, n_entries[root])
    queue, place = np.zeros(most_nodes, np.int64), np.zeros(most_nodes, np.int64)
    out = np.zeros(most_entries)
    for t in range(len(roots)):
        if weights[t] == 0.0:
            continue
        queue[0], place[0], head, tail = roots[t], 0, 0, 1
        out[0] = 1.0
        used = sizes[rule[roots[t]], 0]
        while head < tail:
            i, at_out = queue[head], place[head]
            head += 1
            r = rule[i]
            n_a, n_b, n_c, row = sizes[r, 0], sizes[r, 1], sizes[r, 2], first_row[r]
            y, v = out[at_out : at_out + n_a], vector[offset[i] : offset[i] + n_a]
            total = 0.0
            for a in range(n_a):
                total += y[a] * v[a]
            for a in range(n_a):
                y[a] /= total
            for a in range(0, n_a - 1, 2):
                apart = y[a] * v[a] + y[a + 1] * v[a + 1]
                if apart > 0.0:
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
            for q in range(first_pair[r], first_pair[r + 1]):
                b, c = pair[q, 0], pair[q, 1]
                total = 0.0
                for k in range(first_entry[q], end_live[q]):
                    total += y[substate[k]] * prob[k]
                out_b[b] += total * vector[at_c + c]
                if right[i] != 0:
                    out_c[c] += total * vector[at_b + b]
            queue[tail], place[tail] = left[i], used
            tail += 1
            used += n_b
            if right[i] != 0:
                queue[tail], place[tail] = right[i], used
                tail += 1
                used += n_c
