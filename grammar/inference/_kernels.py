"""Kernels: inside, outside and prefix probabilities of a batch of sentences of one length.

Arrays end in the batch axis (width W), so that every rule is one vector multiply-add. Span ``(i, j)`` has
number ``j (j-1) / 2 + i``. Each word's column is scaled by the inverse of its conditional probability given
its left context, so that charts stay in floating range at any sentence length.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Most that a chart entry holds. What matters to a sentence's probability stays far below: an entry is at most
#: the inverse weight of its symbol starting there. More is met only where a symbol cannot start, and would
#: overflow in long sentences; the square of this number is finite, so nothing becomes infinite or NaN.
CAP = 1e140


@njit(cache=True, nogil=True)
def _close(bare, row_start, column, value, out, flags, listed):
    """``out = U bare`` over the batch; marks and lists the states that are not zero, returns how many."""
    n_states, width = bare.shape
    count = 0
    for a in range(n_states):
        alive = False
        for e in range(row_start[a], row_start[a + 1]):
            b = column[e]
            if flags[b]:
                weight = value[e]
                alive = True
                for w in range(width):
                    out[a, w] += weight * bare[b, w]
        if alive:
            for w in range(width):
                out[a, w] = min(out[a, w], CAP)
            listed[count] = a
            count += 1
    return count


@njit(cache=True, nogil=True)
def _span(
    inside,
    listed,
    count,
    present,
    i,
    j,
    by_left,
    pair_right,
    rule_start,
    parent,
    prob,
    acc,
    begun,
    touched,
    bare,
    flags,
):
    """Sum all splits of span (i, j) per child pair, then apply the rules; fills ``bare`` and ``flags``."""
    width = bare.shape[1]
    n_touched = 0
    for k in range(i + 1, j):
        left = k * (k - 1) // 2 + i
        right = j * (j - 1) // 2 + k
        if count[right] == 0:
            continue
        for x in range(count[left]):
            b = listed[left, x]
            for p in range(by_left[b], by_left[b + 1]):
                c = pair_right[p]
                if present[right, c]:
                    if not begun[p]:
                        begun[p] = True
                        touched[n_touched] = p
                        n_touched += 1
                        for w in range(width):
                            acc[p, w] = inside[left, b, w] * inside[right, c, w]
                    else:
                        for w in range(width):
                            acc[p, w] += inside[left, b, w] * inside[right, c, w]
    bare[:] = 0.0
    flags[:] = False
    for x in range(n_touched):
        p = touched[x]
        for r in range(rule_start[p], rule_start[p + 1]):
            a = parent[r]
            weight = prob[r]
            flags[a] = True
            for w in range(width):
                bare[a, w] += weight * acc[p, w]
        begun[p] = False


@njit(cache=True, nogil=True)
def _leaf(words, j, scale, lex_start, lex_parent, lex_prob, bare, flags):
    """Preterminals over word j (0-based) of each sentence, scaled; fills ``bare`` and ``flags``."""
    bare[:] = 0.0
    flags[:] = False
    for w in range(words.shape[1]):
        word = words[j, w]
        if word >= 0:
            for r in range(lex_start[word], lex_start[word + 1]):
                flags[lex_parent[r]] = True
                bare[lex_parent[r], w] += lex_prob[r] * scale[w]


@njit(cache=True, nogil=True)
def _spread(source, row_start, column, value, out):
    """``out = M^T source`` over the batch for a sparse matrix M by rows."""
    out[:] = 0.0
    for a in range(source.shape[0]):
        alive = False
        for w in range(source.shape[1]):
            if source[a, w] != 0.0:
                alive = True
                break
        if alive:
            for e in range(row_start[a], row_start[a + 1]):
                b = column[e]
                weight = value[e]
                for w in range(source.shape[1]):
                    out[b, w] += weight * source[a, w]


@njit(cache=True, nogil=True)
def _spread_owed(
    omega, owed, room, corner_start, corner_column, corner_value, chain_start, chain_column, chain_value, begun
):
    """Left-corner closure by tokens owed: entry ``[A, w owed + r]`` owes r tokens after the symbol, r below ``room``.

    From few to many tokens owed: chains of unary rules keep r, each left corner of a binary rule adds what its
    right sister yields. ``omega`` is used up, ``begun`` must be zero on entry.
    """
    for r in range(room):
        for a in range(omega.shape[0]):
            for at in range(r, omega.shape[1], owed):
                amount = omega[a, at]
                if amount != 0.0:
                    for e in range(chain_start[a], chain_start[a + 1]):
                        begun[chain_column[e], at] += chain_value[e] * amount
        for a in range(omega.shape[0]):
            for at in range(r, omega.shape[1], owed):
                amount = begun[a, at]
                if amount != 0.0:
                    for e in range(corner_start[a], corner_start[a + 1]):
                        c = corner_column[e]
                        for d in range(1, room - r):
                            omega[c, at + d] += corner_value[e, d] * amount


@njit(cache=True, nogil=True)
def causal(
    words,
    start,
    start_weight,
    high,
    allowed_low,
    corner_start,
    corner_column,
    corner_value,
    chain_start,
    chain_column,
    chain_value,
    closure_start,
    closure_column,
    closure_value,
    pair_left,
    pair_right,
    by_left,
    rule_start,
    parent,
    prob,
    lex_start,
    lex_parent,
    lex_prob,
):
    """Inside charts and conditional probabilities of a batch, left to right.

    Unconditioned: ``high = 0`` and ``chain_*`` are the rows of E, the left-corner closure. Conditioned on a length
    range: ``high`` is its upper end, ``allowed_low`` its lower end, ``start_weight = 1 / Z``,
    ``corner_value[e, d]`` the weight of left-corner step e (from the row's state A to C) with d tokens owed after
    C, and ``chain_*`` are the rows of U, the unary closure.

    Returns:
        inside (spans, S, W), scaled; listed (spans, S) and count (spans,), the states of each span that are not
        zero; conditional (n, W), P(word | its left context); stop (n+1, W), P(end | first j words);
        starts (n+1, S, W), the weight of each symbol starting after j words (all owed lengths allowed by the
        range summed), relative to the probability of the prefix.
    """
    n, width = words.shape
    n_states = by_left.size - 1
    n_pairs = pair_left.size
    n_spans = n * (n + 1) // 2
    owed = max(high, 1)
    inside = np.zeros((n_spans, n_states, width))
    present = np.zeros((n_spans, n_states), dtype=np.bool_)
    listed = np.zeros((n_spans, n_states), dtype=np.int32)
    count = np.zeros(n_spans, dtype=np.int32)
    acc = np.zeros((n_pairs, width))
    summed = np.zeros(n_pairs, dtype=np.bool_)
    touched = np.zeros(n_pairs, dtype=np.int32)
    bare = np.zeros((n_states, width))
    flags = np.zeros(n_states, dtype=np.bool_)
    scale = np.ones(width)
    conditional = np.zeros((n, width))
    stop = np.zeros((n + 1, width))
    starts = np.zeros((n + 1, n_states, width))
    omega = np.zeros((n_states, owed * width))
    begun = np.zeros((n_states, owed * width))
    # expect[i, p, w owed + r]: weight of child pair p starting at i with r tokens owed after it
    expect = np.zeros((n, n_pairs, owed * width))
    for w in range(width):
        omega[start, w * owed] = start_weight
    for j in range(n + 1):
        room = owed if high == 0 else max(high - j, 0)
        size = room if width == 1 else owed * width  # entries past the room are zero
        # symbols that can start after j words
        if high == 0:
            _spread(omega, chain_start, chain_column, chain_value, begun)
        else:
            _spread_owed(
                omega,
                owed,
                room,
                corner_start,
                corner_column,
                corner_value,
                chain_start,
                chain_column,
                chain_value,
                begun,
            )
        for r in range(room):
            if high == 0 or (j + 1 + r >= allowed_low and j + 1 + r <= high):
                for a in range(n_states):
                    for w in range(width):
                        starts[j, a, w] += begun[a, w * owed + r]
        if j == n:
            break
        for p in range(n_pairs):
            for r in range(rule_start[p], rule_start[p + 1]):
                a = parent[r]
                weight = prob[r]
                for w in range(size):
                    expect[j, p, w] += weight * begun[a, w]
        # the next word: its probability given the prefix, and its column of the chart
        for w in range(width):
            word = words[j, w]
            total = 0.0
            if word >= 0:
                for r in range(lex_start[word], lex_start[word + 1]):
                    total += starts[j, lex_parent[r], w] * lex_prob[r]
            conditional[j, w] = total
            scale[w] = 1.0 / total if total > 0.0 else 1.0
        for i in range(j, -1, -1):
            span = (j + 1) * j // 2 + i
            if i == j:
                _leaf(words, j, scale, lex_start, lex_parent, lex_prob, bare, flags)
            else:
                _span(
                    inside,
                    listed,
                    count,
                    present,
                    i,
                    j + 1,
                    by_left,
                    pair_right,
                    rule_start,
                    parent,
                    prob,
                    acc,
                    summed,
                    touched,
                    bare,
                    flags,
                )
            count[span] = _close(bare, closure_start, closure_column, closure_value, inside[span], flags, listed[span])
            for x in range(count[span]):
                present[span, listed[span, x]] = True
        whole = (j + 1) * j // 2
        if high == 0 or (allowed_low <= j + 1 <= high):
            for w in range(width):
                stop[j + 1, w] = start_weight * inside[whole, start, w]
        # weight of what can start after the next word
        omega[:] = 0.0
        begun[:] = 0.0
        room = 1 if high == 0 else max(high - j - 1, 0)
        for i in range(j + 1):
            span = (j + 1) * j // 2 + i
            for x in range(count[span]):
                b = listed[span, x]
                for p in range(by_left[b], by_left[b + 1]):
                    c = pair_right[p]
                    if owed == 1:
                        for w in range(width):
                            omega[c, w] += expect[i, p, w] * inside[span, b, w] * room
                    else:
                        for w in range(width):
                            weight = inside[span, b, w]
                            for at in range(w * owed, w * owed + room):
                                omega[c, at] += expect[i, p, at] * weight
    return inside, listed, count, conditional, stop, starts


@njit(cache=True, nogil=True)
def outside_leaves(
    inside,
    listed,
    count,
    n,
    start,
    closure_start,
    closure_column,
    closure_value,
    pair_left,
    pair_right,
    by_left,
    by_right_start,
    by_right,
    rule_start,
    parent,
    prob,
):
    """Outside weight of every preterminal position, unary chains above it included, (n, S, W).

    ``inside``, ``listed`` and ``count`` come from `causal`. States that cannot make the observed word have
    their outside weight too: the distribution over *all* words follows from it.
    """
    n_states = by_left.size - 1
    width = inside.shape[2]
    n_pairs = pair_left.size
    n_spans = n * (n + 1) // 2
    outside = np.zeros((n_spans, n_states, width))
    leaves = np.zeros((n, n_states, width))
    closed = np.zeros((n_states, width))
    flags = np.zeros(n_states, dtype=np.bool_)
    alive = np.zeros(n_pairs, dtype=np.bool_)
    demand = np.zeros((n_pairs, width))
    outside[n * (n - 1) // 2, start, :] = 1.0
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            span = j * (j - 1) // 2 + i
            closed[:] = 0.0
            flags[:] = False
            for a in range(n_states):
                any_weight = False
                for w in range(width):
                    if outside[span, a, w] != 0.0:
                        any_weight = True
                if any_weight:
                    for e in range(closure_start[a], closure_start[a + 1]):
                        b = closure_column[e]
                        flags[b] = True
                        for w in range(width):
                            closed[b, w] += closure_value[e] * outside[span, a, w]
            if length == 1:
                leaves[i] = closed
                continue
            for p in range(n_pairs):
                alive[p] = False
                for r in range(rule_start[p], rule_start[p + 1]):
                    a = parent[r]
                    if flags[a]:
                        if not alive[p]:
                            alive[p] = True
                            for w in range(width):
                                demand[p, w] = prob[r] * closed[a, w]
                        else:
                            for w in range(width):
                                demand[p, w] += prob[r] * closed[a, w]
            for k in range(i + 1, j):
                left = k * (k - 1) // 2 + i
                right = j * (j - 1) // 2 + k
                for x in range(count[right]):
                    c = listed[right, x]
                    for e in range(by_right_start[c], by_right_start[c + 1]):
                        p = by_right[e]
                        if alive[p]:
                            b = pair_left[p]
                            for w in range(width):
                                outside[left, b, w] += demand[p, w] * inside[right, c, w]
                for x in range(count[left]):
                    b = listed[left, x]
                    for p in range(by_left[b], by_left[b + 1]):
                        if alive[p]:
                            c = pair_right[p]
                            for w in range(width):
                                outside[right, c, w] += demand[p, w] * inside[left, b, w]
    return leaves


@njit(cache=True, nogil=True)
def viterbi(
    words,
    chain_start,
    chain_column,
    chain_logp,
    by_left,
    pair_right,
    rule_start,
    parent,
    logp,
    lex_start,
    lex_parent,
    lex_logp,
):
    """Most probable derivation of each symbol over each span of one sentence, log space.

    ``chain_*`` are the rows of the max-product unary closure. Returns best (spans, S); chain (spans, S), the
    state at the lower end of the best unary chain; rule (spans, S) and split (spans, S), the best rule of
    that state (as it stands *below* its chains) and its split point, -1 where lexical.
    """
    n = words.size
    n_states = by_left.size - 1
    n_spans = n * (n + 1) // 2
    n_pairs = pair_right.size
    best = np.full((n_spans, n_states), -np.inf)
    chain = np.full((n_spans, n_states), -1, dtype=np.int32)
    rule = np.full((n_spans, n_states), -1, dtype=np.int32)
    split = np.full((n_spans, n_states), -1, dtype=np.int32)
    pair_best = np.full(n_pairs, -np.inf)
    pair_split = np.zeros(n_pairs, dtype=np.int32)
    bare = np.empty(n_states)
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            span = j * (j - 1) // 2 + i
            bare[:] = -np.inf
            if i == j - 1:
                word = words[i]
                if word >= 0:
                    for r in range(lex_start[word], lex_start[word + 1]):
                        bare[lex_parent[r]] = lex_logp[r]
                        rule[span, lex_parent[r]] = r
            else:
                pair_best[:] = -np.inf
                for k in range(i + 1, j):
                    left = k * (k - 1) // 2 + i
                    right = j * (j - 1) // 2 + k
                    for b in range(n_states):
                        if best[left, b] > -np.inf:
                            for p in range(by_left[b], by_left[b + 1]):
                                value = best[left, b] + best[right, pair_right[p]]
                                if value > pair_best[p]:
                                    pair_best[p] = value
                                    pair_split[p] = k
                for p in range(n_pairs):
                    if pair_best[p] > -np.inf:
                        for r in range(rule_start[p], rule_start[p + 1]):
                            value = pair_best[p] + logp[r]
                            if value > bare[parent[r]]:
                                bare[parent[r]] = value
                                rule[span, parent[r]] = r
                                split[span, parent[r]] = pair_split[p]
            for a in range(n_states):
                for e in range(chain_start[a], chain_start[a + 1]):
                    value = bare[chain_column[e]] + chain_logp[e]
                    if value > best[span, a]:
                        best[span, a] = value
                        chain[span, a] = chain_column[e]
    return best, chain, rule, split
