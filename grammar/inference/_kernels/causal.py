"""Kernels: inside and prefix probabilities of sentences of one length, left to right, and outside weights of words.

The last axis of an array is the batch (width W), so that every rule is one vector multiply-add. Span ``(i, j)`` has
number ``j (j-1) / 2 + i``. Each word's column is scaled by the inverse of its conditional probability given its left
context, so that charts stay near 1 at any sentence length. Entries are capped, since entries of symbols that cannot
start would overflow in long sentences; `grammar.inference.certificate` checks whether a cap, or an underflow, may have
changed a result. All arrays of weights have one type, float64 or float32.

The two passes differ in the state after a word: `free` keeps the symbols that can start, `conditioned` on a range of
lengths also the number of tokens owed after each.
"""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import CausalPass, ChartRules, LexicalRules, PairRules, RuleGroups, SparseRows


@kernel(fastmath={"contract"})
def _close(bare, closure: SparseRows, out, flags, present, cap):
    """Compute ``out = U bare`` over the batch; mark the states that are not zero."""
    row_start, column, value = closure
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


@kernel(fastmath={"contract"})
def _span(inside, present, i, j, pairs: PairRules, acc, splits, bare, flags):
    """Sum all splits of span (i, j) per child pair, then apply the rules of each; fill ``bare`` and ``flags``."""
    _, pair_right, by_left, rule_start, parent, prob = pairs
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


@kernel
def _mark(closed, present, begun, cap, capped, lost):
    """Mark the sentences with an entry of ``closed`` (S, W) at the cap; in ``lost`` if its symbol can start."""
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


@kernel
def _leaf(words, j, scale, lexicon: LexicalRules, bare, flags):
    """Fill ``bare`` and ``flags`` with preterminals over word j (0-based) of each sentence, scaled."""
    start, parent, prob = lexicon
    bare[:] = 0.0
    flags[:] = False
    for w in range(words.shape[1]):
        word = words[j, w]
        if word >= 0:
            for r in range(start[word], start[word + 1]):
                flags[parent[r]] = True
                bare[parent[r], w] += prob[r] * scale[w]


@kernel
def _any(row):
    for x in row:  # noqa: SIM110 (numba has no generators)
        if x != 0.0:
            return True
    return False


@kernel(fastmath={"contract"})
def _spread(source, r, chains: SparseRows, out):
    """Add ``M^T source[:, r]`` to ``out[:, r]`` for a sparse matrix M by rows; both are (S, owed, W)."""
    row_start, column, value = chains
    for a in range(source.shape[0]):
        if _any(source[a, r]):
            for e in range(row_start[a], row_start[a + 1]):
                b = column[e]
                weight = value[e]
                for w in range(source.shape[2]):
                    out[b, r, w] += weight * source[a, r, w]


@kernel(fastmath={"contract"})
def _owe(source, alive, low, high, first, last, corners: SparseRows, target):
    """Add left corners that leave tokens owed: rows low..high-1 of ``source`` to rows first..last-1 of ``target``.

    ``target[C, r] += corner[A -> C, r - s] source[A, s]``; both are (S, owed, W). Most right sisters yield only one
    token, or few.
    """
    corner_start, corner_row, corner_value = corners
    for c in range(target.shape[0]):
        for e in range(corner_start[c], corner_start[c + 1]):
            a = corner_row[e]
            if not alive[a]:
                continue
            for s in range(low, high):
                for r in range(first, last):
                    weight = corner_value[e, r - s]
                    if weight != 0.0:
                        for w in range(source.shape[2]):
                            target[c, r, w] += weight * source[a, s, w]


@kernel
def _spread_owed(omega, room, block, corners: SparseRows, chains: SparseRows, alive, out):
    """Apply the left-corner closure by tokens owed: entry ``[A, r, w]`` owes r < ``room`` tokens after the symbol.

    From few to many tokens owed: chains of unary rules keep r, each left corner of a binary rule adds the yield of its
    right sister. Contributions from before the current block of rows are added for the whole block at once. ``omega``
    is used up; ``out`` and ``alive`` must be zero on entry.
    """
    for first in range(0, room, block):
        last = min(first + block, room)
        _owe(out, alive, 0, first, first, last, corners, omega)
        for r in range(first, last):
            if r > first:
                _owe(out, alive, first, r, r, r + 1, corners, omega)
            _spread(omega, r, chains, out)
            for a in range(out.shape[0]):
                alive[a] = alive[a] or _any(out[a, r])


@kernel(fastmath={"contract"})
def _advance(begun, alive, inside, present, j, room, block, groups: RuleGroups, acc, omega):
    """Compute what can start after word j: ``omega[c] += p begun[i, A] B(i, j)[b]`` over i and rules A -> b c.

    Per parent and left child, all starts i are summed before the rules are applied; ``block`` rows of tokens owed at a
    time, so that the sums stay in the cache.
    """
    group_start, left_of, rule_start, right, prob = groups
    for first in range(0, room, block):
        last = min(first + block, room)
        for a in range(group_start.size - 1):
            if not alive[:j, a].any():
                continue
            for g in range(group_start[a], group_start[a + 1]):
                b = left_of[g]
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


@kernel
def _blank(n, width, owed, rules: ChartRules):
    """Return the arrays of a pass, all zero except the scales, which are one."""
    n_states, n_spans = rules.pairs.by_left.size - 1, n * (n + 1) // 2
    dtype = rules.lexicon.prob.dtype
    return CausalPass(
        np.zeros((n_spans, n_states, width), dtype=dtype),
        np.zeros((n_spans, n_states), dtype=np.bool_),
        np.zeros((n, width)),
        np.zeros((n + 1, width)),
        np.zeros((n + 1, n_states, width), dtype=dtype),
        np.ones((n, width)),
        np.zeros((n + 1, width)),
        np.zeros((2, width), dtype=np.bool_),
        np.zeros((n + 1, n_states, owed, width), dtype=dtype),
    )


@kernel
def _read(words, j, start, weight, counted, cap, rules: ChartRules, run: CausalPass, dead, acc):
    """Process the next word: its probability given the prefix, and its column of the chart.

    ``weight`` is the factor from the root entry of the chart to ``stop``; only ``counted`` sentences may end after the
    word.
    """
    inside, present = run.inside, run.present
    lex_start, lex_parent, lex_prob = rules.lexicon
    n_states, width = inside.shape[1], inside.shape[2]
    scale = run.scales[j]
    for w in range(width):
        word = words[j, w]
        total = 0.0
        if word >= 0:
            for r in range(lex_start[word], lex_start[word + 1]):
                total += run.starts[j, lex_parent[r], w] * lex_prob[r]
        if not dead[w]:
            run.conditional[j, w] = total
        scale[w] = 1.0 / total if total > 0.0 else 1.0
    bare, flags = np.empty((n_states, width), dtype=inside.dtype), np.empty(n_states, dtype=np.bool_)
    splits = np.empty(j + 1, dtype=np.int64)
    for i in range(j, -1, -1):
        span = (j + 1) * j // 2 + i
        if i == j:
            _leaf(words, j, scale, rules.lexicon, bare, flags)
        else:
            _span(inside, present, i, j + 1, rules.pairs, acc, splits, bare, flags)
        _close(bare, rules.closure, inside[span], flags, present[span], cap)
        _mark(inside[span], present[span], run.begun[i], cap, run.capped[0], run.capped[1])
    if counted:
        whole = (j + 1) * j // 2
        for w in range(width):
            run.stop[j + 1, w] = weight * inside[whole, start, w]


@kernel
def _bury(run: CausalPass, j, dead):
    """Let nothing start after an impossible word; ``dead`` (W,) are the sentences that have had one."""
    for w in range(dead.size):
        if dead[w]:
            run.starts[j, :, w] = 0.0


@kernel
def free(words, start, cap, corners: SparseRows, rules: ChartRules):
    """Return a pass over ``words`` (n, W), -1 unknown, for sentences of any length.

    Columns after an impossible word are scaled as if any symbol could start there. ``corners`` are the rows of the
    left-corner closure.
    """
    n, width = words.shape
    result = _blank(n, width, 1, rules)
    starts, totals, begun = result.starts, result.totals, result.begun
    n_states = starts.shape[1]
    acc = np.zeros((1, width), dtype=starts.dtype)
    omega = np.zeros((n_states, 1, width), dtype=starts.dtype)
    alive = np.zeros((n + 1, n_states), dtype=np.bool_)
    dead = np.zeros(width, dtype=np.bool_)
    omega[start, 0] = 1.0
    for j in range(n + 1):
        _spread(omega, 0, corners, begun[j])
        for a in range(n_states):
            alive[j, a] = _any(begun[j, a, 0])
            for w in range(width):
                totals[j, w] += begun[j, a, 0, w]
                starts[j, a, w] = begun[j, a, 0, w]
        if j == n:
            break
        _read(words, j, start, 1.0, True, cap, rules, result, dead, acc[0])
        omega[:] = 0.0
        _advance(begun, alive, result.inside, result.present, j + 1, 1, 1, rules.groups, acc, omega)
        _bury(result, j, dead)
        for w in range(width):
            if result.conditional[j, w] == 0.0:
                dead[w] = True
                if not _any(omega[:, 0, w]):
                    omega[:, 0, w] = 1.0
    _bury(result, n, dead)
    return result


@kernel
def conditioned(words, start, low, high, weight, cap, block, corners: SparseRows, rules: ChartRules):
    """Return a pass over ``words`` (n, W), -1 unknown, given a length from ``low`` to ``high``.

    ``weight = 1 / Z``; ``corners.value[e, d]`` is the weight of left-corner step e (to its own state C from
    ``corners.column[e]``) with d tokens owed after C. ``block`` counts of tokens owed are processed together.
    """
    n, width = words.shape
    result = _blank(n, width, high, rules)
    starts, totals, begun = result.starts, result.totals, result.begun
    n_states = starts.shape[1]
    acc = np.zeros((min(block, high), width), dtype=starts.dtype)
    omega = np.zeros((n_states, high, width), dtype=starts.dtype)
    alive = np.zeros((n + 1, n_states), dtype=np.bool_)
    dead = np.zeros(width, dtype=np.bool_)
    omega[start, 0] = weight
    for j in range(n + 1):
        room = max(high - j, 0)
        _spread_owed(omega, room, block, corners, rules.closure, alive[j], begun[j])
        for a in range(n_states):
            for r in range(room):
                for w in range(width):
                    totals[j, w] += begun[j, a, r, w]
                if low <= j + 1 + r:
                    for w in range(width):
                        starts[j, a, w] += begun[j, a, r, w]
        if j == n:
            break
        _read(words, j, start, weight, low <= j + 1 <= high, cap, rules, result, dead, acc[0])
        omega[:] = 0.0
        _advance(begun, alive, result.inside, result.present, j + 1, max(room - 1, 0), block, rules.groups, acc, omega)
        _bury(result, j, dead)
        for w in range(width):
            dead[w] |= result.conditional[j, w] == 0.0
    _bury(result, n, dead)
    return result


@kernel(fastmath={"contract"})
def outside_leaves(inside, present, n, start, cap, closure: SparseRows, pairs: PairRules):
    """Return the outside weight of every preterminal position, unary chains above it included, (n, S, W).

    ``inside`` (spans, S, W) and ``present`` (spans, S) come from a pass of `causal`. States that cannot derive the
    observed word also have their outside weight, so the distribution over *all* words follows from it. Weights are
    scaled as the inside chart is, and capped at ``cap``; also return which sentences had a capped weight, (W,).
    """
    closure_start, closure_column, closure_value = closure
    _, pair_right, by_left, rule_start, parent, prob = pairs
    n_states = by_left.size - 1
    width = inside.shape[2]
    n_spans = n * (n + 1) // 2
    outside = np.zeros((n_spans, n_states, width), dtype=inside.dtype)
    leaves = np.zeros((n, n_states, width), dtype=inside.dtype)
    closed = np.zeros((n_states, width), dtype=inside.dtype)
    demand = np.zeros(width, dtype=inside.dtype)
    capped = np.zeros(width, dtype=np.bool_)
    flags = np.zeros(n_states, dtype=np.bool_)
    outside[n * (n - 1) // 2, start, :] = 1.0
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            span = j * (j - 1) // 2 + i
            closed[:] = 0.0
            flags[:] = False
            for a in range(n_states):
                weighty = False
                for w in range(width):
                    if outside[span, a, w] != 0.0:
                        weighty = True
                        break
                if weighty:
                    for e in range(closure_start[a], closure_start[a + 1]):
                        b = closure_column[e]
                        weight = closure_value[e]
                        flags[b] = True
                        for w in range(width):
                            closed[b, w] += weight * outside[span, a, w]
            for a in range(n_states):
                if flags[a]:
                    high = False
                    for w in range(width):
                        high |= not closed[a, w] < cap
                        closed[a, w] = min(closed[a, w], cap)
                    if high:
                        for w in range(width):
                            capped[w] |= not closed[a, w] < cap
            if length == 1:
                for a in range(n_states):
                    for w in range(width):
                        leaves[i, a, w] = closed[a, w]
                continue
            for b in range(n_states):
                for p in range(by_left[b], by_left[b + 1]):
                    c = pair_right[p]
                    begun = False
                    for r in range(rule_start[p], rule_start[p + 1]):
                        a = parent[r]
                        if not flags[a]:
                            continue
                        weight = prob[r]
                        if begun:
                            for w in range(width):
                                demand[w] += weight * closed[a, w]
                        else:
                            begun = True
                            for w in range(width):
                                demand[w] = weight * closed[a, w]
                    if not begun:
                        continue
                    for k in range(i + 1, j):
                        left = k * (k - 1) // 2 + i
                        right = j * (j - 1) // 2 + k
                        if present[right, c]:
                            for w in range(width):
                                outside[left, b, w] += demand[w] * inside[right, c, w]
                        if present[left, b]:
                            for w in range(width):
                                outside[right, c, w] += demand[w] * inside[left, b, w]
    return leaves, capped
