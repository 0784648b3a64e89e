"""Kernels: forward-backward and the best path through the automaton of a linear grammar, in linear time.

A forward vector holds the weight of the words read so far by the state after them, a backward vector the weight of the
remaining words by the state before them. Vectors are sparse with weights ``m * 2^(960 e)``, as in
`grammar.inference._kernels.wide`: nothing under- or overflows, at any length.
"""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar._kernels.kernel import kernel, room
from truesource.grammar._kernels.rules import (
    ChildRules,
    LexicalRules,
    LinearAutomaton,
    SparseRows,
    StateMoves,
    WideLexicon,
    WideRows,
    WideTable,
    WideVector,
)
from truesource.grammar.inference._kernels.wide import _plus, _times

LOG_UNIT = 960.0 * math.log(2.0)
SMALLEST = 1e-290  #: entries below this share of the largest of their position need logarithms


@kernel
def _vector(size):
    return WideVector(
        np.zeros(size), np.zeros(size, dtype=np.int64), np.empty(size, dtype=np.int32), np.zeros(1, dtype=np.int64)
    )


@kernel
def _clear(v: WideVector):
    for x in range(v.size[0]):
        v.m[v.listed[x]] = 0.0
    v.size[0] = 0


@kernel
def _add(v: WideVector, at, m, e):
    if v.m[at] != 0.0:
        v.m[at], v.e[at] = _plus(v.m[at], v.e[at], m, e)
    elif m != 0.0:
        v.listed[v.size[0]] = at
        v.size[0] += 1
        v.m[at], v.e[at] = m, e


@kernel
def _dot(v: WideVector, m, e):
    """Return the dot product with a dense vector of weights."""
    summ, sume = 0.0, np.int64(0)
    for x in range(v.size[0]):
        q = v.listed[x]
        if m[q] != 0.0:
            tm, te = _times(v.m[q], v.e[q], m[q], e[q])
            summ, sume = _plus(summ, sume, tm, te)
    return summ, sume


@kernel
def _log_ratio(m1, e1, m2, e2):
    """Return the natural logarithm of the ratio of two positive weights."""
    ratio, d = m1 / m2, e1 - e2
    if d == 1 and ratio < 1.0:
        ratio, d = math.ldexp(ratio, 960), 0
    elif d == -1 and ratio > 1.0:
        ratio, d = math.ldexp(ratio, -960), 0
    return math.log(ratio) + d * LOG_UNIT


@kernel
def _ratio(m1, e1, m2, e2):
    """Return the ratio of two weights as a float."""
    d = min(max(e1 - e2, -3), 3)
    return math.ldexp(m1 / m2, 960 * d)


@kernel
def _spread(v: WideVector, chains: WideRows, out: WideVector):
    """Compute ``out = v M`` for a sparse matrix M by rows."""
    row_start, column, m, e = chains
    _clear(out)
    for x in range(v.size[0]):
        q = v.listed[x]
        for k in range(row_start[q], row_start[q + 1]):
            tm, te = _times(v.m[q], v.e[q], m[k], e[k])
            _add(out, column[k], tm, te)


@kernel
def _tags(word, lexicon: WideLexicon, above: WideRows, tags: WideVector):
    """Compute the weight of each tag for ``word``; no tag for -1."""
    _clear(tags)
    if word < 0:
        return
    symbols = tags.m.size // 2
    for r in range(lexicon.start[word], lexicon.start[word + 1]):
        a = lexicon.parent[r]
        _add(tags, symbols + a, lexicon.m[r], lexicon.e[r])
        for k in range(above.start[a], above.start[a + 1]):
            tm, te = _times(above.m[k], above.e[k], lexicon.m[r], lexicon.e[r])
            _add(tags, above.column[k], tm, te)


@kernel
def _pass(v: WideVector, moves: StateMoves, near, nearm, neare, far, out: WideVector):
    """Sum the moves from the states of ``v`` by their ``far`` end, each weighted at its ``near`` end."""
    _clear(out)
    for x in range(v.size[0]):
        q = v.listed[x]
        for s in range(moves.start[q], moves.start[q + 1]):
            t = near[s]
            if nearm[t] != 0.0:
                tm, te = _times(moves.m[s], moves.e[s], nearm[t], neare[t])
                tm, te = _times(tm, te, v.m[q], v.e[q])
                _add(out, far[s], tm, te)


@kernel
def _move(v: WideVector, moves: StateMoves, tagm, tage, out: WideVector):
    """Read one token from the states of ``v``, with the weights of its tags; chains are not applied."""
    _pass(v, moves, moves.tag, tagm, tage, moves.to, out)


@kernel
def _between(v: WideVector, moves: StateMoves, laterm, latere, tags: WideVector):
    """Compute the weight of each tag between the vectors before (``v``) and after (``later``), for any token."""
    _pass(v, moves, moves.to, laterm, latere, moves.tag, tags)


@kernel
def _symbols(tags: WideVector, below: WideRows, out: WideVector):
    """Compute the weight of each symbol over the token, at the lower ends of the tags' unary chains."""
    symbols = tags.m.size // 2
    _clear(out)
    for x in range(tags.size[0]):
        t = tags.listed[x]
        if t >= symbols:
            _add(out, t - symbols, tags.m[t], tags.e[t])
        else:
            for k in range(below.start[t], below.start[t + 1]):
                tm, te = _times(tags.m[t], tags.e[t], below.m[k], below.e[k])
                _add(out, below.column[k], tm, te)


@kernel
def futures(low, high, anym, anye, automaton: LinearAutomaton):
    """Return the weight of all paths to a length from ``low`` to ``high`` by state after j tokens, (high+1, N).

    Chains are included. ``any`` (2S,) are the weights of the tags for any word.
    """
    back = automaton.back
    size = back.start.size - 1
    result = WideTable(np.zeros((high + 1, size)), np.zeros((high + 1, size), dtype=np.int64))
    bare, closed = _vector(size), _vector(size)
    for j in range(high, -1, -1):
        _move(closed, back, anym, anye, bare)
        if j >= low:
            _add(bare, automaton.end, 1.0, np.int64(0))
        _spread(bare, back.chains, closed)
        for x in range(closed.size[0]):
            q = closed.listed[x]
            result.m[j, q], result.e[j, q] = closed.m[q], closed.e[q]
    return result


@kernel
def causal(words, low, high, first, future: WideTable, lexicon: WideLexicon, automaton: LinearAutomaton):
    """Make a pass over ``words`` (n, W), -1 unknown, each sentence by itself.

    ``future`` is the result of `futures`, or one row of weights for any number of tokens; sentences of ``low`` to
    ``high`` tokens may end.

    Returns:
        Ln P(word | its left context) (n, W), ln P(end | first j words) (n+1, W), both -inf from an impossible word on,
        and the weight of each symbol starting after j words, given these, for j from ``first`` on, (n+1-first, S, W).
    """
    n, width = words.shape
    ahead = automaton.ahead
    size = ahead.start.size - 1
    rows = future.m.shape[0]
    log_conditional, log_stop = np.full((n, width), -np.inf), np.full((n + 1, width), -np.inf)
    starts = np.zeros((max(n + 1 - first, 0), size - 1, width))
    bare, closed, symbols = _vector(size), _vector(size), _vector(size - 1)
    reads, between = _vector(2 * (size - 1)), _vector(2 * (size - 1))
    for w in range(width):
        _clear(bare)
        _add(bare, automaton.begin, 1.0, np.int64(0))
        _spread(bare, ahead.chains, closed)
        beforem, beforee = 1.0, np.int64(0)
        if rows > 1:
            beforem, beforee = future.m[0, automaton.begin], future.e[0, automaton.begin]
        for j in range(n + 1):
            later = 0 if rows == 1 else j + 1
            if later == rows or beforem == 0.0:
                break
            if j >= first:
                _between(closed, ahead, future.m[later], future.e[later], between)
                _symbols(between, automaton.below, symbols)
                for x in range(symbols.size[0]):
                    a = symbols.listed[x]
                    starts[j - first, a, w] = _ratio(symbols.m[a], symbols.e[a], beforem, beforee)
            if j == n:
                break
            _tags(words[j, w], lexicon, automaton.above, reads)
            _move(closed, ahead, reads.m, reads.e, bare)
            _spread(bare, ahead.chains, closed)
            m, e = _dot(bare, future.m[later], future.e[later])
            if m == 0.0:
                break
            log_conditional[j, w] = _log_ratio(m, e, beforem, beforee)
            beforem, beforee = m, e
            if low <= j + 1 <= high and closed.m[automaton.end] != 0.0:
                log_stop[j + 1, w] = _log_ratio(closed.m[automaton.end], closed.e[automaton.end], m, e)
    return log_conditional, log_stop, starts


@kernel
def _forward(
    words, lexicon: WideLexicon, automaton: LinearAutomaton, reads: WideVector, bare: WideVector, v: WideVector
):
    """Return the forward vectors of one sentence: bounds (n+2,), and the states and weights of each vector in turn.

    ``v`` ends as the vector after the last word.
    """
    n = words.size
    bounds = np.zeros(n + 2, dtype=np.int64)
    state, m, e = np.empty(64, dtype=np.int32), np.empty(64), np.empty(64, dtype=np.int64)
    _clear(bare)
    _add(bare, automaton.begin, 1.0, np.int64(0))
    for j in range(n + 1):
        if j > 0:
            _tags(words[j - 1], lexicon, automaton.above, reads)
            _move(v, automaton.ahead, reads.m, reads.e, bare)
        _spread(bare, automaton.ahead.chains, v)
        at = bounds[j]
        bounds[j + 1] = at + v.size[0]
        state, m, e = room(state, bounds[j + 1]), room(m, bounds[j + 1]), room(e, bounds[j + 1])
        for x in range(v.size[0]):
            q = v.listed[x]
            state[at + x], m[at + x], e[at + x] = q, v.m[q], v.e[q]
    return bounds, state, m, e


@kernel
def leaves(words, logarithms, lexicon: WideLexicon, automaton: LinearAutomaton):
    """Return outside weights of every preterminal position of ``words`` (n, W), -1 unknown.

    Returns:
        Weights (n, S, W), each position relative to its largest, or with ``logarithms`` their natural logarithms;
        which sentences are possible (W,); and which have entries too far apart for one scale (W,).
    """
    n, width = words.shape
    ahead, back = automaton.ahead, automaton.back
    size = ahead.start.size - 1
    result = np.full((n, size - 1, width), -np.inf if logarithms else 0.0)
    whole, apart = np.zeros(width, dtype=np.bool_), np.zeros(width, dtype=np.bool_)
    bare, before, later, symbols = _vector(size), _vector(size), _vector(size), _vector(size - 1)
    reads, between = _vector(2 * (size - 1)), _vector(2 * (size - 1))
    for w in range(width):
        bounds, state, m, e = _forward(words[:, w], lexicon, automaton, reads, bare, before)
        whole[w] = before.m[automaton.end] != 0.0
        _clear(bare)
        _add(bare, automaton.end, 1.0, np.int64(0))
        _spread(bare, back.chains, later)
        for j in range(n - 1, -1, -1):
            _clear(before)
            for x in range(bounds[j], bounds[j + 1]):
                _add(before, state[x], m[x], e[x])
            _between(before, ahead, later.m, later.e, between)
            _symbols(between, automaton.below, symbols)
            topm, tope = 0.0, np.int64(0)
            for x in range(symbols.size[0]):
                a = symbols.listed[x]
                if topm == 0.0 or symbols.e[a] > tope or (symbols.e[a] == tope and symbols.m[a] > topm):
                    topm, tope = symbols.m[a], symbols.e[a]
            for x in range(symbols.size[0]):
                a = symbols.listed[x]
                if logarithms:
                    result[j, a, w] = _log_ratio(symbols.m[a], symbols.e[a], 1.0, np.int64(0))
                else:
                    result[j, a, w] = _ratio(symbols.m[a], symbols.e[a], topm, tope)
                    apart[w] |= result[j, a, w] < SMALLEST
            _tags(words[j, w], lexicon, automaton.above, reads)
            _move(later, back, reads.m, reads.e, bare)
            _spread(bare, back.chains, later)
    return result, whole, apart


@kernel
def masked(words, lexicon: WideLexicon, scored: WideLexicon, anym, anye, automaton: LinearAutomaton):
    """Return ln of each word's share in the weight of all words at its position, (n, W); -inf if impossible.

    Words have the weights of ``scored``; ``any`` (2S,) are the weights of its tags for any word.
    """
    n, width = words.shape
    ahead, back = automaton.ahead, automaton.back
    size = ahead.start.size - 1
    result = np.full((n, width), -np.inf)
    bare, before, later = _vector(size), _vector(size), _vector(size)
    reads, between = _vector(2 * (size - 1)), _vector(2 * (size - 1))
    for w in range(width):
        bounds, state, m, e = _forward(words[:, w], lexicon, automaton, reads, bare, before)
        if before.m[automaton.end] == 0.0:
            continue
        _clear(bare)
        _add(bare, automaton.end, 1.0, np.int64(0))
        _spread(bare, back.chains, later)
        for j in range(n - 1, -1, -1):
            _clear(before)
            for x in range(bounds[j], bounds[j + 1]):
                _add(before, state[x], m[x], e[x])
            _between(before, ahead, later.m, later.e, between)
            _tags(words[j, w], scored, automaton.above, reads)
            ownm, owne = _dot(between, reads.m, reads.e)
            everym, everye = _dot(between, anym, anye)
            result[j, w] = _log_ratio(ownm, owne, everym, everye)
            _tags(words[j, w], lexicon, automaton.above, reads)
            _move(later, back, reads.m, reads.e, bare)
            _spread(bare, back.chains, later)
    return result


@kernel
def _unary_uses(upper: WideVector, lower: WideVector, unary: WideRows, wholem, wholee, weight, uses):
    """Add the uses of unary rules between what is above (of their parents) and below (of their children)."""
    for x in range(upper.size[0]):
        a = upper.listed[x]
        if a < unary.start.size - 1:
            for u in range(unary.start[a], unary.start[a + 1]):
                b = unary.column[u]
                if lower.m[b] != 0.0:
                    tm, te = _times(unary.m[u], unary.e[u], upper.m[a], upper.e[a])
                    tm, te = _times(tm, te, lower.m[b], lower.e[b])
                    uses[u] += weight * _ratio(tm, te, wholem, wholee)


@kernel
def rule_counts(words, weights, right, lexicon: WideLexicon, unary: WideRows, automaton: LinearAutomaton):
    """Return expected uses of the rules in ``words`` (n, W), each sentence counted ``weights`` (W,) times.

    ``unary`` are the unary rules by parent; ``right`` whether the grammar is right-linear.

    Returns:
        Ln P(sentence) (W,); uses of each move, of each rule of ``unary``, and of each lexical rule.
    """
    n, width = words.shape
    ahead, back, below = automaton.ahead, automaton.back, automaton.below
    size = ahead.start.size - 1
    symbols = size - 1
    log_prob = np.full(width, -np.inf)
    moved, chained, spelled = np.zeros(ahead.tag.size), np.zeros(unary.m.size), np.zeros(lexicon.m.size)
    bare, before, later, tagged = _vector(size), _vector(size), _vector(size), _vector(symbols)
    reads, between = _vector(2 * symbols), _vector(2 * symbols)
    for w in range(width):
        bounds, state, m, e = _forward(words[:, w], lexicon, automaton, reads, bare, before)
        wholem, wholee = before.m[automaton.end], before.e[automaton.end]
        if wholem == 0.0:
            continue
        log_prob[w] = _log_ratio(wholem, wholee, 1.0, np.int64(0))
        _clear(bare)
        _add(bare, automaton.end, 1.0, np.int64(0))
        _spread(bare, back.chains, later)
        for j in range(n, -1, -1):
            _clear(before)
            for x in range(bounds[j], bounds[j + 1]):
                _add(before, state[x], m[x], e[x])
            if j < n:
                _tags(words[j, w], lexicon, automaton.above, reads)
                _between(before, ahead, later.m, later.e, between)
                for x in range(before.size[0]):
                    q = before.listed[x]
                    for s in range(ahead.start[q], ahead.start[q + 1]):
                        t, to = ahead.tag[s], ahead.to[s]
                        if reads.m[t] != 0.0 and later.m[to] != 0.0:
                            tm, te = _times(ahead.m[s], ahead.e[s], before.m[q], before.e[q])
                            tm, te = _times(tm, te, reads.m[t], reads.e[t])
                            tm, te = _times(tm, te, later.m[to], later.e[to])
                            moved[s] += weights[w] * _ratio(tm, te, wholem, wholee)
                _clear(tagged)
                for x in range(between.size[0]):
                    t = between.listed[x]
                    if t < symbols:
                        for k in range(below.start[t], below.start[t + 1]):
                            tm, te = _times(between.m[t], between.e[t], below.m[k], below.e[k])
                            _add(tagged, below.column[k], tm, te)
                _unary_uses(tagged, reads, unary, wholem, wholee, weights[w], chained)
                word = words[j, w]
                for r in range(lexicon.start[word], lexicon.start[word + 1]):
                    a = lexicon.parent[r]
                    am, ae = _plus(tagged.m[a], tagged.e[a], between.m[symbols + a], between.e[symbols + a])
                    if am != 0.0:
                        tm, te = _times(am, ae, lexicon.m[r], lexicon.e[r])
                        spelled[r] += weights[w] * _ratio(tm, te, wholem, wholee)
                _move(later, back, reads.m, reads.e, bare)
                _spread(bare, back.chains, later)
            if right:
                _unary_uses(before, later, unary, wholem, wholee, weights[w], chained)
            else:
                _unary_uses(later, before, unary, wholem, wholee, weights[w], chained)
    return log_prob, moved, chained, spelled


@kernel
def _raise(best, listed, size, at, value):
    """Set ``best[at]`` to ``value`` if it is larger; return whether it is; ``listed[:size[0]]`` are finite entries."""
    if not value > best[at]:
        return False
    if best[at] == -np.inf:
        listed[size[0]] = at
        size[0] += 1
    best[at] = value
    return True


@kernel
def _forget(best, listed, size):
    for x in range(size[0]):
        best[listed[x]] = -np.inf
    size[0] = 0


@kernel
def best_path(words, begin, end, moves: ChildRules, chains: SparseRows, above: SparseRows, lexicon: LexicalRules):
    """Return the most probable path of ``words`` (n,), -1 unknown, in log space.

    States, tags and moves are as in `LinearAutomaton`; the two children of a move are its tag and its target state.
    ``chains`` (by the target of a move) and ``above`` are best chains of unary rules in place of sums.

    Returns:
        Its log probability, -inf without a path; and for j = 0..n, each (n+1,), the target of the j-th move, the state
        at the other end of the chain there, the tag of the move, and the symbol that produces its word.
    """
    n, n_states = words.size, moves.start.size - 1
    tags, targets = moves.children[0], moves.children[1]
    arrived, sizes = np.full(n_states, -np.inf), np.zeros((3, 1), dtype=np.int64)
    closed, reads = np.full(n_states, -np.inf), np.full(2 * (n_states - 1), -np.inf)
    of_arrived, of_closed = np.empty(n_states, dtype=np.int32), np.empty(n_states, dtype=np.int32)
    of_reads, made_by = np.empty(reads.size, dtype=np.int32), np.empty(reads.size, dtype=np.int32)
    # by position: where the chain to a closed state began; tag, preterminal and state before the best move to a state
    began, tag_of = np.empty((n + 1, n_states), dtype=np.int32), np.empty((n + 1, n_states), dtype=np.int32)
    word_of, before = np.empty((n + 1, n_states), dtype=np.int32), np.empty((n + 1, n_states), dtype=np.int32)
    _raise(arrived, of_arrived, sizes[0], begin, 0.0)
    for j in range(n + 1):
        _forget(closed, of_closed, sizes[1])
        for x in range(sizes[0, 0]):
            q = of_arrived[x]
            for k in range(chains.start[q], chains.start[q + 1]):
                a = chains.column[k]
                if _raise(closed, of_closed, sizes[1], a, arrived[q] + chains.value[k]):
                    began[j, a] = q
        if j == n:
            break
        _forget(reads, of_reads, sizes[2])
        if words[j] >= 0:
            for r in range(lexicon.start[words[j]], lexicon.start[words[j] + 1]):
                a = lexicon.parent[r]
                if _raise(reads, of_reads, sizes[2], n_states - 1 + a, lexicon.prob[r]):
                    made_by[n_states - 1 + a] = a
                for k in range(above.start[a], above.start[a + 1]):
                    if _raise(reads, of_reads, sizes[2], above.column[k], lexicon.prob[r] + above.value[k]):
                        made_by[above.column[k]] = a
        _forget(arrived, of_arrived, sizes[0])
        for x in range(sizes[1, 0]):
            q = of_closed[x]
            for s in range(moves.start[q], moves.start[q + 1]):
                t, to = tags[s], targets[s]
                value = closed[q] + moves.prob[s] + reads[t]
                if value > -np.inf and _raise(arrived, of_arrived, sizes[0], to, value):
                    tag_of[j + 1, to], word_of[j + 1, to], before[j + 1, to] = t, made_by[t], q
    path = np.full((4, n + 1), -1, dtype=np.int32)
    if closed[end] > -np.inf:
        a = np.int32(end)
        for j in range(n, -1, -1):
            q = began[j, a]
            path[0, j], path[1, j] = q, a
            if j > 0:
                path[2, j], path[3, j], a = tag_of[j, q], word_of[j, q], before[j, q]
    return closed[end], path[0], path[1], path[2], path[3]
