"""Numba kernels: reading text with an n-gram model: scores, distributions, samples.

The state of a text is a context: the longest n-gram of the trie, shorter than the order, that the text ends in. The
trie is numbered as in `_kernels.counts`; the n-grams of one token are numbers 1 to K in the order of
the tokens. ``strict`` is for a model that expects nothing after a context that was never seen in full.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.lmtrain.architectures.ngram._kernels.trie import TrieArrays

Array = Any  # numpy arrays; element types are in the docstrings


@kernel
def _child(trie: TrieArrays, node: int, token: int) -> int:
    """Return the n-gram ``node`` continued by ``token``; -1 when it is not in the trie."""
    start, word = trie.start, trie.word
    if node == 0:
        return 1 + token
    low, high = start[node], start[node + 1]
    while low < high:
        middle = (low + high) >> 1
        if word[middle] < token:
            low = middle + 1
        else:
            high = middle
    return low if low < start[node + 1] and word[low] == token else -1


@kernel
def _step(trie: TrieArrays, node: int, length: int, token: int) -> tuple[float, int, int]:
    """Log probability of a token after a context of ``length`` tokens, and the next context with its length."""
    _, _, suffix, log_prob, backoff = trie
    total = 0.0
    while True:
        child = _child(trie, node, token)
        if child >= 0:
            break
        total += backoff[node]
        node = suffix[node]
        length -= 1
    total += log_prob[child]
    if child < len(backoff):
        return total, child, length + 1
    return total, suffix[child], length


@kernel
def score(
    trie: TrieArrays,
    order: int,
    strict: bool,
    tokens: Array,
    ends: Array,
) -> Array:
    """Return the log probability of every token after the first of each sentence, -inf for probability zero.

    Args:
        trie: see `TrieArrays`.
        order: longest n-gram.
        strict: see above.
        tokens: (T,) int32, ``<bos> w1 .. wn <eos>`` sentence by sentence.
        ends: (S,) int64, where each sentence ends.

    Returns:
        (T - S,), nats.
    """
    result = np.empty(len(tokens) - len(ends))
    at = begin = 0
    for s in range(len(ends)):
        node = 1 + tokens[begin] if order > 1 else 0
        length = 1 if order > 1 else 0
        for i in range(begin + 1, ends[s]):
            seen = length == min(order - 1, i - begin)
            value, node, length = _step(trie, node, length, tokens[i])
            result[at] = value if seen or not strict else -np.inf
            at += 1
        begin = ends[s]
    return result


@kernel
def contexts(
    trie: TrieArrays,
    order: int,
    tokens: Array,
    ends: Array,
) -> Array:
    """The context before every token after the first of each sentence, (T - S,) int32; arguments as for `score`."""
    result = np.empty(len(tokens) - len(ends), dtype=np.int32)
    at = begin = 0
    for s in range(len(ends)):
        node = 1 + tokens[begin] if order > 1 else 0
        for i in range(begin + 1, ends[s]):
            result[at] = node
            _, node, _ = _step(trie, node, 0, tokens[i])
            at += 1
        begin = ends[s]
    return result


@kernel
def look_up(
    trie: TrieArrays,
    nodes: Array,
    tokens: Array,
) -> tuple[Array, Array]:
    """Return the log probability of one token after each of R contexts ``nodes``, and the contexts then, (R,) int64."""
    values = np.empty(len(nodes))
    after = np.empty(len(nodes), dtype=np.int64)
    for r in range(len(nodes)):
        values[r], after[r], _ = _step(trie, nodes[r], 0, tokens[r])
    return values, after


@kernel
def advance(
    trie: TrieArrays,
    nodes: Array,
    lengths: Array,
    tokens: Array,
) -> None:
    """Extend R texts by one token each: contexts ``nodes`` and their ``lengths`` (R,) int64 are replaced."""
    for r in range(len(nodes)):
        _, nodes[r], lengths[r] = _step(trie, nodes[r], lengths[r], tokens[r])


@kernel
def sum_paths(
    trie: TrieArrays,
    allowed: Array,
    begin: int,
    source: Array,
    first: Array,
    tokens: Array,
    most: int,
) -> tuple[Array, Array, Array, int]:
    """Run a forward pass over the arcs of a lattice, with the contexts of the model as states.

    Args:
        trie: as for `score`.
        allowed: (C,) true if anything can follow the context.
        begin: context before the lattice.
        source: (A,) position that each arc comes from; arcs are sorted by their end.
        first: (n+2,) arcs that end at position i are ``first[i]`` to ``first[i+1] - 1``.
        tokens: (A,) int32, of the model.
        most: states after which the pass stops.

    Returns:
        Of each state, in order of position: its context and the log probability of all paths to it; where the states of
        each position begin, (n+2,); and the number of steps. If the pass stopped early, the last position has no
        states.
    """
    n = len(first) - 2
    place = np.full(len(trie.backoff), -1, dtype=np.int64)  # last state of each context
    node, log_p = np.empty(64, dtype=np.int64), np.zeros(64)
    at = np.zeros(n + 2, dtype=np.int64)
    node[0] = begin
    at[1] = size = 1
    steps = 0
    for position in range(1, n + 1):
        for a in range(first[position], first[position + 1]):
            for s in range(at[source[a]], at[source[a] + 1]):
                if not allowed[node[s]]:
                    continue
                value, context, _ = _step(trie, node[s], 0, tokens[a])
                if value == -np.inf:
                    continue
                steps += 1
                new = log_p[s] + value
                t = place[context]
                if t >= at[position]:
                    top = max(log_p[t], new)
                    log_p[t] = top + np.log(np.exp(log_p[t] - top) + np.exp(new - top))
                    continue
                if size == len(node):
                    node, log_p = _doubled(node), _doubled(log_p)
                place[context], node[size], log_p[size] = size, context, new
                size += 1
        at[position + 1] = size
        if size > most:
            at[position + 1 :] = size
            break
    return node[:size], log_p[:size], at, steps


@kernel
def _doubled(array: Array) -> Array:
    """Return the array at the beginning of one twice as long."""
    longer = np.empty(2 * len(array), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@kernel
def expect(
    trie: TrieArrays,
    order: int,
    strict: bool,
    nodes: Array,
    lengths: Array,
    position: int,
    column: Array,
    result: Array,
) -> None:
    """Fill in the log probability of every next token.

    Args:
        trie: see `TrieArrays`.
        order: longest n-gram.
        strict: see above.
        nodes: (R,) int64, contexts.
        lengths: (R,) int64, tokens of each context.
        position: tokens before the next one, ``<bos>`` not counted.
        column: (K,) int64, column of the probability of each token; -1: none.
        result: (R, C) float32 or float64, to be filled; columns that no token has are left alone.
    """
    start, word, suffix, log_prob, backoff = trie
    chain = np.empty(order, dtype=np.int64)
    for r in range(len(nodes)):
        if strict and lengths[r] < min(order - 1, position + 1):
            for token in range(len(column)):
                if column[token] >= 0:
                    result[r, column[token]] = -np.inf
            continue
        node = nodes[r]
        depth = 0
        total = 0.0
        while node > 0:
            chain[depth] = node
            depth += 1
            total += backoff[node]
            node = suffix[node]
        for token in range(len(column)):
            if column[token] >= 0:
                result[r, column[token]] = total + log_prob[1 + token]
        for i in range(depth - 1, -1, -1):  # shorter contexts first, so that longer ones overwrite them
            total = 0.0
            for j in range(i):
                total += backoff[chain[j]]
            for child in range(start[chain[i]], start[chain[i] + 1]):
                if column[word[child]] >= 0:
                    result[r, column[word[child]]] = total + log_prob[child]
