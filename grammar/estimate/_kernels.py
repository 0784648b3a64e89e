"""Kernels: inside charts and expected rule counts of a batch of sentences of one length.

The last axis of an array is the batch (width W), so that every rule is one vector multiply-add. Span ``(i, j)`` has
number ``j (j-1) / 2 + i``. Each span of each sentence has its own power of two, ``shift``: its inside weights are
``entry * 2^shift`` and its largest entry lies in [0.5, 1), so charts neither under- nor overflow at any length,
whatever spans brackets exclude. Outside entries are divided by that power and by the sentence's probability: inside
entry times outside entry is an expected count.
"""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import BatchChart, LexicalRules, PairRules, SparseRows, UnaryRules

SMALLEST = 1e-250  #: entries below this share of the largest entry of their span count as zero
FAINT = 1e-290  #: a span whose largest weight is below this share of its best pair of parts counts as zero
TINY = 1e-300  #: products below it may have lost digits, or be zero
NOTHING = -(2**40)  #: shift of a span without weight: any power of two reached from it is zero
LOWEST, HIGHEST = -1100, 1000  #: powers of two in the table; 2^-1100 is zero


@kernel
def _powers():
    """Return ``2^x`` for x in LOWEST..HIGHEST."""
    table = np.empty(HIGHEST - LOWEST + 1)
    for x in range(LOWEST, HIGHEST + 1):
        table[x - LOWEST] = math.ldexp(1.0, x)
    return table


@kernel
def _factors(shift, i, j, whole, powers, factor):
    """Compute ``factor[k] = 2^(shift of (i, k) + shift of (k, j) - whole)`` over the batch, for every split k."""
    for k in range(i + 1, j):
        left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
        for w in range(whole.size):
            power = shift[left, w] + shift[right, w] - whole[w]
            factor[k, w] = powers[min(max(power, LOWEST), HIGHEST) - LOWEST]


@kernel
def _highest(shift, i, j, top):
    """Compute the largest power that any split of span (i, j) reaches, over the batch."""
    top[:] = 4 * NOTHING
    for k in range(i + 1, j):
        left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
        for w in range(top.size):
            top[w] = max(top[w], shift[left, w] + shift[right, w])


@kernel
def _mark_underflow(shift, least, i, j, factor, smallest, lost):
    """Mark in ``lost`` the sentences in which a product of two kept weights may have underflowed.

    ``least`` (spans, W) is the smallest weight kept in each span, ``smallest`` any further factor of such a product.
    """
    for k in range(i + 1, j):
        left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
        for w in range(lost.size):
            if shift[left, w] > NOTHING and shift[right, w] > NOTHING:
                product = factor[k, w] * least[left, w]
                lost[w] |= product < TINY or product * least[right, w] * smallest < TINY


@kernel(fastmath={"contract"})
def _lefts(full, present, i, j, b, factor, splits, lefts):
    """Compute left parts b of span (i, j), times the factor of their split; return the number of splits with one."""
    result = 0
    for k in range(i + 1, j):
        left = k * (k - 1) // 2 + i
        if present[left, b]:
            for w in range(lefts.shape[1]):
                lefts[result, w] = factor[k, w] * full[left, b, w]
            splits[result] = k
            result += 1
    return result


@kernel(fastmath={"contract"})
def _products(full, present, j, c, splits, n_splits, lefts, acc):
    """Sum over the splits of left part times right part c into ``acc``; return False if no split has a right part."""
    begun = False
    for x in range(n_splits):
        right = j * (j - 1) // 2 + splits[x]
        if present[right, c]:
            if begun:
                for w in range(acc.size):
                    acc[w] += lefts[x, w] * full[right, c, w]
            else:
                begun = True
                for w in range(acc.size):
                    acc[w] = lefts[x, w] * full[right, c, w]
    return begun


@kernel
def _normalise(full, present, allowed, top, shift, scale, least, lost):
    """Scale the largest entry of a span to [0.5, 1) in every sentence; ``top`` is the power of its entries.

    Mark in ``lost`` the sentences with a weight too small to be kept; ``least`` is the smallest weight kept.
    """
    scale[:] = 0.0
    least[:] = 1.0
    for a in range(full.shape[0]):
        if present[a]:
            for w in range(scale.size):
                scale[w] = max(scale[w], full[a, w])
    for w in range(scale.size):
        if allowed[w] and scale[w] > FAINT:
            power = math.frexp(scale[w])[1]
            shift[w] = top[w] + power
            scale[w] = math.ldexp(1.0, -power)
        else:
            lost[w] |= allowed[w] and scale[w] > 0.0
            shift[w] = NOTHING
            scale[w] = 0.0
    for a in range(full.shape[0]):
        if present[a]:
            some = False
            for w in range(scale.size):
                value = full[a, w] * scale[w]
                lost[w] |= scale[w] > 0.0 and full[a, w] > 0.0 and value < SMALLEST
                full[a, w] = value if value >= SMALLEST else 0.0
                if value >= SMALLEST:
                    least[w] = min(least[w], value)
                    some = True
            present[a] = some


@kernel(fastmath={"contract"})
def inside(words, allowed, closure: SparseRows, pairs: PairRules, lexicon: LexicalRules):
    """Return inside weights of ``words`` (n, W), -1 unknown, over the spans that are ``allowed`` (spans, W).

    ``closure`` are the rows of the unary closure U.

    Returns:
        The chart; and whether a weight of each sentence was too small relative to others to be kept, (W,).
    """
    closure_start, closure_column, closure_value = closure
    _, pair_right, by_left, rule_start, parent, prob = pairs
    lex_start, lex_parent, lex_prob = lexicon
    n, width = words.shape
    n_states = by_left.size - 1
    n_spans = n * (n + 1) // 2
    full = np.empty((n_spans, n_states, width))  # only rows that are present are filled; few are
    present = np.zeros((n_spans, n_states), dtype=np.bool_)
    shift = np.full((n_spans, width), NOTHING)
    lost = np.zeros(width, dtype=np.bool_)
    least = np.empty((n_spans, width))
    smallest = prob.min() * closure_value.min() if prob.size and closure_value.size else 1.0
    bare = np.zeros((n_states, width))
    flags = np.zeros(n_states, dtype=np.bool_)
    acc, scale = np.zeros(width), np.zeros(width)
    top = np.zeros(width, dtype=np.int64)
    factor, lefts = np.zeros((n + 1, width)), np.zeros((n + 1, width))
    splits = np.zeros(n + 1, dtype=np.int64)
    powers = _powers()
    begins = np.zeros((n, n_states), dtype=np.bool_)  # states of some span from i on
    ends = np.zeros(n_states, dtype=np.bool_)  # states of some span that ends at j
    for j in range(1, n + 1):
        ends[:] = False
        for i in range(j - 1, -1, -1):
            span = j * (j - 1) // 2 + i
            if not allowed[span].any():
                continue
            bare[:] = 0.0
            flags[:] = False
            if i == j - 1:
                top[:] = 0
                for w in range(width):
                    if words[i, w] >= 0:
                        for r in range(lex_start[words[i, w]], lex_start[words[i, w] + 1]):
                            flags[lex_parent[r]] = True
                            bare[lex_parent[r], w] = lex_prob[r]
            else:
                _highest(shift, i, j, top)
                _factors(shift, i, j, top, powers, factor)
                _mark_underflow(shift, least, i, j, factor, smallest, lost)
                for b in range(n_states):
                    if by_left[b] == by_left[b + 1] or not begins[i, b]:
                        continue
                    n_splits = _lefts(full, present, i, j, b, factor, splits, lefts)
                    for p in range(by_left[b], by_left[b + 1]):
                        c = pair_right[p]
                        if ends[c] and _products(full, present, j, c, splits, n_splits, lefts, acc):
                            for r in range(rule_start[p], rule_start[p + 1]):
                                weight = prob[r]
                                a = parent[r]
                                flags[a] = True
                                for w in range(width):
                                    bare[a, w] += weight * acc[w]
            for a in range(n_states):
                for e in range(closure_start[a], closure_start[a + 1]):
                    b = closure_column[e]
                    if flags[b]:
                        weight = closure_value[e]
                        if not present[span, a]:
                            present[span, a] = True
                            full[span, a] = 0.0
                        for w in range(width):
                            full[span, a, w] += weight * bare[b, w]
            _normalise(full[span], present[span], allowed[span], top, shift[span], scale, least[span], lost)
            for a in range(n_states):
                begins[i, a] |= present[span, a]
                ends[a] |= present[span, a]
    return BatchChart(full, present, shift), lost


@kernel
def _any_flag(flags, parent, first, last):
    """Return True if one of the rules first..last-1 has a marked parent."""
    for r in range(first, last):  # noqa: SIM110 (numba has no generators)
        if flags[parent[r]]:
            return True
    return False


@kernel(fastmath={"contract", "reassoc"})
def _dot(x, y):
    total = 0.0
    for w in range(x.size):
        total += x[w] * y[w]
    return total


@kernel(fastmath={"contract"})
def _close(outside, full, present, closure: SparseRows, closed, flags):
    """Compute ``closed = U^T outside`` over the batch, zero where inside is; mark the states that are not zero."""
    closure_start, closure_column, closure_value = closure
    closed[:] = 0.0
    flags[:] = False
    for a in range(outside.shape[0]):
        some = False
        if present[a]:
            for w in range(outside.shape[1]):
                if full[a, w] == 0.0:
                    outside[a, w] = 0.0
                some |= outside[a, w] != 0.0
        if some:
            for e in range(closure_start[a], closure_start[a + 1]):
                b = closure_column[e]
                if present[b]:
                    weight = closure_value[e]
                    flags[b] = True
                    for w in range(outside.shape[1]):
                        closed[b, w] += weight * outside[a, w]
    for b in range(outside.shape[0]):
        if flags[b]:
            for w in range(outside.shape[1]):
                if full[b, w] == 0.0:
                    closed[b, w] = 0.0


@kernel(fastmath={"contract"})
def expected_counts(
    words,
    weights,
    chart: BatchChart,
    start,
    closure: SparseRows,
    pairs: PairRules,
    lexicon: LexicalRules,
    unaries: UnaryRules,
):
    """Return expected uses of every rule, summed over the batch with ``weights`` (W,); from the chart of `inside`.

    Returns:
        binary (R,), unary (U,), lexical (L,). A sentence of inside weight zero adds nothing.
    """
    full, present, shift = chart
    _, pair_right, by_left, rule_start, parent, prob = pairs
    lex_start, lex_parent, lex_prob = lexicon
    unary_parent, unary_child, unary_prob = unaries
    n, width = words.shape
    n_states = by_left.size - 1
    binary, unary, lexical = np.zeros(prob.size), np.zeros(unary_prob.size), np.zeros(lex_prob.size)
    outside = np.empty_like(full)
    closed = np.zeros((n_states, width))
    flags = np.zeros(n_states, dtype=np.bool_)
    acc, demand = np.zeros(width), np.zeros(width)
    factor, lefts = np.zeros((n + 1, width)), np.zeros((n + 1, width))
    splits = np.zeros(n + 1, dtype=np.int64)
    powers = _powers()
    for span in range(full.shape[0]):
        for a in range(n_states):
            if present[span, a]:
                outside[span, a] = 0.0
    root = n * (n - 1) // 2
    for w in range(width):
        if present[root, start] and full[root, start, w] > 0.0:
            outside[root, start, w] = weights[w] / full[root, start, w]
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            span = j * (j - 1) // 2 + i
            _close(outside[span], full[span], present[span], closure, closed, flags)
            for u in range(unary_prob.size):
                if flags[unary_parent[u]] and present[span, unary_child[u]]:
                    unary[u] += unary_prob[u] * _dot(closed[unary_parent[u]], full[span, unary_child[u]])
            if length == 1:
                for w in range(width):
                    if words[i, w] >= 0 and shift[span, w] > NOTHING:
                        unit = math.ldexp(1.0, -shift[span, w])
                        for r in range(lex_start[words[i, w]], lex_start[words[i, w] + 1]):
                            lexical[r] += closed[lex_parent[r], w] * (lex_prob[r] * unit)
                continue
            if not flags.any():
                continue
            _factors(shift, i, j, shift[span], powers, factor)
            for b in range(n_states):
                if not _any_flag(flags, parent, rule_start[by_left[b]], rule_start[by_left[b + 1]]):
                    continue
                n_splits = _lefts(full, present, i, j, b, factor, splits, lefts)
                if n_splits == 0:
                    continue
                for p in range(by_left[b], by_left[b + 1]):
                    c = pair_right[p]
                    if not _any_flag(flags, parent, rule_start[p], rule_start[p + 1]):
                        continue
                    if not _products(full, present, j, c, splits, n_splits, lefts, acc):
                        continue
                    demand[:] = 0.0
                    for r in range(rule_start[p], rule_start[p + 1]):
                        a = parent[r]
                        if flags[a]:
                            weight = prob[r]
                            binary[r] += weight * _dot(closed[a], acc)
                            for w in range(width):
                                demand[w] += weight * closed[a, w]
                    for x in range(n_splits):
                        k = splits[x]
                        left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
                        if present[right, c]:
                            for w in range(width):
                                outside[left, b, w] += demand[w] * (factor[k, w] * full[right, c, w])
                                outside[right, c, w] += demand[w] * lefts[x, w]
    return binary, unary, lexical
