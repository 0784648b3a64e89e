"""Compiled loops over the rules of a grammar with substates, dense and sparse; plain arrays in and out.

Dense: ``rules`` (R, 5) holds per base rule its position in the flat array, n_A, n_B, n_C and the first row of
A (see `parameters.Layout`). Sparse: see `Entries`.
"""

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar.estimate.split_merge._kernels.arrays import Entries

TINY = 1e-40  #: smaller probabilities are taken as zero


@kernel
def row_totals(rules, scores, totals):
    """Add the scores of each row to ``totals``."""
    for r in range(len(rules)):
        n_a, row = rules[r, 1], rules[r, 4]
        start = rules[r, 0]
        for w in range(start, start + n_a * rules[r, 2] * rules[r, 3], n_a):
            for a in range(n_a):
                totals[row + a] += scores[w + a]


@kernel
def normalise(rules, scores, prob, totals):
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


@kernel
def count_entries(rules, prob, n_pairs, n_entries):
    """Per base rule, the child pairs with any non-zero probability, and the non-zero probabilities."""
    for r in range(len(rules)):
        w, n_a = rules[r, 0], rules[r, 1]
        for _ in range(rules[r, 2] * rules[r, 3]):
            found = 0
            for a in range(n_a):
                found += prob[w + a] != 0.0
            n_pairs[r] += found > 0
            n_entries[r] += found
            w += n_a


@kernel
def sparse(rules, prob, entries: Entries):
    """Fill the sparse arrays with the non-zero entries of the flat array, in its order."""
    _, pair, first_entry, _, substate, entry_prob = entries
    at, k = 0, 0
    for r in range(len(rules)):
        w, n_a = rules[r, 0], rules[r, 1]
        for b in range(rules[r, 2]):
            for c in range(rules[r, 3]):
                before = k
                for a in range(n_a):
                    if prob[w + a] != 0.0:
                        substate[k], entry_prob[k] = a, prob[w + a]
                        k += 1
                if k > before:
                    pair[at, 0], pair[at, 1], first_entry[at] = b, c, before
                    at += 1
                w += n_a
    first_entry[at] = k


@kernel
def dense(rules, entries: Entries, values, flat):
    """Put sparse values at their places in the flat array."""
    first_pair, pair, first_entry, _, substate, _ = entries
    for r in range(len(rules)):
        for q in range(first_pair[r], first_pair[r + 1]):
            w = rules[r, 0] + (pair[q, 0] * rules[r, 3] + pair[q, 1]) * rules[r, 1]
            for k in range(first_entry[q], first_entry[q + 1]):
                flat[w + substate[k]] = values[k]


@kernel
def maximise(rules, entries: Entries, scores, slept, smallest, dormant, result: Entries):
    """M-step: ``result`` is scores over their row's total, without what falls below ``smallest``.

    Within a pair, what falls below ``dormant`` comes last, from ``end_live`` on. What did so before has its last score
    from ``slept`` iterations ago, and falls by as much as in all of them; it keeps its probability where ``slept`` is
    0, as a row without any score does. Returns how many pairs and entries are left.
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
    """Probabilities drawn towards the mean of their siblings.

    Siblings are neighbouring rows: ``end`` (rows,) is one past the last sibling of a row. ``weight`` (2, rows)
    is the share of the mean in a row's phrasal and lexical rules; ``lexical`` (R,) is 0 or 1. Returns how many
    entries there are now.
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
