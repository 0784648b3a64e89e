"""Multiply-adds of the hot kernels, and the bytes they move: counted from what each kernel was given and found.

``with counting() as tally: work()`` runs ``work`` with a count after each call of a kernel. A count follows the loops
of its kernel over what is not zero, so it is exact up to numbers that underflow. One product that is added to something
is one multiply-add, whatever the precision; scaling, comparisons and searches are none. Sentences side by side count
all, also where only some of them need a number. Bytes are those of operands that do not stay in the first-level cache
while the innermost loop but one goes on; each part has the size of the array that it goes over again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from truesource.grammar._kernels.kernel import WIDTH, kernel
from truesource.grammar._kernels.rules import GapCells, GapSpans
from truesource.grammar.estimate.split_merge import _kernels as trees
from truesource.grammar.inference._kernels import causal, gaps, linear
from truesource.grammar.inference.spines import FreeSpine

Array = Any


class Part(NamedTuple):
    """What one loop of a kernel does."""

    adds: float  #: multiply-adds
    moved: float  #: bytes, of what is not in the first-level cache anyway
    size: float  #: bytes of the array that they are in


class Tally(list[Part]):
    """What all loops did."""

    @property
    def adds(self) -> float:
        """Multiply-adds."""
        return sum(part.adds for part in self)


# -- charts -------------------------------------------------------------------------------------------------------


@kernel
def sum_inside(words, present, pairs, closure, lexicon):
    """Splits that meet, rules of met pairs, closure entries, lexical rules."""
    n, n_states = words.shape[0], present.shape[1]
    splits, rules, chains, leaves = 0, 0, 0, 0
    for j in range(1, n + 1):
        for i in range(j):
            flags = np.zeros(n_states, np.bool_)
            if i == j - 1:
                for word in words[i]:
                    if word >= 0:
                        leaves += lexicon.start[word + 1] - lexicon.start[word]
                        for r in range(lexicon.start[word], lexicon.start[word + 1]):
                            flags[lexicon.parent[r]] = True
            for b in range(n_states):
                begun = False
                for k in range(i + 1, j):
                    begun |= present[k * (k - 1) // 2 + i, b]
                for p in range(pairs.by_left[b], pairs.by_left[b + 1] if begun else 0):
                    met = 0
                    for k in range(i + 1, j):
                        met += present[k * (k - 1) // 2 + i, b] & present[j * (j - 1) // 2 + k, pairs.right[p]]
                    splits += met
                    for r in range(pairs.rule_start[p], pairs.rule_start[p + 1] if met else 0):
                        rules += 1
                        flags[pairs.parent[r]] = True
            for e in closure.column:
                chains += flags[e]
    return splits, rules, chains, leaves


@kernel
def sum_starts(start, present, alive, rooms, groups, corners):
    """Meetings of what has begun and what ends, rules of these, and corners of what can start (of those alone)."""
    n, n_states = alive.shape[0] - 1, alive.shape[1]
    met, rules, steps = 0, 0, 0
    omega = np.zeros(n_states, np.bool_)
    omega[start] = True
    for j in range(n + 1):
        for a in range(n_states):
            if omega[a]:
                steps += corners.start[a + 1] - corners.start[a]
        omega[:] = False
        for a in range(n_states if j < n else 0):
            for g in range(groups.group_start[a], groups.group_start[a + 1] if alive[: j + 1, a].any() else 0):
                b, found = groups.second[g], 0
                for i in range(j + 1):
                    found += alive[i, a] & present[(j + 1) * j // 2 + i, b]
                met += found * rooms[j + 1]
                for e in range(groups.rule_start[g], groups.rule_start[g + 1] if found else 0):
                    rules += rooms[j + 1]
                    omega[groups.third[e]] = True
    return met, rules, steps


@kernel
def sum_outside(inside, n, start, present, pairs, closure):
    """Closure entries, rules of pairs that are asked for, and splits, each adding to one child; lanes are bits."""
    n_states, width = present.shape[1], inside.shape[2]
    chains, rules, splits = 0, 0, 0
    lanes, above = np.zeros(present.shape, np.int64), np.zeros(present.shape, np.int64)
    for span in range(len(present)):
        for a in range(n_states):
            for w in range(width if present[span, a] else 0):
                lanes[span, a] |= np.int64(inside[span, a, w] != 0.0) << w
    above[n * (n - 1) // 2, start] = -1
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            flags = np.zeros(n_states, np.int64)
            for a in range(n_states):
                if above[j * (j - 1) // 2 + i, a] != 0:
                    for e in range(closure.start[a], closure.start[a + 1]):
                        flags[closure.column[e]] |= above[j * (j - 1) // 2 + i, a]
                        chains += 1
            for p in range(pairs.left.size if length > 1 else 0):
                b, c = pairs.left[p], pairs.right[p]
                some = 0
                for r in range(pairs.rule_start[p], pairs.rule_start[p + 1]):
                    some |= flags[pairs.parent[r]]
                    rules += flags[pairs.parent[r]] != 0
                for k in range(i + 1, j if some != 0 else 0):
                    left, right = k * (k - 1) // 2 + i, j * (j - 1) // 2 + k
                    above[left, b] |= some & lanes[right, c]
                    above[right, c] |= some & lanes[left, b]
                    splits += np.int64(present[right, c]) + np.int64(present[left, b])
    return chains, rules, splits


def _bytes(*arrays: Array) -> int:
    return sum(array.nbytes for array in arrays)


def _chart(words: Array, start: int, corners: Array, rules: Array, found: Any, rooms: Array) -> list[Part]:
    """A pass without what is owed: operands that are read again and again are a column of the chart, or all symbols."""
    n, width = words.shape
    item, pairs = found.inside.itemsize, rules.pairs
    splits, applied, chains, leaves = sum_inside(words, found.present, pairs, rules.closure, rules.lexicon)
    alive = found.begun.any(axis=(2, 3))
    met, after, steps = sum_starts(start, found.present, alive, rooms, rules.groups, corners)
    line = width * item  # bytes
    column, states = found.present.sum() / n * line, found.present.shape[1] * line
    tables = _bytes(pairs.right, pairs.rule_start, pairs.parent, pairs.prob)
    groups = _bytes(rules.groups.second, rules.groups.third, rules.groups.prob)
    free = len(rooms) == 0 or int(rooms.max()) == 1
    result = [
        Part(splits * width, splits * line, column),  # one line of a left child, in the cache, with those of right ones
        Part(applied * width, 2 * applied * line, states),  # a sum of splits, in the cache, added to each parent
        Part(0, n * (n - 1) / 2 * tables, tables),  # read once a span
        Part(chains * width, chains * line, states),  # lower ends of unary chains, to one upper end in the cache
        Part(2 * leaves, 2 * leaves * item, states),  # number by number: into the chart, and P(word | prefix)
        Part(met * width, met * line, column),  # one line of what has begun, with cells of the column that ended
        Part(after * width, 2 * after * line, states * rooms.max()),  # added to what can start
        Part(0, n * groups, groups),
    ]
    if free:
        result += [Part(steps * width, 2 * steps * line, states), Part(0, (n + 1) * 12 * len(corners.column), states)]
    return result


def count_free(words: Array, start: int, _cap: Any, corners: Any, rules: Any, found: Any) -> list[Part]:
    """Inside: pairs times splits, rules a span. Starts: parents and left children times starts, rules a word."""
    return _chart(words, start, corners, rules, found, np.ones(len(words) + 1, np.int64))


def count_conditioned(*arguments: Any) -> list[Part]:
    """As `count_free`, the starts times tokens owed; left corners times pairs of tokens owed before and after.

    Pairs count that differ by what the right sister may yield.
    The closure of what can start is counted for all symbols that do start, which is slightly too much.
    """
    words, start, _, high, _, _, block, corners, rules, found = arguments
    n, width = words.shape
    rooms = np.maximum(high - np.arange(n + 1), 0)
    result = _chart(words, start, corners, rules, found, rooms)
    some = (found.begun != 0.0).any(axis=3)  # (n+1, S, owed)
    uses = np.zeros((some.shape[1], high + 1), np.int64)  # left corners of a symbol after which fewer than d are owed
    np.add.at(uses, corners.column, np.pad((corners.value != 0.0).cumsum(axis=1), ((0, 0), (1, 0))))
    chains = np.diff(rules.closure.start)
    owed, closed = 0, 0
    for j, room in enumerate(rooms.tolist()):
        fewest = np.where(some[j].any(axis=1), some[j].argmax(axis=1), room)  # tokens owed
        for r in range(room):
            first = r - r % block
            owed += int((fewest < first) @ (uses[:, r + 1] - uses[:, r + 1 - first]))
            owed += int((fewest < r) @ (uses[:, r + 1 - first] - uses[:, 1]))
            closed += int(chains @ some[j, :, r])
    line = width * found.inside.itemsize
    states = some.shape[1] * line * high
    return [
        *result,
        Part(owed * width, owed * line, states),  # what begins with more owed, added to a block of lines in the cache
        Part(closed * width, 2 * closed * line, states),
        Part(0, (n + 1) * corners.value.nbytes, corners.value.nbytes),
    ]


def count_outside(*arguments: Any) -> list[Part]:
    """Rules that ask a pair, and twice pairs times splits."""
    inside, present, n, start, _, closure, pairs, _ = arguments
    chains, rules, splits = sum_outside(inside, n, start, present, pairs, closure)
    width, line = inside.shape[2], inside.shape[2] * inside.itemsize
    column, states = 2 * present.sum() / n * line, present.shape[1] * line
    tables = _bytes(pairs.right, pairs.rule_start, pairs.parent, pairs.prob)
    return [
        Part(chains * width, 2 * chains * line, states),
        Part(rules * width, rules * line, states),  # parents added up in the cache
        Part(splits * width, 1.5 * splits * line, column),  # right child: inside read, outside read and written
        Part(0, n * (n - 1) / 2 * tables, tables),
    ]


# -- words in any order -------------------------------------------------------------------------------------------


@kernel
def sum_cells(n, cells, rules):
    """Splits of pairs, rules of these whose parent is needed, and chains to a cell; of one group of lanes."""
    splits, applied, chains = 0, 0, 0
    low = np.zeros(cells.place.shape[1], np.bool_)
    for j in range(1, n + 1):
        for i in range(j):
            span = j * (j - 1) // 2 + i
            lows = cells.lows.item[cells.lows.begin[span] : cells.lows.end[span]]
            low[:] = False
            for b in lows:
                low[b] = True
                for e in range(rules.chains.start[b], rules.chains.start[b + 1]):
                    chains += cells.place[span, rules.chains.column[e]] >= 0
            for x in range(cells.pairs.begin[span], cells.pairs.end[span]):
                p = cells.pairs.item[x]
                for k in range(i + 1, j):
                    left = cells.place[k * (k - 1) // 2 + i, rules.pairs.left[p]]
                    splits += (left >= 0) & (cells.place[j * (j - 1) // 2 + k, rules.pairs.right[p]] >= 0)
                for r in range(rules.pairs.rule_start[p], rules.pairs.rule_start[p + 1]):
                    applied += low[rules.pairs.parent[r]]
    return splits, applied, chains


def count_fill(words: Array, _scales: Array, start: int, rules: Any, rows: Array, *_: Any) -> list[Part]:
    """Of cells alone, 8 lanes each: pairs times splits (three times with words asked for), rules and chains (twice).

    The two passes over bits that find the cells, and the words at gaps, are not multiply-adds of this count.
    """
    n, n_states = len(words), rules.sums.size
    n_spans, parts, whole = n * (n + 1) // 2, n // gaps.BITS + 1, n * (n - 1) // 2
    result = []
    for block in range(0, words.shape[1], gaps.LANES):
        shapes = ((n_spans, n_states), (n_spans, n_states), (n, n_states, parts), (n + 1, n_states, parts))
        spans = GapSpans(*(np.zeros(shape, np.int64) for shape in shapes))
        tops = gaps.find_upwards(words, block, rules, spans)
        lows, pairs = gaps.find_downwards(start, tops, rules, spans)
        tops = gaps.keep_needed(tops, spans)
        place = np.empty((n_spans, n_states), np.int32)
        cells = GapCells(gaps.room_for(tops), gaps.room_for(lows), gaps.room_for(pairs), place, spans.ahead, spans.back)
        for lane in range(0, min(gaps.LANES, words.shape[1] - block), WIDTH):
            if (int(spans.may[whole, start]) >> lane) & (2**WIDTH - 1):
                for every, kept in zip((tops, lows, pairs), cells[:3], strict=True):
                    gaps.keep_lane(every, lane, kept)
                gaps.number_cells(cells)
                splits, applied, chains = sum_cells(n, cells, rules)
                line, size, twice = 8 * WIDTH, 8 * WIDTH * int(cells.tops.end[-1]), 1 + (rows.size > 0)
                states = n_states * line
                result += [
                    Part(splits * (2 * twice - 1) * WIDTH, splits * (2 + 6 * (twice - 1)) * line, size * twice),
                    Part(applied * twice * WIDTH, applied * (1 + twice) * line, states),
                    Part(chains * twice * WIDTH, chains * twice * 2 * line, size),
                ]
    return result


# -- linear grammars ----------------------------------------------------------------------------------------------


@kernel
def _reads(word, lexicon, above, tags):
    """Which tags can read a word; the products that their weights take."""
    tags[:] = False
    n = 0
    for r in range(lexicon.start[word], lexicon.start[word + 1] if word >= 0 else 0):
        a = lexicon.parent[r]
        tags[tags.size // 2 + a] = True
        for k in range(above.start[a], above.start[a + 1]):
            tags[above.column[k]] = True
            n += 1
    return n


@kernel
def _pass(v, moves, given, where, other, out):
    """As the kernel of this name, whether in place of weight; two products for each move."""
    out[:] = False
    n = 0
    for q in np.flatnonzero(v):
        for s in range(moves.start[q], moves.start[q + 1]):
            if where[given[s]]:
                out[other[s]] = True
                n += 2
    return n


@kernel
def _spread(v, chains, out):
    """One product for each chain."""
    out[:] = False
    n = 0
    for q in np.flatnonzero(v):
        for k in range(chains.start[q], chains.start[q + 1]):
            out[chains.column[k]] = True
            n += 1
    return n


@kernel
def sum_forward_backward(words, backward, lexicon, automaton):
    """Products of a pass over each sentence, forward or also backward with the tags between."""
    ahead, back = automaton.ahead, automaton.back
    size = ahead.start.size - 1
    tags, between = np.zeros(2 * size - 2, np.bool_), np.zeros(2 * size - 2, np.bool_)
    n, total = words.shape[0], 0
    for w in range(words.shape[1]):
        bare, later, before = np.zeros(size, np.bool_), np.zeros(size, np.bool_), np.zeros((n + 1, size), np.bool_)
        bare[automaton.begin] = True
        total += _spread(bare, ahead.chains, before[0])
        for j in range(n):
            total += _reads(words[j, w], lexicon, automaton.above, tags)
            total += _pass(before[j], ahead, ahead.tag, tags, ahead.to, bare)
            total += _spread(bare, ahead.chains, before[j + 1])
            if not backward:
                total += bare.sum()
        if not backward:
            continue
        bare[:] = False
        bare[automaton.end] = True
        total += _spread(bare, back.chains, later)
        for j in range(n - 1, -1, -1):
            total += _pass(before[j], ahead, ahead.to, later, ahead.tag, between)
            total += 2 * _reads(words[j, w], lexicon, automaton.above, tags)
            total += between.sum() + (between & tags).sum()  # weights of all words at the place, and of this one
            total += _pass(later, back, back.tag, tags, back.to, bare)
            total += _spread(bare, back.chains, later)
    return total


def _automaton(words: Array, backward: bool, lexicon: Any, automaton: Any) -> list[Part]:
    total = sum_forward_backward(words, backward, lexicon, automaton)
    moves = automaton.ahead
    return [Part(total, 24 * total, _bytes(moves.tag, moves.to, moves.m, moves.e) + 24 * moves.start.size)]


def count_forward(words: Array, *given: Any) -> list[Part]:
    """Moves of the states that are reached by the tags of the word, two products each; chains; the sum over states."""
    *_, lexicon, automaton, _ = given
    return _automaton(words, False, lexicon, automaton)


def count_backward(words: Array, lexicon: Any, *given: Any) -> list[Part]:
    """Forward, backward, and the moves between the two; a product touches 24 bytes: places, mantissa and exponent."""
    return _automaton(words, True, lexicon, given[-2])


# -- strings of k words -------------------------------------------------------------------------------------------


def count_dense(matrix: Array, x: Any, _: Any) -> list[Part]:
    """A dense matrix of symbols by symbols, times strings; what joins children is one part in fifty beside it."""
    n, width = x.value.shape[1:]
    return [Part(n * n * width, matrix.nbytes, matrix.nbytes)]


# -- trees --------------------------------------------------------------------------------


def _of_nodes(nodes: Any, sizes: Array, entries: Any) -> tuple[Array, Array, float, float]:
    """Nodes and blocks of nodes of each rule (R,) above the words; numbers in vectors that are read; in all of them."""
    first = nodes.batches[:-1]
    number, rule = np.diff(nodes.batches), nodes.rule[first]
    of_rule = np.bincount(rule, number, len(sizes))
    blocks = np.bincount(rule, -(-number // trees.WIDTH), len(sizes))
    return of_rule, blocks, float(of_rule @ sizes.sum(axis=1)), float(nodes.offset[-1])


def _by_rule(entries: Any, of_pair: Array) -> Array:
    """Sums over the pairs of each base rule, (R,)."""
    sums = np.concatenate([[0], np.cumsum(of_pair)])
    return sums[entries.first_pair[1:]] - sums[entries.first_pair[:-1]]


def count_up(nodes: Any, sizes: Array, entries: Any, vector: Array, *_: Any) -> list[Part]:
    """For each node: pairs of substates of its children, and live rules of these."""
    of_rule, blocks, moved, every = _of_nodes(nodes, sizes, entries)
    live = (entries.end_live - entries.first_entry[:-1]).astype(np.int64)
    pairs, rules = _by_rule(entries, live > 0), _by_rule(entries, live)
    return _tree_parts(of_rule @ pairs, of_rule @ rules, 2.0, 1.0, blocks @ rules, moved, every, sizes, entries, vector)


def count_down(*arguments: Any) -> list[Part]:
    """Pairs three times, live rules twice (outside weights and counts), dormant ones once where they are awake."""
    nodes, sizes, entries, vector, _, _, asleep_too, *_ = arguments
    of_rule, blocks, moved, every = _of_nodes(nodes, sizes, entries)
    live = (entries.end_live - entries.first_entry[:-1]).astype(np.int64)
    awake = live > 0
    products = 2 * _by_rule(entries, awake) + _by_rule(entries, awake | bool(asleep_too))
    rules = 2 * _by_rule(entries, live)
    if asleep_too:
        rules += _by_rule(entries, np.diff(entries.first_entry) - live)
    return _tree_parts(
        of_rule @ products, of_rule @ rules, 1.0, 3.0, blocks @ rules / 2, moved, 2 * every, sizes, entries, vector
    )


def _tree_parts(
    pairs: float, rules: float, rows: float, passes: float, read: float, moved: float, every: float, *given: Any
) -> list[Part]:
    """Rows of substates by nodes (``rows`` numbers a rule), rules once for 128 nodes, vectors turned from memory."""
    sizes, entries, vector = given
    item = vector.itemsize
    return [
        Part(pairs + rules, rows * item * rules, 3 * int(sizes.max()) * trees.WIDTH * item),
        Part(0, read * (item + 4), _bytes(entries.substate, entries.prob)),
        Part(0, passes * item * moved, every * item),
    ]


# -- counting -----------------------------------------------------------------------------------------------------

KERNELS: dict[tuple[Any, str], Callable[..., Iterable[Part]]] = {
    (causal, "free"): count_free,
    (causal, "conditioned"): count_conditioned,
    (causal, "outside_leaves"): count_outside,
    (gaps, "fill"): count_fill,
    (linear, "causal"): count_forward,
    (linear, "masked"): count_backward,
    (FreeSpine, "_dense"): count_dense,
    (trees, "inside"): count_up,
    (trees, "outside"): count_down,
}


@contextmanager
def counting() -> Iterator[Tally]:
    """Count what the kernels do."""
    tally = Tally()

    def run(function: Callable[..., Any], count: Callable[..., Iterable[Part]], *arguments: Any) -> Any:
        result = function(*arguments)
        tally.extend(count(*arguments, result))
        return result

    with ExitStack() as stack:
        for (module, name), count in KERNELS.items():
            stack.enter_context(patch.object(module, name, partial(run, getattr(module, name), count)))
        yield tally
