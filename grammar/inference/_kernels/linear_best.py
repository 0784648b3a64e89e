"""Kernel: the most probable path of a sentence through the automaton of a linear grammar."""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import ChildRules, LexicalRules, SparseRows


@kernel
def _raise(best, listed, size, at, value):
    """Whether ``value`` is above ``best[at]``, which it then replaces; ``listed[:size[0]]`` are the finite entries."""
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
    """The most probable path of ``words`` (n,), -1 unknown, in log space.

    States, tags and moves are those of `LinearAutomaton`, the two children of a move its tag and the state it comes to.
    ``chains`` (by the state that a move comes to) and ``above`` are best chains of unary rules in place of sums.

    Returns:
        Its log probability, -inf where there is none; and for j = 0..n, each (n+1,), the state that the j-th move comes
        to, the state at the other end of the chain there, the tag of the move, and the symbol that makes its word.
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
