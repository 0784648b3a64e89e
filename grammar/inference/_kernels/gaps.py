"""Kernels: distributions of the words at the gaps of patterns, several patterns at once, one per lane.

Every preterminal can produce a gap, but few symbols over few spans are part of a matching sentence. An upward and a
downward pass first find them, a bit for each of `LANES` patterns; only these *cells* have weights, which are computed
for `WIDTH` patterns at a time and stored contiguously. Span ``(i, j)`` has number ``j (j-1) / 2 + i``. The ends and
beginnings of spans of a symbol are also bits, so that the splits of a span by a pair of symbols are an intersection.

A cell used by some lanes has a number in all lanes. The value in an unused lane is at most the true weight, and no used
weight depends on it, since that would require the same cell.

Each word is multiplied by a scale, so that weights stay near 1 in sentences of some 100 words. A pattern with a weight
outside the range from `LEAST` to `MOST` is reported as wrong; inside it, only weights below 1e-308 underflow, which do
not matter.
"""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import add_products, add_scaled, kernel, lowest_bit, room, width
from truesource.grammar._kernels.rules import GapCells, GapRules, GapSpans, LaneLists

LEAST, MOST = 1e-120, 1e120
BITS = 62  #: positions in one integer
LANES = 64


@kernel
def _tags(words, i, lane, rules: GapRules, bits, listed):
    """Return the preterminals of the word at place i; at a gap (number V), the preterminals of any word."""
    start, parent, _ = rules.lexicon
    n_listed = 0
    for w in range(min(LANES, words.shape[1] - lane)):
        word = words[i, lane + w]
        if word == start.size - 1:
            for a in range(rules.sums.size):
                if rules.sums[a] > 0.0:
                    if bits[a] == 0:
                        listed[n_listed] = a
                        n_listed += 1
                    bits[a] |= 1 << w
        elif word >= 0:
            for r in range(start[word], start[word + 1]):
                if bits[parent[r]] == 0:
                    listed[n_listed] = parent[r]
                    n_listed += 1
                bits[parent[r]] |= 1 << w
    return n_listed


@kernel
def _parents(i, j, spans: GapSpans, begun, n_begun, rules: GapRules, bits, listed):
    """Return which symbols can derive span (i, j) by a binary rule; ``begun`` (S,) are the symbols that begin at i."""
    _, right, by_left, rule_start, parent, _ = rules.pairs
    may, ahead, back = spans.may, spans.ahead, spans.back
    n_listed = 0
    for x in range(n_begun):
        b = begun[x]
        for p in range(by_left[b], by_left[b + 1]):
            new = 0
            for q in range(ahead.shape[2]):
                splits = ahead[i, b, q] & back[j, right[p], q]
                while splits != 0:
                    k = q * BITS + lowest_bit(splits)
                    splits &= splits - 1
                    new |= may[k * (k - 1) // 2 + i, b] & may[j * (j - 1) // 2 + k, right[p]]
            if new != 0:
                for r in range(rule_start[p], rule_start[p + 1]):
                    if bits[parent[r]] == 0:
                        listed[n_listed] = parent[r]
                        n_listed += 1
                    bits[parent[r]] |= new
    return n_listed


@kernel
def find_upwards(words, lane, rules: GapRules, spans: GapSpans):
    """Return which symbols can derive which span, whatever its context: bits, and a list of them by span."""
    chain_start, chain_to, _ = rules.chains
    may, ahead, back = spans.may, spans.ahead, spans.back
    n, n_states = ahead.shape[0], may.shape[1]
    begin, end = np.zeros(len(may), dtype=np.int64), np.zeros(len(may), dtype=np.int64)
    bits, listed = np.zeros(n_states, dtype=np.int64), np.empty(n_states, dtype=np.int32)
    begun, n_begun = np.empty((n, n_states), dtype=np.int32), np.zeros(n, dtype=np.int64)
    symbol, size = np.empty(1024, dtype=np.int32), 0
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            span = j * (j - 1) // 2 + i
            if i == j - 1:
                n_listed = _tags(words, i, lane, rules, bits, listed)
            else:
                n_listed = _parents(i, j, spans, begun[i], n_begun[i], rules, bits, listed)
            symbol = room(symbol, size + n_states)
            begin[span] = size
            for x in range(n_listed):
                b = listed[x]
                for e in range(chain_start[b], chain_start[b + 1]):
                    if may[span, chain_to[e]] == 0:
                        symbol[size] = chain_to[e]
                        size += 1
                    may[span, chain_to[e]] |= bits[b]
                bits[b] = 0
            end[span] = size
            for x in range(begin[span], size):
                a = symbol[x]
                if not _any(ahead[i, a]):
                    begun[i, n_begun[i]] = a
                    n_begun[i] += 1
                ahead[i, a, j // BITS] |= 1 << (j % BITS)
                back[j, a, i // BITS] |= 1 << (i % BITS)
    return LaneLists(symbol, bits, begin, end)


@kernel
def _any(row):
    for x in row:  # noqa: SIM110 (numba has no generators)
        if x != 0:
            return True
    return False


@kernel
def _lows(span, spans: GapSpans, tops: LaneLists, rules: GapRules, low, lows, size):
    """Add the lower ends of chains of unary rules over a span to the list ``lows``, their lanes to ``low``."""
    closure_start, closure_column, _ = rules.closure
    for x in range(tops.begin[span], tops.end[span]):
        a = tops.item[x]
        lanes = spans.need[span, a]
        if lanes != 0:
            for e in range(closure_start[a], closure_start[a + 1]):
                b = closure_column[e]
                new = lanes & spans.may[span, b]
                if new != 0:
                    if low[b] == 0:
                        lows[size] = b
                        size += 1
                    low[b] |= new
    return size


@kernel
def _split(i, j, p, lanes, spans: GapSpans, rules: GapRules):
    """Mark the parts of span (i, j) that child pair p needs in these lanes; return the lanes in which it has any."""
    may, need = spans.may, spans.need
    b, c = rules.pairs.left[p], rules.pairs.right[p]
    some = 0
    for q in range(spans.ahead.shape[2]):
        splits = spans.ahead[i, b, q] & spans.back[j, c, q]
        while splits != 0:
            k = q * BITS + lowest_bit(splits)
            splits &= splits - 1
            left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
            new = lanes & may[left, b] & may[right, c]
            if new != 0:
                need[left, b] |= new
                need[right, c] |= new
                some |= new
    return some


@kernel
def find_downwards(start, tops: LaneLists, rules: GapRules, spans: GapSpans):
    """Mark the cells that are part of a whole sentence; return lists of the cells below the chains of each span."""
    n, n_states = spans.ahead.shape[0], spans.may.shape[1]
    low, pair_bits = np.zeros(n_states, dtype=np.int64), np.zeros(rules.pairs.right.size, dtype=np.int64)
    lows, low_lanes, n_lows = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int64), 0
    pairs, pair_lanes, n_pairs = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int64), 0
    begin, end = np.zeros((2, len(spans.may)), dtype=np.int64), np.zeros((2, len(spans.may)), dtype=np.int64)
    spans.need[n * (n - 1) // 2, start] = spans.may[n * (n - 1) // 2, start]
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            span = j * (j - 1) // 2 + i
            lows, low_lanes = room(lows, n_lows + n_states), room(low_lanes, n_lows + n_states)
            begin[0, span], begin[1, span] = n_lows, n_pairs
            n_lows = _lows(span, spans, tops, rules, low, lows, n_lows)
            if length > 1:
                pairs, pair_lanes = room(pairs, n_pairs + pair_bits.size), room(pair_lanes, n_pairs + pair_bits.size)
                last = n_pairs
                for x in range(begin[0, span], n_lows):
                    for r in range(rules.below_start[lows[x]], rules.below_start[lows[x] + 1]):
                        p = rules.below[r]
                        if pair_bits[p] == 0:
                            pairs[last] = p
                            last += 1
                        pair_bits[p] |= low[lows[x]]
                for x in range(n_pairs, last):
                    p = pairs[x]
                    some = _split(i, j, p, pair_bits[p], spans, rules)
                    if some != 0:
                        pairs[n_pairs], pair_lanes[n_pairs] = p, some
                        n_pairs += 1
                    pair_bits[p] = 0
            for x in range(begin[0, span], n_lows):
                low_lanes[x] = low[lows[x]]
                low[lows[x]] = 0
            end[0, span], end[1, span] = n_lows, n_pairs
    return LaneLists(lows, low_lanes, begin[0], end[0]), LaneLists(pairs, pair_lanes, begin[1], end[1])


@kernel
def room_for(lists: LaneLists):
    """Return empty arrays for `WIDTH` lanes of some lists."""
    size = 0
    for span in range(lists.end.size):
        size = max(size, lists.end[span])
    item, lanes = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int64)
    return LaneLists(item, lanes, np.empty_like(lists.begin), np.empty_like(lists.end))


@kernel
def keep_lane(lists: LaneLists, first, selected: LaneLists):
    """Copy the items that `WIDTH` lanes from ``first`` on use of some lists to ``selected``."""
    item, lanes, begin, end = selected
    size, every = 0, (1 << width()) - 1
    for span in range(begin.size):
        begin[span] = size
        for x in range(lists.begin[span], lists.end[span]):
            bits = (lists.lanes[x] >> first) & every
            if bits != 0:
                item[size], lanes[size] = lists.item[x], bits
                size += 1
        end[span] = size


@kernel
def keep_needed(tops: LaneLists, spans: GapSpans):
    """Return the lanes in which each symbol over each span is part of a whole sentence."""
    lanes = np.zeros(tops.item.size, dtype=np.int64)
    for span in range(len(spans.may)):
        for x in range(tops.begin[span], tops.end[span]):
            lanes[x] = spans.need[span, tops.item[x]]
    return LaneLists(tops.item, lanes, tops.begin, tops.end)


@kernel
def number_cells(cells: GapCells):
    """Number the cells, and record where cells of each symbol begin and end."""
    n = cells.ahead.shape[0]
    cells.place[:] = -1
    cells.ahead[:] = 0
    cells.back[:] = 0
    tops = cells.tops
    for j in range(1, n + 1):
        for i in range(j):
            span = j * (j - 1) // 2 + i
            for x in range(tops.begin[span], tops.end[span]):
                a = tops.item[x]
                cells.place[span, a] = x
                cells.ahead[i, a, j // BITS] |= 1 << (j % BITS)
                cells.back[j, a, i // BITS] |= 1 << (i % BITS)


@kernel
def _weigh(words, scales, i, lane, lows, rules: GapRules, low, bare):
    """Compute weights of preterminals ``lows`` over the word at place i, or over any word at a gap."""
    start, parent, prob = rules.lexicon
    for w in range(width()):
        word = words[i, lane + w]
        if word == start.size - 1:
            for a in lows:
                bare[a * width() + w] = rules.sums[a] * scales[i, lane + w]
        elif word >= 0:
            for r in range(start[word], start[word + 1]):
                if low[parent[r]]:
                    bare[parent[r] * width() + w] = prob[r] * scales[i, lane + w]


@kernel
def _inside(words, scales, lane, inside, cells: GapCells, rules: GapRules):
    """Compute inside weights of the cells in ``inside`` (cells * lanes,), which is zero on entry."""
    lanes, place, ahead, back = width(), cells.place, cells.ahead, cells.back
    n, n_states = ahead.shape[0], place.shape[1]
    chain_start, chain_to, chain_value = rules.chains
    left_of, right_of, _, rule_start, parent, prob = rules.pairs
    low, bare, acc = np.zeros(n_states, dtype=np.bool_), np.zeros(n_states * lanes), np.zeros(lanes)
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            span = j * (j - 1) // 2 + i
            lows = cells.lows.item[cells.lows.begin[span] : cells.lows.end[span]]
            for b in lows:
                low[b] = True
                for w in range(lanes):
                    bare[b * lanes + w] = 0.0
            if i == j - 1:
                _weigh(words, scales, i, lane, lows, rules, low, bare)
            for x in range(cells.pairs.begin[span], cells.pairs.end[span]):
                p = cells.pairs.item[x]
                b, c = left_of[p], right_of[p]
                for w in range(lanes):
                    acc[w] = 0.0
                for q in range(ahead.shape[2]):
                    splits = ahead[i, b, q] & back[j, c, q]
                    while splits != 0:
                        k = q * BITS + lowest_bit(splits)
                        splits &= splits - 1
                        left, right = place[k * (k - 1) // 2 + i, b], place[j * (j - 1) // 2 + k, c]
                        add_products(acc, 0, inside, left * lanes, inside, right * lanes)
                for r in range(rule_start[p], rule_start[p + 1]):
                    if low[parent[r]]:
                        add_scaled(bare, parent[r] * lanes, prob[r], acc, 0)
            for b in lows:
                low[b] = False
                for e in range(chain_start[b], chain_start[b + 1]):
                    top = place[span, chain_to[e]]
                    if top >= 0:
                        add_scaled(inside, top * lanes, chain_value[e], bare, b * lanes)


@kernel
def _outside(words, scales, rows, lane, inside, cells: GapCells, rules: GapRules, above, wrong, out):
    """Compute outside weights of the cells, and from the outside of preterminals the words at gaps, in ``out``.

    ``above`` (cells * lanes,) holds the outside weight of the root, and zeros.
    """
    lanes, place, ahead, back = width(), cells.place, cells.ahead, cells.back
    n, n_states = ahead.shape[0], place.shape[1]
    chain_start, chain_to, chain_value = rules.chains
    left_of, right_of, _, rule_start, parent, prob = rules.pairs
    low, closed, demand = np.zeros(n_states, dtype=np.bool_), np.zeros(n_states * lanes), np.zeros(lanes)
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            span = j * (j - 1) // 2 + i
            for x in range(cells.tops.begin[span], cells.tops.end[span]):
                _check(above, x, cells.tops.lanes[x], wrong)
            lows = cells.lows.item[cells.lows.begin[span] : cells.lows.end[span]]
            for b in lows:
                low[b] = True
                for w in range(lanes):
                    closed[b * lanes + w] = 0.0
                for e in range(chain_start[b], chain_start[b + 1]):
                    top = place[span, chain_to[e]]
                    if top >= 0:
                        add_scaled(closed, b * lanes, chain_value[e], above, top * lanes)
            for x in range(cells.pairs.begin[span], cells.pairs.end[span]):
                p = cells.pairs.item[x]
                b, c = left_of[p], right_of[p]
                for w in range(lanes):
                    demand[w] = 0.0
                for r in range(rule_start[p], rule_start[p + 1]):
                    if low[parent[r]]:
                        add_scaled(demand, 0, prob[r], closed, parent[r] * lanes)
                for q in range(ahead.shape[2]):
                    splits = ahead[i, b, q] & back[j, c, q]
                    while splits != 0:
                        k = q * BITS + lowest_bit(splits)
                        splits &= splits - 1
                        left = place[k * (k - 1) // 2 + i, b] * lanes
                        right = place[j * (j - 1) // 2 + k, c] * lanes
                        add_products(above, left, demand, 0, inside, right)
                        add_products(above, right, demand, 0, inside, left)
            for b in lows:
                low[b] = False
            if length == 1:
                _words(words, scales, i, rows, lane, lows, closed, rules, out)


@kernel
def _check(weights, x, used, wrong):
    """Mark the lanes that use entry x and whose weight is out of range."""
    for w in range(width()):
        if used & (1 << w) != 0 and not LEAST <= weights[x * width() + w] <= MOST:
            wrong[w] = True


@kernel
def _words(words, scales, i, rows, lane, lows, closed, rules: GapRules, out):
    """Add P(word at place i | the known words) to ``out`` (R, n, V), if the place is a gap."""
    gap = rules.lexicon.start.size - 1
    word_start, word, prob = rules.emission
    for w in range(width()):
        if words[i, lane + w] == gap:
            row = out[rows[lane + w], i]
            for a in lows:
                weight = closed[a * width() + w] * scales[i, lane + w]
                if weight > 0.0:
                    for e in range(word_start[a], word_start[a + 1]):
                        row[word[e]] += weight * prob[e]


@kernel
def _group(words, scales, lane, cells: GapCells, weights, root, rules: GapRules, rows, totals, wrong, out):
    """Compute `fill` for the `WIDTH` lanes from ``lane`` on; ``root`` is the root cell, ``weights`` is work space."""
    lanes = width()
    bad, tops = wrong[lane : lane + lanes], cells.tops
    size = tops.end[tops.end.size - 1]
    inside, above = weights[0, : size * lanes], weights[1, : size * lanes]
    for x in range(size * lanes):
        inside[x] = above[x] = 0.0
    _inside(words, scales, lane, inside, cells, rules)
    for x in range(size):
        _check(inside, x, tops.lanes[x], bad)
    for w in range(lanes):
        if tops.lanes[root] & (1 << w) != 0:
            totals[lane + w] = inside[root * lanes + w]
    if rows.size > 0:
        for w in range(lanes):
            if totals[lane + w] > 0.0:
                above[root * lanes + w] = 1.0 / max(totals[lane + w], LEAST)
        _outside(words, scales, rows, lane, inside, cells, rules, above, bad, out)


@kernel
def fill(words, scales, start, rules: GapRules, rows, out):
    """Return weights of the patterns ``words`` (n, W), W a multiple of `WIDTH`.

    Args:
        words: word numbers; V, the vocabulary size, is a gap, and -1 an unknown word.
        scales: (n, W) scales of the words, and of gaps.
        start: start symbol.
        rules: rules of the grammar.
        rows: (W,) rows of ``out``; (0,): skip the words.
        out: (R, n, V) receives P(word | the known words) at each gap, added.

    Returns:
        (W,) weight of all matching sentences, scaled; and which patterns may be wrong, (W,).
    """
    n, n_states = len(words), rules.sums.size
    n_spans, parts, whole = n * (n + 1) // 2, n // BITS + 1, n * (n - 1) // 2
    totals, wrong = np.zeros(words.shape[1]), np.zeros(words.shape[1], dtype=np.bool_)
    place = np.empty((n_spans, n_states), dtype=np.int32)
    for block in range(0, words.shape[1], LANES):
        spans = GapSpans(
            np.zeros((n_spans, n_states), dtype=np.int64),
            np.zeros((n_spans, n_states), dtype=np.int64),
            np.zeros((n, n_states, parts), dtype=np.int64),
            np.zeros((n + 1, n_states, parts), dtype=np.int64),
        )
        tops = find_upwards(words, block, rules, spans)
        lows, pairs = find_downwards(start, tops, rules, spans)
        tops = keep_needed(tops, spans)
        cells = GapCells(room_for(tops), room_for(lows), room_for(pairs), place, spans.ahead, spans.back)
        weights = np.empty((2, tops.item.size * width()))
        for lane in range(block, min(block + LANES, words.shape[1]), width()):
            if (spans.may[whole, start] >> (lane - block)) & ((1 << width()) - 1) != 0:
                keep_lane(tops, lane - block, cells.tops)
                keep_lane(lows, lane - block, cells.lows)
                keep_lane(pairs, lane - block, cells.pairs)
                number_cells(cells)
                _group(words, scales, lane, cells, weights, place[whole, start], rules, rows, totals, wrong, out)
    return totals, wrong
