"""Kernels: the ways in which one symbol can be rewritten over one span, for the search of the k best trees.

Edges come in columns, (E,) each: split point, left child, right child, weight of the edge itself and score of the best
tree with the edge on top, in nats. A unary rule has no split and no right child, a word no child at all: they are -1.
Edges whose score is below ``least`` are left out.
"""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar._kernels.growing import room
from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import ChildRules, CoarseRules, InsideChart, LexicalRules, PairRules


@kernel
def coarse_edges(node, least, best, below, chart: InsideChart, closed, state_label, pairs: PairRules, c: CoarseRules):
    """Coarse rules of the label of ``node`` (i, j, label), weighted as in max-rule trees.

    ``best`` and ``below`` are the charts of `truesource.grammar.inference._kernels.posterior.max_rule`. The step that
    they take stands first among the unary ones, so that edges of equal score are tried in their order.
    """
    i, j, label = node
    inside, bare, shift, listed, count = chart
    span = j * (j - 1) // 2 + i
    splits = np.empty(16, dtype=np.int32)
    lefts = np.empty(16, dtype=np.int32)
    rights = np.empty(16, dtype=np.int32)
    weights = np.empty(16)
    scores = np.empty(16)
    n = 0
    if j - i == 1:
        total = 0.0
        for x in range(count[span]):
            a = listed[span, x]
            if state_label[a] == label:
                total += closed[span, a] * bare[span, a]
        if total > 0.0 and min(math.log(total), 0.0) >= least:
            splits[0], lefts[0], rights[0] = -1, -1, -1
            weights[0] = min(math.log(total), 0.0)
            scores[0] = weights[0]
            n = 1
    acc = np.zeros(c.binary.shape[1])
    touched = np.zeros(c.binary.shape[1], dtype=np.int32)
    for k in range(i + 1, j):
        left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
        power = shift[left] + shift[right] - shift[span]
        if power < -2000:
            continue
        factor = math.ldexp(1.0, power)
        most = best[right].max()
        n_touched = 0
        for x in range(count[left]):
            b = listed[left, x]
            over_left = best[left, state_label[b]]
            if over_left == -np.inf or over_left + most < least:
                continue
            weight = inside[left, b]
            for p in range(pairs.by_left[b], pairs.by_left[b + 1]):
                over_right = best[right, state_label[pairs.right[p]]]
                product = inside[right, pairs.right[p]]
                if product == 0.0 or over_right == -np.inf or over_left + over_right < least:
                    continue
                product *= weight
                for g in range(c.group_start[p], c.group_start[p + 1]):
                    rule = c.group_coarse[g]
                    if c.binary[0, rule] != label:
                        continue
                    demand = 0.0
                    for m in range(c.member_start[g], c.member_start[g + 1]):
                        demand += c.member_prob[m] * closed[span, c.member_parent[m]]
                    amount = demand * product * factor
                    if amount > 0.0:
                        if acc[rule] == 0.0:
                            touched[n_touched] = rule
                            n_touched += 1
                        acc[rule] += amount
        for x in range(n_touched):
            rule = touched[x]
            weight = min(math.log(acc[rule]), 0.0)
            acc[rule] = 0.0
            score = best[left, c.binary[1, rule]] + best[right, c.binary[2, rule]] + weight
            if score >= least:
                splits, lefts, rights = room(splits, n + 1), room(lefts, n + 1), room(rights, n + 1)
                weights, scores = room(weights, n + 1), room(scores, n + 1)
                splits[n], lefts[n], rights[n] = k, c.binary[1, rule], c.binary[2, rule]
                weights[n], scores[n] = weight, score
                n += 1
    for first in (True, False):
        for u in range(c.chains.shape[1]):
            child = c.chains[1, u]
            if c.chains[0, u] != label or (child == below[span, label]) != first or best[span, child] == -np.inf:
                continue
            total = 0.0
            for e in range(c.chain_start[u], c.chain_start[u + 1]):
                total += closed[span, c.chain_states[0, e]] * c.chain_weight[e] * inside[span, c.chain_states[1, e]]
            if total > 0.0:
                weight = min(math.log(total), 0.0)
                score = weight + best[span, child]
                if score >= least:
                    splits, lefts, rights = room(splits, n + 1), room(lefts, n + 1), room(rights, n + 1)
                    weights, scores = room(weights, n + 1), room(scores, n + 1)
                    splits[n], lefts[n], rights[n] = -1, child, -1
                    weights[n], scores[n] = weight, score
                    n += 1
    return splits[:n], lefts[:n], rights[:n], weights[:n], scores[:n]


@kernel
def derivation_edges(node, least, best, words, binary: ChildRules, unary: ChildRules, lexicon: LexicalRules):
    """Rules of the symbol of ``node`` (i, j, symbol), weighted by their log probabilities, which ``prob`` holds.

    ``best`` is the chart of `truesource.grammar.inference._kernels.viterbi.viterbi`.
    """
    i, j, a = node
    span = j * (j - 1) // 2 + i
    splits = np.empty(16, dtype=np.int32)
    lefts = np.empty(16, dtype=np.int32)
    rights = np.empty(16, dtype=np.int32)
    weights = np.empty(16)
    scores = np.empty(16)
    n = 0
    if j - i == 1 and words[i] >= 0:
        for r in range(lexicon.start[words[i]], lexicon.start[words[i] + 1]):
            if lexicon.parent[r] == a and lexicon.prob[r] >= least:
                splits[0], lefts[0], rights[0] = -1, -1, -1
                weights[0] = lexicon.prob[r]
                scores[0] = lexicon.prob[r]
                n = 1
    for k in range(i + 1, j):
        left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
        for r in range(binary.start[a], binary.start[a + 1]):
            score = best[left, binary.children[0, r]] + best[right, binary.children[1, r]] + binary.prob[r]
            if score > -np.inf and score >= least:
                splits, lefts, rights = room(splits, n + 1), room(lefts, n + 1), room(rights, n + 1)
                weights, scores = room(weights, n + 1), room(scores, n + 1)
                splits[n], lefts[n], rights[n] = k, binary.children[0, r], binary.children[1, r]
                weights[n], scores[n] = binary.prob[r], score
                n += 1
    for r in range(unary.start[a], unary.start[a + 1]):
        score = unary.prob[r] + best[span, unary.children[0, r]]
        if score > -np.inf and score >= least:
            splits, lefts, rights = room(splits, n + 1), room(lefts, n + 1), room(rights, n + 1)
            weights, scores = room(weights, n + 1), room(scores, n + 1)
            splits[n], lefts[n], rights[n] = -1, unary.children[0, r], -1
            weights[n], scores[n] = unary.prob[r], score
            n += 1
    return splits[:n], lefts[:n], rights[:n], weights[:n], scores[:n]
