"""Kernels: inside and prefix probabilities of a batch of sentences of one length, left to right.

Arrays end in the batch axis (width W), so that every rule is one vector multiply-add. Span ``(i, j)`` has
number ``j (j-1) / 2 + i``. Each word's column is scaled by the inverse of its conditional probability given
its left context, so that charts stay near 1 at any sentence length. Entries are capped, as those of symbols that
cannot start would overflow in long sentences; `grammar.inference.certificate` says when a cap, or an underflow, may
have cost something that matters. All arrays of weights have one type, float64 or float32.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath={"contract"})
def _close(bare, row_start, column, value, out, flags, present, cap):
    """``out = U bare`` over the batch; marks the states that are not zero."""
    for a in range(bare.shape[0]):
        alive = False
        for e in range(row_start[a], row_start[a + 1]):
            b = column[e]
            if flags[b]:
                weight = value[e]
                alive = True
                for w in range(bare.shape[1]):
                    out[a, w] += weight * bare[b, w]
        if alive:
            present[a] = True
            for w in range(bare.shape[1]):
                out[a, w] = min(out[a, w], cap)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _span(inside, present, i, j, by_left, pair_right, rule_start, parent, prob, acc, splits, bare, flags):
    """Per child pair, sum all splits of span (i, j), then apply its rules; fills ``bare`` and ``flags``."""
    width = bare.shape[1]
    bare[:] = 0.0
    flags[:] = False
    for b in range(by_left.size - 1):
        n_splits = 0
        for k in range(i + 1, j):
            if present[k * (k - 1) // 2 + i, b]:
                splits[n_splits] = k
                n_splits += 1
        if n_splits == 0:
            continue
        for p in range(by_left[b], by_left[b + 1]):
            c = pair_right[p]
            begun = False
            for x in range(n_splits):
                left = splits[x] * (splits[x] - 1) // 2 + i
                right = j * (j - 1) // 2 + splits[x]
                if not present[right, c]:
                    continue
                if begun:
                    for w in range(width):
                        acc[w] += inside[left, b, w] * inside[right, c, w]
                else:
                    begun = True
                    for w in range(width):
                        acc[w] = inside[left, b, w] * inside[right, c, w]
            if begun:
                for r in range(rule_start[p], rule_start[p + 1]):
                    a = parent[r]
                    weight = prob[r]
                    flags[a] = True
                    for w in range(width):
                        bare[a, w] += weight * acc[w]


@njit(cache=True, nogil=True)
def _mark(closed, present, begun, cap, capped, lost):
    """Marks the sentences with an entry of ``closed`` (S, W) at the cap, in ``lost`` where its symbol can start."""
    for a in range(closed.shape[0]):
        if present[a]:
            high = False
            for w in range(closed.shape[1]):
                high |= not closed[a, w] < cap
            if high:
                for w in range(closed.shape[1]):
                    if not closed[a, w] < cap:
                        capped[w] = True
                        lost[w] |= _any(begun[a, :, w])


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
def _any(row):
    for x in row:  # noqa: SIM110 (numba has no generators)
        if x != 0.0:
            return True
    return False


@njit(cache=True, nogil=True, fastmath={"contract"})
def _spread(source, r, row_start, column, value, out):
    """``out[:, r] += M^T source[:, r]`` over the batch for a sparse matrix M by rows; both are (S, owed, W)."""
    for a in range(source.shape[0]):
        if _any(source[a, r]):
            for e in range(row_start[a], row_start[a + 1]):
                b = column[e]
                weight = value[e]
                for w in range(source.shape[2]):
                    out[b, r, w] += weight * source[a, r, w]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _owe(source, alive, low, high, first, last, corner_start, corner_row, corner_value, target):
    """Left corners that leave tokens owed: rows low..high-1 of ``source`` add to rows first..last-1 of ``target``.

    ``target[C, r] += corner[A -> C, r - s] source[A, s]``; both are (S, owed, W).
    """
    for c in range(target.shape[0]):
        for e in range(corner_start[c], corner_start[c + 1]):
            a = corner_row[e]
            if not alive[a]:
                continue
            for s in range(low, high):
                for r in range(first, last):
                    weight = corner_value[e, r - s]
                    for w in range(source.shape[2]):
                        target[c, r, w] += weight * source[a, s, w]


@njit(cache=True, nogil=True)
def _spread_owed(
    omega,
    room,
    block,
    corner_start,
    corner_row,
    corner_value,
    chain_start,
    chain_column,
    chain_value,
    alive,
    out,
):
    """Left-corner closure by tokens owed: entry ``[A, r, w]`` owes r tokens after the symbol, r below ``room``.

    From few to many tokens owed: chains of unary rules keep r, each left corner of a binary rule adds what its
    right sister yields. What lies further back than the running block of rows is added for the whole block at
    once. ``omega`` is used up; ``out`` and ``alive`` must be zero on entry.
    """
    for first in range(0, room, block):
        last = min(first + block, room)
        _owe(out, alive, 0, first, first, last, corner_start, corner_row, corner_value, omega)
        for r in range(first, last):
            if r > first:
                _owe(out, alive, first, r, r, r + 1, corner_start, corner_row, corner_value, omega)
            _spread(omega, r, chain_start, chain_column, chain_value, out)
            for a in range(out.shape[0]):
                alive[a] = alive[a] or _any(out[a, r])


@njit(cache=True, nogil=True, fastmath={"contract"})
def _advance(
    begun,
    alive,
    inside,
    present,
    j,
    room,
    block,
    group_start,
    left,
    rule_start,
    right,
    prob,
    acc,
    omega,
):
    """Weight of what can start after word j: ``omega[c] += p begun[i, A] B(i, j)[b]`` over i and rules A -> b c.

    Per parent and left child, all starts i are summed before the rules are applied; ``block`` rows of tokens
    owed at a time, so that what is added to stays in the cache.
    """
    for first in range(0, room, block):
        last = min(first + block, room)
        for a in range(group_start.size - 1):
            if not alive[:j, a].any():
                continue
            for g in range(group_start[a], group_start[a + 1]):
                b = left[g]
                met = False
                for i in range(j):
                    span = j * (j - 1) // 2 + i
                    if not (alive[i, a] and present[span, b]):
                        continue
                    if not met:
                        met = True
                        acc[:block] = 0.0
                    for r in range(first, last):
                        for w in range(acc.shape[1]):
                            acc[r - first, w] += begun[i, a, r, w] * inside[span, b, w]
                if met:
                    for e in range(rule_start[g], rule_start[g + 1]):
                        weight = prob[e]
                        c = right[e]
                        for r in range(first, last):
                            for w in range(acc.shape[1]):
                                omega[c, r, w] += weight * acc[r - first, w]


@njit(cache=True, nogil=True)
def causal(
    words,
    start,
    start_weight,
    high,
    low,
    cap,
    restart,
    block,
    corner_start,
    corner_row,
    corner_value,
    chain_start,
    chain_column,
    chain_value,
    closure_start,
    closure_column,
    closure_value,
    by_left,
    pair_right,
    pair_rule_start,
    parent,
    pair_prob,
    group_start,
    left,
    group_rule_start,
    right,
    group_prob,
    lex_start,
    lex_parent,
    lex_prob,
):
    """Inside charts and conditional probabilities of a batch.

    Unconditioned: ``high = 0`` and ``chain_*`` are the rows of E, the left-corner closure. Conditioned on a length
    range: ``high`` is its upper end, ``low`` its lower end, ``start_weight = 1 / Z``, ``corner_value[e, d]`` the
    weight of left-corner step e (to its own state C from ``corner_row[e]``) with d tokens owed after C, ``chain_*``
    the rows of U, the unary closure, and ``block`` how many counts of tokens owed are worked on together.
    ``pair_*`` are the binary rules by child pair, ``group_*`` by parent and left child. With ``restart``, an
    impossible word is followed by columns scaled as if any symbol could start there.

    Returns:
        inside (spans, S, W), scaled; present (spans, S), the states of each span that are not zero;
        conditional (n, W), P(word | its left context); stop (n+1, W), P(end | first j words);
        starts (n+1, S, W), the weight of each symbol starting after j words (all owed lengths allowed by the
        range summed), relative to the probability of the prefix; scales (n, W), what each column is multiplied by;
        totals (n+1, W), the sum of all weights of symbols starting after j words; capped (2, W), whether any entry
        was capped, and whether one whose symbol can start there was; begun (n+1, S, owed, W), the weight of each
        symbol starting after j words by tokens owed after it.
    """
    n, width = words.shape
    n_states = by_left.size - 1
    n_spans = n * (n + 1) // 2
    owed = max(high, 1)
    inside = np.zeros((n_spans, n_states, width), dtype=lex_prob.dtype)
    present = np.zeros((n_spans, n_states), dtype=np.bool_)
    acc = np.zeros((min(block, owed), width), dtype=lex_prob.dtype)
    splits = np.zeros(n + 1, dtype=np.int64)
    bare = np.zeros((n_states, width), dtype=lex_prob.dtype)
    flags = np.zeros(n_states, dtype=np.bool_)
    scale = np.ones(width)
    scales = np.ones((n, width))
    totals = np.zeros((n + 1, width))
    capped = np.zeros((2, width), dtype=np.bool_)
    conditional = np.zeros((n, width))
    stop = np.zeros((n + 1, width))
    starts = np.zeros((n + 1, n_states, width), dtype=lex_prob.dtype)
    omega = np.zeros((n_states, owed, width), dtype=lex_prob.dtype)
    # begun[i, A, r, w]: weight of A starting at i with r tokens owed after it
    begun = np.zeros((n + 1, n_states, owed, width), dtype=lex_prob.dtype)
    alive = np.zeros((n + 1, n_states), dtype=np.bool_)
    dead = np.zeros(width, dtype=np.bool_)  # a word of the sentence was impossible
    omega[start, 0] = start_weight
    for j in range(n + 1):
        room = 1 if high == 0 else max(high - j, 0)
        if high == 0:
            _spread(omega, 0, chain_start, chain_column, chain_value, begun[j])
        else:
            _spread_owed(
                omega,
                room,
                block,
                corner_start,
                corner_row,
                corner_value,
                chain_start,
                chain_column,
                chain_value,
                alive[j],
                begun[j],
            )
        for a in range(n_states):
            alive[j, a] = alive[j, a] or _any(begun[j, a, 0])
            for r in range(room):
                for w in range(width):
                    totals[j, w] += begun[j, a, r, w]
                if high == 0 or low <= j + 1 + r <= high:
                    for w in range(width):
                        starts[j, a, w] += begun[j, a, r, w]
        if j == n:
            break
        # the next word: its probability given the prefix, and its column of the chart
        for w in range(width):
            word = words[j, w]
            total = 0.0
            if word >= 0:
                for r in range(lex_start[word], lex_start[word + 1]):
                    total += starts[j, lex_parent[r], w] * lex_prob[r]
            if not dead[w]:
                conditional[j, w] = total
            scale[w] = 1.0 / total if total > 0.0 else 1.0
            scales[j, w] = scale[w]
        for i in range(j, -1, -1):
            span = (j + 1) * j // 2 + i
            if i == j:
                _leaf(words, j, scale, lex_start, lex_parent, lex_prob, bare, flags)
            else:
                _span(
                    inside,
                    present,
                    i,
                    j + 1,
                    by_left,
                    pair_right,
                    pair_rule_start,
                    parent,
                    pair_prob,
                    acc[0],
                    splits,
                    bare,
                    flags,
                )
            _close(bare, closure_start, closure_column, closure_value, inside[span], flags, present[span], cap)
            _mark(inside[span], present[span], begun[i], cap, capped[0], capped[1])
        whole = (j + 1) * j // 2
        if high == 0 or low <= j + 1 <= high:
            for w in range(width):
                stop[j + 1, w] = start_weight * inside[whole, start, w]
        omega[:] = 0.0
        _advance(
            begun,
            alive,
            inside,
            present,
            j + 1,
            1 if high == 0 else max(high - j - 1, 0),
            block,
            group_start,
            left,
            group_rule_start,
            right,
            group_prob,
            acc,
            omega,
        )
        for w in range(width):
            if dead[w]:
                starts[j, :, w] = 0.0
            if conditional[j, w] == 0.0:
                dead[w] = True
                if restart and not _any(omega[:, 0, w]):
                    omega[:, 0, w] = 1.0
    for w in range(width):
        if dead[w]:
            starts[n, :, w] = 0.0
    return inside, present, conditional, stop, starts, scales, totals, capped, begun
