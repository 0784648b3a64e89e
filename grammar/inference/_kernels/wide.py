"""Kernels: exact charts of one sentence whose weights exceed the range of a float.

A weight is ``m * 2^(960 e)``: ``m`` is a float64, zero or in [2^-480, 2^480), and ``e`` an integer (Fukushima 2012). No
product and no sum under- or overflows, and each is rounded once. A term below 2^-540 of a sum is dropped. Arrays come
in pairs, ``m`` and ``e``. Span ``(i, j)`` has number ``j (j-1) / 2 + i``.
"""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import WideLexicon, WidePairs, WideRows, WideSteps

UNIT = 2.0**960
INVERSE = 2.0**-960
HIGH = 2.0**480
LOW = 2.0**-480


@kernel
def _times(m1, e1, m2, e2):
    m, e = m1 * m2, np.int64(e1) + np.int64(e2)
    if m >= HIGH:
        return m * INVERSE, e + 1
    if m < LOW:
        return m * UNIT, e - 1
    return m, e


@kernel
def _plus(m1, e1, m2, e2):
    if m2 == 0.0:
        return m1, np.int64(e1)
    if m1 == 0.0:
        return m2, np.int64(e2)
    d = np.int64(e1) - np.int64(e2)
    if d == 0:
        m, e = m1 + m2, np.int64(e1)
    elif d == 1:
        m, e = m1 + m2 * INVERSE, np.int64(e1)
    elif d == -1:
        m, e = m2 + m1 * INVERSE, np.int64(e2)
    elif d > 1:
        return m1, np.int64(e1)
    else:
        return m2, np.int64(e2)
    if m >= HIGH:
        return m * INVERSE, e + 1
    return m, e


@kernel
def star(m, e):
    """Compute ``(I - M)^-1`` of a non-negative matrix (S, S), in place, by Kleene's elimination.

    It sums positive terms; the only difference taken is ``1 - M[k, k]``, so that every entry, however small, is
    correct to its last digits.

    Returns:
        Whether every ``M[k, k]`` stayed below 1, that is, whether the sum of all powers is finite.
    """
    n = m.shape[0]
    for k in range(n):
        loop = m[k, k] if e[k, k] == 0 else (0.0 if e[k, k] < 0 else np.inf)
        if loop >= 1.0:
            return False
        again = 1.0 / (1.0 - loop)
        for i in range(n):
            if m[i, k] != 0.0:
                by_m, by_e = _times(m[i, k], e[i, k], again, 0)
                if i == k:
                    continue
                for j in range(n):
                    if m[k, j] != 0.0:
                        x, y = _times(by_m, by_e, m[k, j], e[k, j])
                        m[i, j], e[i, j] = _plus(m[i, j], e[i, j], x, y)
        for j in range(n):
            m[k, j], e[k, j] = _times(m[k, j], e[k, j], again, 0)
    for k in range(n):
        m[k, k], e[k, k] = _plus(m[k, k], e[k, k], 1.0, 0)
    return True


@kernel
def _apply(rows: WideRows, xm, xe, outm, oute):
    """Compute ``out = M x`` for a sparse matrix M by rows."""
    row_start, column, vm, ve = rows
    for a in range(row_start.size - 1):
        m, e = 0.0, np.int64(0)
        for k in range(row_start[a], row_start[a + 1]):
            b = column[k]
            if xm[b] != 0.0:
                x, y = _times(vm[k], ve[k], xm[b], xe[b])
                m, e = _plus(m, e, x, y)
        outm[a], oute[a] = m, e


@kernel
def _spread(rows: WideRows, xm, xe, outm, oute):
    """Add ``M^T x`` to ``out`` for a sparse matrix M by rows."""
    row_start, column, vm, ve = rows
    for a in range(row_start.size - 1):
        if xm[a] != 0.0:
            for k in range(row_start[a], row_start[a + 1]):
                b = column[k]
                x, y = _times(vm[k], ve[k], xm[a], xe[a])
                outm[b], oute[b] = _plus(outm[b], oute[b], x, y)


@kernel
def length_masses(high, leafm, leafe, pairs: WidePairs, closure: WideRows):
    """Return ``P(A yields exactly m tokens)``, (high+1, S); row 0 is zero."""
    left, right, _, rule_start, parent, pm, pe = pairs
    n_states = leafm.size
    m = np.zeros((high + 1, n_states))
    e = np.zeros((high + 1, n_states), np.int64)
    for size in range(1, high + 1):
        barem, baree = np.zeros(n_states), np.zeros(n_states, np.int64)
        if size == 1:
            barem[:] = leafm
            baree[:] = leafe
        for p in range(left.size):
            b, c = left[p], right[p]
            tm, te = 0.0, np.int64(0)
            for k in range(1, size):
                if m[k, b] != 0.0 and m[size - k, c] != 0.0:
                    x, y = _times(m[k, b], e[k, b], m[size - k, c], e[size - k, c])
                    tm, te = _plus(tm, te, x, y)
            if tm != 0.0:
                for r in range(rule_start[p], rule_start[p + 1]):
                    x, y = _times(pm[r], pe[r], tm, te)
                    barem[parent[r]], baree[parent[r]] = _plus(barem[parent[r]], baree[parent[r]], x, y)
        _apply(closure, barem, baree, m[size], e[size])
    return m, e


@kernel
def inside_column(m, e, j, word, allowed, pairs: WidePairs, closure: WideRows, lexicon: WideLexicon):
    """Compute inside weights of the spans (i, j+1) ``allowed`` (j+1,), longest last; charts m, e are (spans, S)."""
    _, right, by_left, rule_start, parent, pm, pe = pairs
    lex_start, lex_parent, lexm, lexe = lexicon
    n_states = by_left.size - 1
    accm, acce = np.zeros(right.size), np.zeros(right.size, np.int64)
    barem, baree = np.zeros(n_states), np.zeros(n_states, np.int64)
    end = j + 1
    for i in range(j, -1, -1):
        if not allowed[i]:
            continue
        barem[:] = 0.0
        span = end * j // 2 + i
        if i == j:
            if word >= 0:
                for r in range(lex_start[word], lex_start[word + 1]):
                    barem[lex_parent[r]], baree[lex_parent[r]] = lexm[r], lexe[r]
        else:
            accm[:] = 0.0
            for k in range(i + 1, end):
                lo, hi = k * (k - 1) // 2 + i, end * j // 2 + k
                for b in range(n_states):
                    if m[lo, b] == 0.0:
                        continue
                    for p in range(by_left[b], by_left[b + 1]):
                        c = right[p]
                        if m[hi, c] != 0.0:
                            x, y = _times(m[lo, b], e[lo, b], m[hi, c], e[hi, c])
                            accm[p], acce[p] = _plus(accm[p], acce[p], x, y)
            for p in range(right.size):
                if accm[p] != 0.0:
                    for r in range(rule_start[p], rule_start[p + 1]):
                        x, y = _times(pm[r], pe[r], accm[p], acce[p])
                        barem[parent[r]], baree[parent[r]] = _plus(barem[parent[r]], baree[parent[r]], x, y)
        _apply(closure, barem, baree, m[span], e[span])


@kernel
def advance(m, e, j, begunm, begune, rule_parent, rule_left, rule_right, rm, re, omegam, omegae):
    """Add ``p begun[i, A, r] B(i, j)[b]`` to ``omega[C, r]`` over starts i < j and rules A -> b C."""
    for rule in range(rm.size):
        a, b, c = rule_parent[rule], rule_left[rule], rule_right[rule]
        for i in range(j):
            span = j * (j - 1) // 2 + i
            if m[span, b] == 0.0:
                continue
            wm, we = _times(rm[rule], re[rule], m[span, b], e[span, b])
            for r in range(omegam.shape[1]):
                if begunm[i, a, r] != 0.0:
                    x, y = _times(wm, we, begunm[i, a, r], begune[i, a, r])
                    omegam[c, r], omegae[c, r] = _plus(omegam[c, r], omegae[c, r], x, y)


@kernel
def spread_owed(omegam, omegae, corners: WideSteps, chains: WideRows, room, outm, oute):
    """Apply the left-corner closure by tokens owed: ``out[A, r]`` owes r tokens after A; both (S, owed), ``out`` zero.

    ``chains`` are the rows of the unary closure if tokens are owed, and of the left-corner closure if ``corners`` has
    no steps.
    """
    step_parent, step_child, cm, ce = corners
    sm, se = np.zeros(omegam.shape[0]), np.zeros(omegam.shape[0], np.int64)
    tm, te = np.zeros(omegam.shape[0]), np.zeros(omegam.shape[0], np.int64)
    for r in range(room):
        sm[:] = omegam[:, r]
        se[:] = omegae[:, r]
        for s in range(step_parent.size):
            a, c = step_parent[s], step_child[s]
            for before in range(r):
                if outm[a, before] != 0.0 and cm[s, r - before] != 0.0:
                    x, y = _times(cm[s, r - before], ce[s, r - before], outm[a, before], oute[a, before])
                    sm[c], se[c] = _plus(sm[c], se[c], x, y)
        tm[:] = 0.0
        _spread(chains, sm, se, tm, te)
        outm[:, r] = tm
        oute[:, r] = te


@kernel
def _pull(outm, oute, at, state, factorm, factore, demandm, demande):
    x, y = _times(factorm, factore, demandm, demande)
    outm[at, state], oute[at, state] = _plus(outm[at, state], oute[at, state], x, y)


@kernel
def outside_leaves(m, e, n, start, pairs: WidePairs, closure: WideRows):
    """Return the outside weight of every preterminal position, unary chains above it included, (n, S)."""
    _, right, by_left, rule_start, parent, pm, pe = pairs
    n_states = by_left.size - 1
    outm, oute = np.zeros(m.shape), np.zeros(m.shape, np.int64)
    leafm, leafe = np.zeros((n, n_states)), np.zeros((n, n_states), np.int64)
    cm, ce = np.zeros(n_states), np.zeros(n_states, np.int64)
    outm[n * (n - 1) // 2, start] = 1.0
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            span = j * (j - 1) // 2 + i
            cm[:] = 0.0
            _spread(closure, outm[span], oute[span], cm, ce)
            if length == 1:
                leafm[i] = cm
                leafe[i] = ce
                continue
            for b in range(n_states):
                for p in range(by_left[b], by_left[b + 1]):
                    dm, de = 0.0, np.int64(0)
                    for r in range(rule_start[p], rule_start[p + 1]):
                        if cm[parent[r]] != 0.0:
                            x, y = _times(pm[r], pe[r], cm[parent[r]], ce[parent[r]])
                            dm, de = _plus(dm, de, x, y)
                    if dm == 0.0:
                        continue
                    c = right[p]
                    for k in range(i + 1, j):
                        lo, hi = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
                        if m[hi, c] != 0.0:
                            _pull(outm, oute, lo, b, m[hi, c], e[hi, c], dm, de)
                        if m[lo, b] != 0.0:
                            _pull(outm, oute, hi, c, m[lo, b], e[lo, b], dm, de)
    return leafm, leafe


@kernel
def total(m, e):
    """Return the sum of a vector of weights."""
    summ, sume = 0.0, np.int64(0)
    for x in range(m.size):
        summ, sume = _plus(summ, sume, m[x], e[x])
    return summ, sume


@kernel
def dot(m, e, otherm, othere):
    """Return the sum of products of two vectors of weights."""
    summ, sume = 0.0, np.int64(0)
    for k in range(m.size):
        if m[k] != 0.0 and otherm[k] != 0.0:
            x, y = _times(m[k], e[k], otherm[k], othere[k])
            summ, sume = _plus(summ, sume, x, y)
    return summ, sume
