"""Kernels: a double-array trie of pieces, and the lattices of texts.

A trie is a table of slots, (M, 2) uint32: the slot of the parent (2^32 - 1: free); twice the base of the children, and
1 more if a piece ends here; and (M,) int32, that piece. The child of slot s by a character of class c, counted from 1,
is slot base + c if that slot's parent is s; class 0, of characters that are in no piece, has no child. Slot
0 is the root. A step reads eight bytes of one slot; the pieces are read at arcs only.

Positions of several concatenated texts are separated by ``bounds`` (K+1,): no arc crosses a bound.
"""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel

FREE = 2**32 - 1
MOST_TRIALS = 500  #: number of free slots that may be too narrow for a node before the search starts further right


@kernel
def _grown(table, size):
    """Copy a table with more rows, -1 in the new ones."""
    grown = np.empty((size, 3), dtype=np.int32)
    for k in range(size):
        for column in range(3):
            grown[k, column] = table[k, column] if k < len(table) else -1
    return grown


@kernel
def place_children(table, symbols, found, start):
    """Find the first base whose slots for all of ``symbols[:found]`` are free, from slot ``start``.

    Returns:
        The base, the start slot of the next search, and the table (extended if it was too short).
    """
    least, most = symbols[0], symbols[0]
    for k in range(1, found):
        least, most = min(least, symbols[k]), max(most, symbols[k])
    slot = max(start, least)
    passed, busy = 0, 0
    while True:
        if slot - least + most >= len(table):
            table = _grown(table, 2 * len(table) + most)
        passed += 1
        if table[slot, 0] >= 0 or slot == 0:
            busy += 1
        else:
            base = slot - least
            fits = True
            for k in range(found):
                if table[base + symbols[k], 0] >= 0:
                    fits = False
                    break
            if fits:
                crowded = busy >= 0.95 * passed or passed - busy > MOST_TRIALS
                return base, slot if crowded else start, table
        slot += 1


@kernel
def build_trie(text, bounds, n_classes):
    """Write pieces into a double array.

    Args:
        text: classes of the characters of the concatenated pieces; pieces with a common prefix are adjacent,
            and a prefix precedes longer pieces.
        bounds: start of each piece, (P+1,).
        n_classes: the largest class.

    Returns:
        slots, pieces; M leaves room for a step by any class from any slot.
    """
    n_pieces = len(bounds) - 1
    table = _grown(np.empty((0, 3), dtype=np.int32), 2 * (len(text) + n_classes) + 16)
    stack = np.empty((len(text) + 1, 4), dtype=np.int64)  # slot, depth, pieces from, to
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, 0, 0, n_pieces
    waiting = 1
    symbols = np.empty(n_classes, dtype=np.int64)
    froms = np.empty(n_classes + 1, dtype=np.int64)
    alone, together, last = 1, 1, 0  # start of the search for one child and for several
    while waiting > 0:
        waiting -= 1
        slot, depth, low, high = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        if bounds[low + 1] - bounds[low] == depth:
            table[slot, 2] = low
            low += 1
        found = 0
        for k in range(low, high):
            symbol = text[bounds[k] + depth]
            if found == 0 or symbol != symbols[found - 1]:
                symbols[found] = symbol
                froms[found] = k
                found += 1
        if found == 0:
            continue
        froms[found] = high
        if found == 1:
            base, alone, table = place_children(table, symbols, found, alone)
        else:
            base, together, table = place_children(table, symbols, found, together)
        table[slot, 1] = base
        last = max(last, base)
        for k in range(found):
            child = base + symbols[k]
            table[child, 0] = slot
            stack[waiting, 0], stack[waiting, 1] = child, depth + 1
            stack[waiting, 2], stack[waiting, 3] = froms[k], froms[k + 1]
            waiting += 1
    nowhere = last + n_classes + 1  # slots from here on stay free: the children of leaves
    slots = np.empty((nowhere + n_classes + 1, 2), dtype=np.uint32)
    pieces = np.empty(len(slots), dtype=np.int32)
    table = _grown(table, max(len(slots), len(table)))
    for k in range(len(slots)):
        parent, base, pieces[k] = table[k, 0], table[k, 1], table[k, 2]
        slots[k, 0] = FREE if parent < 0 else parent
        slots[k, 1] = 2 * (nowhere if base < 0 else base) + (1 if pieces[k] >= 0 else 0)
    return slots, pieces


@kernel
def _scan(slots, pieces, text, low, high, reached, first, source, end, piece, found):
    """List arcs from reachable positions, in order of source, then end; first[i] counts the arcs that end at i.

    Returns:
        The number of arcs; the last position: ``high``, or earlier if the arrays were too short; True if a
        reachable position has no arc.
    """
    root = slots[0, 1] >> np.uint32(1)
    after = text[high]
    text[high] = 0  # stops every walk
    dead = False
    for i in range(low, high):
        if not reached[i]:
            continue
        before = found
        slot, base, j = np.uint32(0), root, np.uint64(i)
        while True:
            child = base + np.uint32(text[j])
            if slots[child, 0] != slot:
                break
            link = slots[child, 1]
            base = link >> np.uint32(1)
            slot = child
            j += np.uint64(1)
            if link & np.uint32(1):
                if found == len(source):
                    break
                source[found] = i
                end[found] = j
                piece[found] = pieces[child]
                reached[j] = True
                first[j] += 1
                found += 1
        if found == len(source):
            for w in range(before, found):
                first[end[w]] -= 1
            text[high] = after
            return before, i, dead
        dead |= found == before
    text[high] = after
    return found, high, dead


@kernel
def _classified(points, classes):
    """Return the classes of code points, (n+1,); 0: in no piece, or after the end."""
    text = np.empty(len(points) + 1, dtype=np.int32)
    known = len(classes)
    for i in range(len(points)):
        point = points[i]
        text[i] = classes[point] if point < known else 0
    text[len(points)] = 0
    return text


@kernel
def _longer(array):
    longer = np.empty(4 * len(array), dtype=np.int32)
    for w in range(len(array)):
        longer[w] = array[w]
    return longer


@kernel
def spelt(slots, pieces, classes, points, bounds):
    """Return True (K,) for texts that are concatenations of pieces."""
    text = _classified(points, classes)
    reached = np.zeros(len(text), dtype=np.bool_)
    first = np.zeros(len(text), dtype=np.int64)
    source = np.empty(1024, dtype=np.int32)
    end, piece = source.copy(), source.copy()
    found = np.empty(len(bounds) - 1, dtype=np.bool_)
    for k in range(len(found)):
        at, high = bounds[k], bounds[k + 1]
        reached[at] = True
        while at < high:
            some, now, _ = _scan(slots, pieces, text, at, high, reached, first, source, end, piece, 0)
            if some == 0 and now < high:
                source, end, piece = _longer(source), _longer(end), _longer(piece)
            at = now
        found[k] = reached[high]
    return found


@kernel
def build_lattice(slots, pieces, classes, scores, points, bounds):
    """Build all arcs on paths through texts.

    Args:
        slots: result of `build_trie`.
        pieces: result of `build_trie`.
        classes: class of each code point.
        scores: scores of the pieces, (P,).
        points: code points of the concatenated texts, (n,).
        bounds: start of each text, (K+1,), 0 to n.

    Returns:
        First, source, piece, score as in `Lattice`, and -1, or the position at which the first text that is not a
        concatenation of pieces fails.
    """
    n = len(points)
    text = _classified(points, classes)
    reached = np.zeros(n + 1, dtype=np.bool_)
    reached[0] = True
    source = np.empty(4 * n + 64, dtype=np.int32)
    end, piece = np.empty_like(source), np.empty_like(source)
    first = np.zeros(n + 2, dtype=np.int64)
    found, at, stuck, k, pruned = 0, 0, -1, 0, False
    while k < len(bounds) - 1 and stuck < 0:
        high = bounds[k + 1]
        found, at, dead = _scan(slots, pieces, text, at, high, reached, first, source, end, piece, found)
        pruned |= dead
        if at < high:
            source, end, piece = _longer(source), _longer(end), _longer(piece)
            continue
        k += 1
        if not reached[at]:
            stuck = at
            while not reached[stuck]:
                stuck -= 1
    if stuck >= 0:
        return first, source[:0], piece[:0], np.empty(0), stuck
    kept = found
    if pruned:
        leads = np.zeros(n + 1, dtype=np.bool_)
        leads[n] = True
        for w in range(found - 1, -1, -1):
            if leads[end[w]]:
                leads[source[w]] = True
            else:
                first[end[w]] -= 1
                end[w] = 0
                kept -= 1
    total = 0
    for i in range(n + 2):
        total, first[i] = total + first[i], total
    # first[i] moves from the start of the arcs to i to their end, which is the start of the next
    sources = np.empty(kept, dtype=np.int32)
    kinds = np.empty(kept, dtype=np.int32)
    score = np.empty(kept)
    for w in range(found):
        if end[w] > 0:
            place = first[end[w]]
            first[end[w]] = place + 1
            sources[place] = source[w]
            kinds[place] = piece[w]
            score[place] = scores[piece[w]]
    for i in range(n + 1, 0, -1):
        first[i] = first[i - 1]
    first[0] = 0
    return first, sources, kinds, score, -1
