"""Kernels: the first pass of coarse-to-fine parsing over a batch, and edges of the search for the k best trees.

The grammar of the first pass is small and nearly every symbol can cover nearly every span, so a batch of
`truesource.grammar._kernels.kernel.WIDTH` sentences, one per lane, is processed at once. Lanes never mix, so the
results of a sentence do not depend on the others. Span ``(i, j)`` has number ``j (j-1) / 2 + i`` and, in each lane, its
own power of two, as in `truesource.grammar.inference._kernels.posterior`. Charts are flat: entry ``(span S + a) lanes +
w`` is symbol a in lane w.

Edges are the rewrites of one symbol over one span. They are columns, (E,) each: split point, left child, right child,
weight of the edge itself and score of the best tree with the edge on top, in nats. A unary rule has no split and no
right child, a word no child: these are -1. Edges with a score below ``least`` are excluded.
"""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar._kernels.kernel import add_products, add_scaled, kernel, room, width
from truesource.grammar._kernels.rules import (
    ChildRules,
    CoarseRules,
    InsideChart,
    LaneChart,
    LexicalRules,
    PairRules,
    SpanPairs,
    SparseRows,
)

NOTHING = -(2**40)  #: shift of a span without weight
LOWEST = -100  #: lower powers of two are zero
SMALLEST = 1e-18  #: entries smaller than this share of the largest of their span are zero: their inverses are finite


@kernel
def _factor(shift, left, right, whole, factor):
    """Compute ``2^(shift of left + shift of right - whole)``, lane by lane; return False if all are zero."""
    some = False
    for w in range(width()):
        power = shift[left, w] + shift[right, w] - whole[w]
        factor[w] = math.ldexp(1.0, min(power, -LOWEST)) if power > LOWEST else 0.0
        some |= power > LOWEST
    return some


@kernel
def _products(i, j, chart: LaneChart, pairs: SpanPairs, top, acc, lefts, factor):
    """Sum all splits of span (i, j) per child pair into ``acc``; ``top`` becomes the power of two of its lanes."""
    lanes = width()
    full, shift, listed, count = chart
    size = listed.shape[1] * lanes
    top[:] = 2 * NOTHING
    for k in range(i + 1, j):
        left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
        for w in range(lanes):
            top[w] = max(top[w], shift[left, w] + shift[right, w])
    if top.max() < NOTHING // 2:
        return False
    acc[:] = 0.0
    for k in range(i + 1, j):
        left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
        if not _factor(shift, left, right, top, factor):
            continue
        until = pairs.until if j - k > 1 else pairs.end
        for x in range(count[left]):
            b = listed[left, x]
            if pairs.start[b] == until[b]:
                continue
            lefts[:] = 0.0
            add_products(lefts, 0, factor, 0, full, left * size + b * lanes)
            for p in range(pairs.start[b], until[b]):
                add_products(acc, p * lanes, lefts, 0, full, right * size + pairs.right[p] * lanes)
    return True


@kernel
def inside(words, closure: SparseRows, pairs: SpanPairs, lexicon: LexicalRules):
    """Return inside weights of a batch, ``words`` (n, lanes), -1 for an unknown word and after a sentence's end.

    ``closure`` are the columns of the unary closure. The chart has the type of its values.
    """
    lanes, n, n_states, dtype = width(), words.shape[0], pairs.start.size, closure.value.dtype
    n_spans = n * (n + 1) // 2
    full = np.zeros(n_spans * n_states * lanes, dtype)
    shift = np.full((n_spans, lanes), NOTHING)
    listed = np.zeros((n_spans, n_states), dtype=np.int32)
    count = np.zeros(n_spans, dtype=np.int32)
    chart = LaneChart(full, shift, listed, count)
    bare, closed = np.zeros(n_states * lanes, dtype), np.zeros(n_states * lanes, dtype)
    acc, lefts, factor = np.zeros(pairs.right.size * lanes, dtype), np.zeros(lanes, dtype), np.zeros(lanes, dtype)
    top = np.zeros(lanes, dtype=np.int64)
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            span = j * (j - 1) // 2 + i
            bare[:] = 0.0
            if i == j - 1:
                top[:] = 0
                for w in range(lanes):
                    if words[i, w] >= 0:
                        for r in range(lexicon.start[words[i, w]], lexicon.start[words[i, w] + 1]):
                            bare[lexicon.parent[r] * lanes + w] = lexicon.prob[r]
            elif _products(i, j, chart, pairs, top, acc, lefts, factor):
                for r in range(pairs.parent.size):
                    add_scaled(bare, pairs.parent[r] * lanes, pairs.prob[r], acc, pairs.pair[r] * lanes)
            else:
                continue
            _close(bare, closure, closed)
            _store(span, closed, top, chart)
    return chart


@kernel
def _close(bare, closure: SparseRows, closed):
    """Compute ``closed = U bare`` over one span, U by columns."""
    lanes = width()
    closed[:] = 0.0
    for b in range(bare.size // lanes):
        most = bare[b * lanes]
        for w in range(1, lanes):
            most = max(most, bare[b * lanes + w])
        if most > 0.0:
            for e in range(closure.start[b], closure.start[b + 1]):
                add_scaled(closed, closure.column[e] * lanes, closure.value[e], bare, b * lanes)


@kernel
def _store(span, closed, top, chart: LaneChart):
    """Put a span into the chart, the largest entry of each lane scaled to [0.5, 1)."""
    full, shift, listed, count = chart
    lanes, n_states = width(), listed.shape[1]
    scale = np.zeros(lanes, closed.dtype)
    for a in range(n_states):
        for w in range(lanes):
            scale[w] = max(scale[w], closed[a * lanes + w])
    for w in range(lanes):
        if scale[w] > 1e-30:
            power = math.frexp(scale[w])[1]
            shift[span, w] = top[w] + power
            scale[w] = math.ldexp(1.0, -power)
        else:
            scale[w] = 0.0
    for a in range(n_states):
        some = False
        for w in range(lanes):
            value = closed[a * lanes + w] * scale[w]
            if value >= SMALLEST:
                full[(span * n_states + a) * lanes + w] = value
                some = True
        if some:
            listed[span, count[span]] = a
            count[span] += 1


@kernel
def posterior(chart: LaneChart, sizes, start, threshold, closure: SparseRows, pairs: SpanPairs):
    """Return the expected number of nodes of each symbol over each span, (spans, S, lanes).

    ``sizes`` (lanes,) are the lengths of the sentences, 0 for an empty lane; ``closure`` as in `inside`. Spans whose
    expected numbers are all under a thousandth of ``threshold`` are not expanded.
    """
    full, shift, listed, count = chart
    n_spans, n_states = listed.shape
    lanes, dtype = width(), full.dtype
    size = n_states * lanes
    n = sizes.max()
    expected, above = np.zeros_like(full), np.zeros_like(full)
    closed = np.zeros(size, dtype)
    factor, lefts, owed = np.zeros(lanes, dtype), np.zeros(lanes, dtype), np.zeros(lanes, dtype)
    demand = np.zeros(pairs.right.size * lanes, dtype)
    for w in range(lanes):
        if sizes[w] > 0:
            root = ((sizes[w] * (sizes[w] - 1) // 2) * n_states + start) * lanes + w
            if full[root] > 0.0:
                above[root] = 1.0 / full[root]
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            span = j * (j - 1) // 2 + i
            closed[:] = 0.0
            most = 0.0
            for x in range(count[span]):
                b = listed[span, x]
                for e in range(closure.start[b], closure.start[b + 1]):
                    add_scaled(closed, b * lanes, closure.value[e], above, span * size + closure.column[e] * lanes)
                for w in range(lanes):
                    value = closed[b * lanes + w] * full[span * size + b * lanes + w]
                    expected[span * size + b * lanes + w] = value
                    most = max(most, value)
            if length == 1 or most < 1e-3 * threshold:
                continue
            demand[:] = 0.0
            for r in range(pairs.parent.size):
                add_scaled(demand, pairs.pair[r] * lanes, pairs.prob[r], closed, pairs.parent[r] * lanes)
            for k in range(i + 1, j):
                left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
                if not _factor(shift, left, right, shift[span], factor):
                    continue
                until = pairs.until if j - k > 1 else pairs.end
                for x in range(count[left]):
                    b = listed[left, x]
                    if pairs.start[b] == until[b]:
                        continue
                    lefts[:] = 0.0
                    add_products(lefts, 0, factor, 0, full, left * size + b * lanes)
                    owed[:] = 0.0
                    for p in range(pairs.start[b], until[b]):
                        at = right * size + pairs.right[p] * lanes
                        add_products(owed, 0, demand, p * lanes, full, at)
                        add_products(above, at, demand, p * lanes, lefts, 0)
                    add_products(above, left * size + b * lanes, owed, 0, factor, 0)
    return expected.reshape((n_spans, n_states, lanes))


@kernel
def survivors(expected, n_spans, threshold, parent_of):
    """Return which states of the next level its pass may use, (spans, S'), by the expected number of their parent.

    ``expected`` (spans or more, S) is of one sentence; ``parent_of`` (S',) are their parents, -1 for states that no
    derivation uses.
    """
    allowed = np.zeros((n_spans, parent_of.size), dtype=np.bool_)
    for span in range(n_spans):
        some = False
        for a in range(expected.shape[1]):
            some |= expected[span, a] >= threshold
        if some:
            for a in range(parent_of.size):
                allowed[span, a] = parent_of[a] >= 0 and expected[span, parent_of[a]] >= threshold
    return allowed


@kernel
def coarse_edges(node, least, best, below, chart: InsideChart, closed, state_label, pairs: PairRules, c: CoarseRules):
    """Return coarse rules of the label of ``node`` (i, j, label), weighted as in max-rule trees.

    ``best`` and ``below`` are the charts of `truesource.grammar.inference._kernels.posterior.max_rule`. Their unary
    step comes first, so that edges of equal score are tried in the same order.
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
    """Return rules of the symbol of ``node`` (i, j, symbol), weighted by their log probabilities in ``prob``.

    ``best`` is the chart of `truesource.grammar.inference._kernels.posterior.viterbi`.
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
