"""Kernels: inside, prefix and outside probabilities of single sentences that visit only nonzero cells.

A cell is a span and a symbol that can cover it. A chart is a list of cells, column by column (a column: all spans with
one end). Each new cell is combined as a right child with the cells to its left, found by links, so time is proportional
to the nonzero cells, not to the spans. `causal` processes dense charts, in batches. Scales and caps are the same.
"""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import (
    Begun,
    Branches,
    CellPass,
    CellRules,
    Cells,
    ColumnSums,
    OwedSteps,
    OwedWindow,
    RuleGroups,
    Space,
    SparseRows,
)

SPREAD_SHARE = 8  #: a sentence may need one in this many of the sums over tokens owed
OUTSIDE = 4  #: operations that the outside pass may need, relative to the inside pass


@kernel
def _add(sums, listed, n_listed, i, symbol, amount):
    """Add to the sum of a span; an amount that underflowed leaves no trace."""
    if amount > 0.0:
        if sums[i, symbol] == 0.0:
            listed[i, n_listed[i]] = symbol
            n_listed[i] += 1
        sums[i, symbol] += amount


@kernel
def _close(column: ColumnSums, i, rows: SparseRows, closed, symbols):
    """Apply unary chains over one span: ``closed = M^T sums`` for a sparse matrix M by rows; return the count."""
    sums, listed, n_listed = column
    row_start, target, value = rows
    count = 0
    for x in range(n_listed[i]):
        b = listed[i, x]
        weight = sums[i, b]
        sums[i, b] = 0.0
        for e in range(row_start[b], row_start[b + 1]):
            amount = value[e] * weight
            if amount > 0.0:
                a = target[e]
                if closed[a] == 0.0:
                    symbols[count] = a
                    count += 1
                closed[a] += amount
    n_listed[i] = 0
    return count


@kernel
def _place(omega, listed, n_listed, marked, c, width):
    """Add a symbol to those that can start next, if it is new."""
    if not marked[c]:
        marked[c] = True
        listed[n_listed[0]] = c
        n_listed[0] += 1
        omega[c, :width] = 0.0


@kernel(fastmath={"contract"})
def _climb(begun: Begun, j, c, low, high, width, chains: SparseRows):
    """Add ``omega[c, low:high]`` to the rows of the symbols at the ends of its chains."""
    rows, symbol, number, until, omega, _, _, _ = begun
    chain_start, chain_to, chain_weight = chains
    for e in range(chain_start[c], chain_start[c + 1]):
        a = chain_to[e]
        if number[j, a] < 0:
            number[j, a] = until[j]
            symbol[until[j]] = a
            rows[until[j], :width] = 0.0
            until[j] += 1
        row = number[j, a]
        for r in range(low, high):
            rows[row, r] += chain_weight[e] * omega[c, r]


@kernel(fastmath={"contract"})
def _owe(begun: Begun, row, low, high, width, steps: OwedSteps):
    """Add ``rows[row, low:high]``, plus further tokens owed, to the left corners below it; return the product count."""
    rows, symbol, _, _, omega, listed, n_listed, marked = begun
    while low < high and rows[row, low] == 0.0:
        low += 1
    while low < high and rows[row, high - 1] == 0.0:
        high -= 1
    if low == high:
        return 0
    products = 0
    for s in range(steps.start[symbol[row]], steps.start[symbol[row] + 1]):
        c, first, last = steps.child[s], steps.first[s], min(steps.last[s], width - 1 - low)
        if first > last:
            continue
        _place(omega, listed, n_listed, marked, c, width)
        if high - low <= last - first:  # the longer loop is the inner one
            for r in range(low, high):
                weight = rows[row, r]
                for d in range(first, min(last + 1, width - r)):
                    omega[c, r + d] += steps.mass[s, d] * weight
        else:
            for d in range(first, last + 1):
                weight = steps.mass[s, d]
                for r in range(low, min(high, width - d)):
                    omega[c, r + d] += weight * rows[row, r]
        products += (high - low) * (last + 1 - first)
    return products


@kernel
def _spread(begun: Begun, j, width, steps: OwedSteps, chains: SparseRows):
    """Compute weights of symbols that can start after word j, by tokens owed below ``width``; ``omega`` is used up.

    ``chains`` keep the number of tokens owed, each left corner of a binary rule in ``steps`` adds the yield of its
    right sister. Symbols that are left corners of each other are processed together, from few to many tokens owed.

    Returns:
        Whether the sums over ``steps`` were few enough to continue.
    """
    number, until, listed, n_listed, marked = begun.row, begun.until, begun.listed, begun.n_listed, begun.marked
    until[j] = until[j - 1] if j > 0 else 0
    allowed = steps.child.size * width * width // 2 // SPREAD_SHARE
    if steps.order.size == 0:  # sentences of any length: `chains` hold the left-corner closure
        for x in range(n_listed[0]):
            _climb(begun, j, listed[x], 0, width, width, chains)
    for k in range(steps.block.size - 1):
        block = steps.order[steps.block[k] : steps.block[k + 1]]
        step = 1 if steps.loop[k] else max(width, 1)
        for r in range(0, width, step):
            for c in block:
                if marked[c]:
                    _climb(begun, j, c, r, r + step, width, chains)
            for a in block:
                if number[j, a] >= 0:
                    allowed -= _owe(begun, number[j, a], r, r + step, width, steps)
        if allowed < 0:
            break
    for x in range(n_listed[0]):
        marked[listed[x]] = False
    n_listed[0] = 0
    return allowed >= 0


@kernel
def _starts(begun: Begun, j, width, low, starts):
    """Sum over ``low`` or more tokens owed of position j into ``starts`` (S,); return total and smallest weight."""
    rows, symbol, until = begun.rows, begun.symbol, begun.until
    starts[:] = 0.0
    total, smallest = 0.0, np.inf
    for row in range(until[j - 1] if j > 0 else 0, until[j]):
        fewer, allowed = 0.0, 0.0
        for r in range(width):
            weight = rows[row, r]
            if weight > 0.0:
                smallest = min(smallest, weight)
            if r < low:
                fewer += weight
            else:
                allowed += weight
        total += fewer + allowed
        starts[symbol[row]] = allowed
    return total, smallest


@kernel
def _advance(begun: Begun, cells: Cells, first, last, width, groups: RuleGroups):
    """Add ``p begun[i, A] B(i, j)[b]`` for rules A -> b c, which start after cells ``first..last-1`` of a column."""
    rows, _, number, _, omega, listed, n_listed, marked = begun
    group_start, parent, rule_start, right, prob = groups
    for x in range(first, last):
        i, b, inside = cells.begin[x], cells.symbol[x], cells.value[x]
        for g in range(group_start[b], group_start[b + 1]):
            row = number[i, parent[g]]
            if row < 0:
                continue
            for e in range(rule_start[g], rule_start[g + 1]):
                weight, c = prob[e] * inside, right[e]
                _place(omega, listed, n_listed, marked, c, width)
                for r in range(width):
                    omega[c, r] += weight * rows[row, r]


@kernel
def _last(n_listed, i):
    """Return the last span up to ``i`` that has a sum; a separate loop, since inline it would count references."""
    while i >= 0 and n_listed[i] == 0:
        i -= 1
    return i


@kernel
def _column(word, j, scale, cap, allowed, cells: Cells, count, space: Space, rules: CellRules, capped, smallest):
    """Compute the cells of spans that end after word j; ``capped`` (2,), ``smallest`` (n+1,) are as in the pass.

    Returns:
        The number of cells, and the operations left of ``allowed``, below zero if they were too few.
    """
    sums, listed, n_listed = space.column
    begun, last_end, last_begin = space.begun.row, space.last_end, space.last_begin
    closed, symbols = space.closed, space.listed
    group_start, second, rule_start, third, prob = rules.by_right
    lex_start, lex_parent, lex_prob = rules.lexicon
    begin, end, symbol, weight, same_end, same_begin = cells
    if word >= 0:
        for r in range(lex_start[word], lex_start[word + 1]):
            _add(sums, listed, n_listed, j, lex_parent[r], lex_prob[r] * scale)
    i = _last(n_listed, j)
    while i >= 0 and allowed >= 0:
        n_closed = _close(space.column, i, rules.chains, closed, symbols)
        allowed -= n_closed
        for x in range(n_closed):
            a = symbols[x]
            value = min(closed[a], cap)
            closed[a] = 0.0
            if count == begin.size:
                allowed = np.int64(-1)
                continue
            if not value < cap:
                capped[0] = True
                capped[1] |= begun[i, a] >= 0
            smallest[j + 1] = min(smallest[j + 1], value)
            begin[count], end[count], symbol[count], weight[count] = i, j + 1, a, value
            same_end[count], same_begin[count] = last_end[j + 1, a], last_begin[i, a]
            last_end[j + 1, a] = last_begin[i, a] = count
            count += 1
            for g in range(group_start[a], group_start[a + 1]):
                left = last_end[i, second[g]]
                while left >= 0:
                    product = weight[left] * value
                    for e in range(rule_start[g], rule_start[g + 1]):
                        _add(sums, listed, n_listed, begin[left], third[e], prob[e] * product)
                    allowed -= rule_start[g + 1] - rule_start[g]
                    left = same_end[left]
            allowed -= group_start[a + 1] - group_start[a]
        i = _last(n_listed, i - 1)
    return count, allowed


@kernel
def _outside(n, start, cap, allowed, cells: Cells, space: Space, rules: CellRules, leaves):
    """Compute outside weights of the preterminals, unary chains above them included, in ``leaves`` (n, S).

    Columns from the last to the first, spans of each from the longest. Contributions of a span to the left child of a
    rule, whose column comes later, wait in a list of that column.

    Returns:
        Whether an entry was capped, and the operations left of ``allowed``, below zero if they were too few.
    """
    sums, listed, n_listed = space.column
    last_end, last_begin, closed, symbols = space.last_end, space.last_begin, space.closed, space.listed
    group_start, second, rule_start, third, prob = rules.by_parent
    begin, end, _, inside, same_end, same_begin = cells
    latest = np.full(n + 1, -1, np.int32)  # the last waiting addition of each column
    before, at, child, amount = space.waiting
    count = 0
    capped = False
    leaves[:] = 0.0
    for j in range(n, 0, -1):
        if j == n:
            _add(sums, listed, n_listed, 0, start, 1.0)
        waiting = latest[j]
        while waiting >= 0:
            _add(sums, listed, n_listed, at[waiting], child[waiting], amount[waiting])
            waiting = before[waiting]
        for i in range(j):
            if n_listed[i] == 0:
                continue
            n_closed = _close(space.column, i, rules.closure, closed, symbols)
            for x in range(n_closed):
                a = symbols[x]
                value = min(closed[a], cap)
                closed[a] = 0.0
                capped |= not value < cap
                if j - i == 1:
                    leaves[i, a] = value
                    continue
                for g in range(group_start[a], group_start[a + 1]):
                    b = second[g]
                    for e in range(rule_start[g], rule_start[g + 1]):
                        c, weight = third[e], prob[e] * value
                        allowed -= 1
                        left = last_begin[i, b]
                        while left >= 0:
                            if end[left] < j:
                                _add(sums, listed, n_listed, end[left], c, weight * inside[left])
                            allowed -= 1
                            left = same_begin[left]
                        right = last_end[j, c]
                        while right >= 0:
                            k = begin[right]
                            if k > i and count == at.size:
                                allowed = np.int64(-1)
                            elif k > i:
                                before[count], at[count], child[count] = latest[k], i, b
                                amount[count] = weight * inside[right]
                                latest[k] = count
                                count += 1
                            allowed -= 1
                            right = same_end[right]
            if allowed < 0:
                return capped, allowed
    return capped, allowed


@kernel
def _forget(kept, n, cells: Cells, count, space: Space):
    """Restore ``space``, which holds ``count`` cells, to its state after ``kept - 1`` words; 0: before a sentence."""
    begun, column = space.begun, space.column
    for x in range(count - 1, (space.cells_after[kept - 1] if kept > 0 else 0) - 1, -1):
        space.last_end[cells.end[x], cells.symbol[x]] = cells.same_end[x]
        space.last_begin[cells.begin[x], cells.symbol[x]] = cells.same_begin[x]
    first = begun.until[kept - 1] if kept > 0 else 0
    for j in range(kept, n + 1):
        for row in range(first, begun.until[j]):
            begun.row[j, begun.symbol[row]] = -1
        first = max(first, begun.until[j])
        begun.until[j] = 0
    for x in range(begun.n_listed[0]):
        begun.marked[begun.listed[x]] = False
    begun.n_listed[0] = 0
    for i in range(n):
        for x in range(column.n_listed[i]):
            column.sums[i, column.listed[i, x]] = 0.0
        column.n_listed[i] = 0


@kernel
def _open(j, w, window: OwedWindow, space: Space, steps, corners, run: CellPass, starts):
    """Write what can start after j words to ``starts`` (S,) and column ``w``; return False if it took too many sums."""
    width = 1 if window.free else max(window.high - j, 0)
    if not _spread(space.begun, j, width, steps, corners):
        return False
    fewest = 0 if window.free else window.low - j - 1
    run.totals[j, w], run.smallest[1, j, w] = _starts(space.begun, j, width, fewest, starts)
    return True


@kernel
def _sentence(words, w, start, window: OwedWindow, cap, limit, steps, corners, rules, space, run, branches):
    """Make a left-to-right pass over column ``w`` of ``words`` (n, W), then over its branches.

    Returns:
        The numbers of cells and of operations of the sentence, and whether the allowed operations were enough.
    """
    n, columns = words.shape
    low, high, weight, free = window
    cells = space.chart
    n_listed, marked, omega = space.begun.n_listed, space.begun.marked, space.begun.omega
    dead, operations = False, np.int64(0)
    count = np.int64(0)
    _place(omega, space.begun.listed, n_listed, marked, start, omega.shape[1])
    omega[start, 0] = weight
    if not _open(0, w, window, space, steps, corners, run, run.starts[w, 0]):
        return count, operations, False
    space.cells_after[0], space.used[0] = 0, 0
    for step in range(n + branches.first[w + 1] - branches.first[w]):
        j, word, into = step, np.int32(0), w
        if step < n:
            word, later = words[step, w], run.starts[w, step + 1]
        else:
            b = branches.first[w] + step - n
            j, word, into, later = branches.after[b], branches.word[b], columns + b, run.after[b]
            _forget(j + 1, n, cells, count, space)
            count = space.cells_after[j]
        starts, total = run.starts[w, j], 0.0
        if word >= 0:
            for r in range(rules.lexicon.start[word], rules.lexicon.start[word + 1]):
                total += starts[rules.lexicon.parent[r]] * rules.lexicon.prob[r]
        if step < n and dead:
            starts[:] = 0.0
        elif step < n:
            run.conditional[j, w] = total
            dead = total == 0.0
        else:
            run.conditional[j, into] = total
            if total == 0.0:
                later[:] = 0.0
                run.cells[into] = count
                continue
        scale = 1.0 / total if total > 0.0 else 1.0
        run.scales[j, into] = scale
        first = count
        count, left = _column(
            word, j, scale, cap, limit * (j + 1) - space.used[j], cells, first, space, rules,
            run.capped[:, into], run.smallest[0, :, into],
        )  # fmt: skip
        used = limit * (j + 1) - left
        done = left >= 0
        if done:
            whole = space.last_end[j + 1, start]
            if (free or low <= j + 1 <= high) and whole >= 0 and cells.begin[whole] == 0:
                run.stop[j + 1, into] = weight * cells.value[whole]
            _advance(space.begun, cells, first, count, 1 if free else max(high - j - 1, 0), rules.by_left)
            if step < n and dead and free and n_listed[0] == 0:
                for c in range(marked.size):
                    _place(omega, space.begun.listed, n_listed, marked, c, 1)
                    omega[c, 0] = 1.0
            done = _open(j + 1, into, window, space, steps, corners, run, later)
        if step < n:
            space.cells_after[j + 1], space.used[j + 1], operations = count, used, used
            if not done:
                return count, operations, False
            run.cells[w] = count
            if dead and j + 1 == n:
                later[:] = 0.0
        elif done:
            run.cells[into] = count
    return count, operations, True


@kernel
def passes(words, start, window, cap, limit, steps: OwedSteps, corners, rules, space, run, branches: Branches):
    """Make a left-to-right pass over each column of ``words`` (n, W), -1 unknown; the results are written to ``run``.

    Sentences that need more than about ``limit`` operations a word are given up. Impossible words are treated as in
    `causal.free` and `causal.conditioned`. ``corners`` are the rows of the left-corner closure, with no ``steps``;
    given a range of lengths, the rows of the unary closure. If ``run.leaves`` has rows, outside weights are computed,
    of sentences without branches.
    """
    n, width = words.shape
    for w in range(width):
        count, run.operations[w], done = _sentence(
            words, w, start, window, cap, limit, steps, corners, rules, space, run, branches
        )
        if done and run.leaves.shape[1] > 0:
            run.capped[2, w], left = _outside(
                n, start, cap, OUTSIDE * limit * n, space.chart, space, rules, run.leaves[w]
            )
            done = left >= 0
        if not done:
            run.cells[w] = -1
            run.capped[:, w] = True
        _forget(0, n, space.chart, count, space)
