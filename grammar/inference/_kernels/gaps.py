"""Kernels: the words at the gaps of patterns, `WIDTH` of them side by side, one to a lane.

A gap can be made by every preterminal, but few symbols over few spans are part of a sentence that fits. So a pass up
and one down first say which are, a bit for each lane; only these *cells* have weights. They are stored one after the
other, `WIDTH` weights each. Span ``(i, j)`` has number ``j (j-1) / 2 + i``.

A cell that some lanes use has numbers in all. What a lane does not use is never more than its true weight, and no
weight that it uses is made of it, since that would need the same cell.

Each known word is multiplied by a scale, so that weights stay near 1 in sentences of some 100 words. Where one leaves
the range from `LEAST` to `MOST`, the pattern is said to be wrong; within it, nothing that matters can be lost: what
underflows is below 1e-308.
"""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import add_products, add_scaled, kernel, room, width
from truesource.grammar._kernels.rules import GapAsked, GapCells, GapRules

LEAST, MOST = 1e-120, 1e120


@kernel
def _tags(words, i, lane, rules: GapRules, bits):
    """Which preterminals can make the word at place i, or any word at a gap, whose number is that of the words."""
    start, parent, _ = rules.lexicon
    bits[:] = 0
    for w in range(width()):
        word = words[i, lane + w]
        if word == start.size - 1:
            for a in range(rules.sums.size):
                if rules.sums[a] > 0.0:
                    bits[a] |= 1 << w
        elif word >= 0:
            for r in range(start[word], start[word + 1]):
                bits[parent[r]] |= 1 << w


@kernel
def _up(words, lane, rules: GapRules):
    """Which symbols can make which span, whatever stands beside it: bits (spans, S), and lists of them by span."""
    _, right, by_left, rule_start, parent, _ = rules.pairs
    closure_start, closure_column, _ = rules.closure
    n, n_states = words.shape[0], by_left.size - 1
    may = np.zeros((n * (n + 1) // 2, n_states), dtype=np.uint8)
    bits, found = np.zeros(n_states, dtype=np.uint8), np.zeros(right.size, dtype=np.uint8)
    symbol, begin, end = np.empty(1024, np.int32), np.zeros(len(may), np.int64), np.zeros(len(may), np.int64)
    size = 0
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            span = j * (j - 1) // 2 + i
            if i == j - 1:
                _tags(words, i, lane, rules, bits)
            else:
                bits[:] = 0
                found[:] = 0
                for k in range(i + 1, j):
                    left, beside = k * (k - 1) // 2 + i, may[j * (j - 1) // 2 + k]
                    for x in range(begin[left], end[left]):
                        own = may[left, symbol[x]]
                        for p in range(by_left[symbol[x]], by_left[symbol[x] + 1]):
                            new = own & beside[right[p]] & ~found[p]
                            if new != 0:
                                found[p] |= new
                                for r in range(rule_start[p], rule_start[p + 1]):
                                    bits[parent[r]] |= new
            symbol = room(symbol, size + n_states)
            begin[span] = size
            for a in range(n_states):
                for e in range(closure_start[a], closure_start[a + 1]):
                    may[span, a] |= bits[closure_column[e]]
                if may[span, a] != 0:
                    symbol[size] = a
                    size += 1
            end[span] = size
    return may, symbol, begin, end


@kernel
def _ask(span, stamp, cells: GapCells, rules: GapRules, asked: GapAsked):
    """What the cells of a span need below them: lower ends of chains of unary rules, and child pairs of their rules.

    Returns the numbers of the ends and of the left children that are listed.
    """
    closure_start, closure_column, _ = rules.closure
    low, lows, pair, left, met = asked
    n_low, n_left = 0, 0
    low[:] = 0
    pair[:] = 0
    for x in range(cells.begin[span], cells.end[span]):
        a = cells.symbol[x]
        lanes = cells.need[span, a]
        if lanes != 0:
            for e in range(closure_start[a], closure_start[a + 1]):
                b = closure_column[e]
                new = lanes & cells.may[span, b]
                if new != 0:
                    if low[b] == 0:
                        lows[n_low] = b
                        n_low += 1
                    low[b] |= new
    for x in range(n_low):
        for r in range(rules.below_start[lows[x]], rules.below_start[lows[x] + 1]):
            p = rules.below[r]
            pair[p] |= low[lows[x]]
            b = rules.pairs.left[p]
            if met[b] != stamp:
                met[b] = stamp
                left[n_left] = b
                n_left += 1
    return n_low, n_left


@kernel
def _splits(b, i, j, need, splits):
    """Where span (i, j) can end a left child b, how many."""
    n = 0
    for k in range(i + 1, j):
        if need[k * (k - 1) // 2 + i, b] != 0:
            splits[n] = k
            n += 1
    return n


@kernel
def _down(start, cells: GapCells, rules: GapRules, asked: GapAsked):
    """Mark in ``need`` the cells that are part of a whole sentence."""
    n, need, may = cells.n, cells.need, cells.may
    need[n * (n - 1) // 2, start] = may[n * (n - 1) // 2, start]
    splits = np.empty(n, dtype=np.int64)
    for length in range(n, 1, -1):
        for i in range(n - length + 1):
            j = i + length
            span = j * (j - 1) // 2 + i
            _, n_left = _ask(span, span + 1, cells, rules, asked)
            for x in range(n_left):
                b = asked.left[x]
                n_splits = _splits(b, i, j, may, splits)
                if n_splits == 0:
                    continue
                for p in range(rules.pairs.by_left[b], rules.pairs.by_left[b + 1]):
                    if asked.pair[p] == 0:
                        continue
                    c = rules.pairs.right[p]
                    for y in range(n_splits):
                        left, right = splits[y] * (splits[y] - 1) // 2 + i, j * (j - 1) // 2 + splits[y]
                        lanes = asked.pair[p] & may[left, b] & may[right, c]
                        if lanes != 0:
                            need[left, b] |= lanes
                            need[right, c] |= lanes


@kernel
def _number(cells: GapCells):
    """Keep the cells that are needed, and number them."""
    size = 0
    for j in range(1, cells.n + 1):
        for i in range(j - 1, -1, -1):
            span = j * (j - 1) // 2 + i
            first = size
            for x in range(cells.begin[span], cells.end[span]):
                a = cells.symbol[x]
                if cells.need[span, a] != 0:
                    cells.symbol[size] = a
                    cells.place[span, a] = size
                    size += 1
            cells.begin[span], cells.end[span] = first, size
    return size


@kernel
def _inside(words, scales, lane, n_cells, cells: GapCells, rules: GapRules, asked: GapAsked):
    """Weights of the cells, (cells * lanes,)."""
    lanes, n, n_states = width(), cells.n, cells.need.shape[1]
    closure_start, closure_column, closure_value = rules.closure
    _, right_of, by_left, rule_start, parent, prob = rules.pairs
    need, place, low = cells.need, cells.place, asked.low
    inside, bare, acc = np.zeros(n_cells * lanes), np.zeros(n_states * lanes), np.zeros(lanes)
    splits = np.empty(n, dtype=np.int64)
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            span = j * (j - 1) // 2 + i
            if cells.begin[span] == cells.end[span]:
                continue
            n_low, n_left = _ask(span, -span - 1, cells, rules, asked)
            for x in range(n_low):
                for w in range(lanes):
                    bare[asked.lows[x] * lanes + w] = 0.0
            if i == j - 1:
                _weigh(words, scales, i, lane, rules, low, bare)
                n_left = 0
            for x in range(n_left):
                b = asked.left[x]
                n_splits = _splits(b, i, j, need, splits)
                if n_splits == 0:
                    continue
                for p in range(by_left[b], by_left[b + 1]):
                    if asked.pair[p] == 0:
                        continue
                    some = False
                    for y in range(n_splits):
                        left, right = splits[y] * (splits[y] - 1) // 2 + i, j * (j - 1) // 2 + splits[y]
                        if asked.pair[p] & need[left, b] & need[right, right_of[p]] != 0:
                            if not some:
                                acc[:] = 0.0
                                some = True
                            add_products(acc, 0, inside, place[left, b] * lanes, inside, place[right, right_of[p]] * lanes)
                    if some:
                        for r in range(rule_start[p], rule_start[p + 1]):
                            if low[parent[r]] != 0:
                                add_scaled(bare, parent[r] * lanes, prob[r], acc, 0)
            for x in range(cells.begin[span], cells.end[span]):
                a = cells.symbol[x]
                for e in range(closure_start[a], closure_start[a + 1]):
                    if low[closure_column[e]] != 0:
                        add_scaled(inside, x * lanes, closure_value[e], bare, closure_column[e] * lanes)
    return inside


@kernel
def _weigh(words, scales, i, lane, rules: GapRules, low, bare):
    """Weights of preterminals over the word at place i, or over any word at a gap."""
    start, parent, prob = rules.lexicon
    for w in range(width()):
        word = words[i, lane + w]
        if word == start.size - 1:
            for a in range(rules.sums.size):
                if low[a] != 0:
                    bare[a * width() + w] = rules.sums[a] * scales[i, lane + w]
        elif word >= 0:
            for r in range(start[word], start[word + 1]):
                if low[parent[r]] != 0:
                    bare[parent[r] * width() + w] = prob[r] * scales[i, lane + w]


@kernel
def _outside(words, scales, rows, lane, inside, cells: GapCells, rules: GapRules, asked: GapAsked, above, wrong, out):
    """Outside weights of the cells, and the words at gaps from those of preterminals, into ``out``.

    ``above`` (cells * lanes,) has that of the root, and zeros.
    """
    lanes, n, n_states = width(), cells.n, cells.need.shape[1]
    closure_start, closure_column, closure_value = rules.closure
    _, right_of, by_left, rule_start, parent, prob = rules.pairs
    need, place, low = cells.need, cells.place, asked.low
    closed, demand = np.zeros(n_states * lanes), np.zeros(lanes)
    splits = np.empty(n, dtype=np.int64)
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            span = j * (j - 1) // 2 + i
            if cells.begin[span] == cells.end[span]:
                continue
            n_low, n_left = _ask(span, span + 1, cells, rules, asked)
            for x in range(n_low):
                for w in range(lanes):
                    closed[asked.lows[x] * lanes + w] = 0.0
            for x in range(cells.begin[span], cells.end[span]):
                a = cells.symbol[x]
                _check(above, x, need[span, a], wrong)
                for e in range(closure_start[a], closure_start[a + 1]):
                    if low[closure_column[e]] != 0:
                        add_scaled(closed, closure_column[e] * lanes, closure_value[e], above, x * lanes)
            for x in range(n_low):
                _check(closed, asked.lows[x], low[asked.lows[x]], wrong)
            if length == 1:
                _words(words, scales, i, rows, lane, n_low, asked, closed, rules, out)
                continue
            for x in range(n_left):
                b = asked.left[x]
                n_splits = _splits(b, i, j, need, splits)
                if n_splits == 0:
                    continue
                for p in range(by_left[b], by_left[b + 1]):
                    if asked.pair[p] == 0:
                        continue
                    some = False
                    for y in range(n_splits):
                        left, right = splits[y] * (splits[y] - 1) // 2 + i, j * (j - 1) // 2 + splits[y]
                        if asked.pair[p] & need[left, b] & need[right, right_of[p]] != 0:
                            if not some:
                                some = True
                                demand[:] = 0.0
                                for r in range(rule_start[p], rule_start[p + 1]):
                                    if low[parent[r]] != 0:
                                        add_scaled(demand, 0, prob[r], closed, parent[r] * lanes)
                            one, other = place[left, b] * lanes, place[right, right_of[p]] * lanes
                            add_products(above, one, demand, 0, inside, other)
                            add_products(above, other, demand, 0, inside, one)


@kernel
def _check(weights, x, used, wrong):
    """Marks the lanes that use entry x and whose weight is out of range."""
    for w in range(width()):
        if used & (1 << w) != 0 and not LEAST <= weights[x * width() + w] <= MOST:
            wrong[w] = True


@kernel
def _words(words, scales, i, rows, lane, n_low, asked: GapAsked, closed, rules: GapRules, out):
    """P(word at place i | what is known), where it is a gap, into ``out`` (R, n, V)."""
    gap = rules.lexicon.start.size - 1
    word_start, word, prob = rules.emission
    for w in range(width()):
        if words[i, lane + w] == gap:
            for x in range(n_low):
                a = asked.lows[x]
                weight = closed[a * width() + w]
                if weight > 0.0:
                    for e in range(word_start[a], word_start[a + 1]):
                        out[rows[lane + w], i, word[e]] += weight * prob[e] * scales[i, lane + w]


@kernel
def fill(words, scales, start, rules: GapRules, rows, out):
    """Weights of the patterns ``words`` (n, W), W a multiple of `WIDTH`.

    Args:
        words: numbers; that of the words, V, is a gap, and -1 nothing.
        scales: (n, W) of the words, and of gaps.
        start: symbol.
        rules: of the grammar.
        rows: (W,) of ``out``; (0,): the words are not asked for.
        out: (R, n, V) is added P(word | what is known) at each gap.

    Returns:
        (W,) weight of all sentences that fit, scaled; and which patterns may be wrong, (W,).
    """
    n, lanes = len(words), width()
    n_states, n_spans = rules.sums.size, n * (n + 1) // 2
    totals, wrong = np.zeros(words.shape[1]), np.zeros(words.shape[1], dtype=np.bool_)
    asked = GapAsked(
        np.zeros(n_states, dtype=np.uint8),
        np.zeros(n_states, dtype=np.int32),
        np.zeros(rules.pairs.right.size, dtype=np.uint8),
        np.zeros(n_states, dtype=np.int32),
        np.zeros(n_states, dtype=np.int64),
    )
    for lane in range(0, words.shape[1], lanes):
        may, symbol, begin, end = _up(words, lane, rules)
        root = n * (n - 1) // 2
        if may[root, start] == 0:
            continue
        need, place = np.zeros_like(may), np.empty((n_spans, n_states), dtype=np.int32)
        cells = GapCells(n, may, need, symbol, begin, end, place)
        asked.met[:] = 0
        _down(start, cells, rules, asked)
        n_cells = _number(cells)
        asked.met[:] = 0
        inside = _inside(words, scales, lane, n_cells, cells, rules, asked)
        bad, above, top = wrong[lane : lane + lanes], np.zeros(inside.size), place[root, start] * lanes
        for span in range(n_spans):
            for x in range(begin[span], end[span]):
                _check(inside, x, need[span, symbol[x]], bad)
        for w in range(lanes):
            if may[root, start] & (1 << w) != 0:
                totals[lane + w] = inside[top + w]
                above[top + w] = 1.0 / max(inside[top + w], LEAST)
        asked.met[:] = 0
        if rows.size > 0:
            _outside(words, scales, rows, lane, inside, cells, rules, asked, above, bad, out)
    return totals, wrong
