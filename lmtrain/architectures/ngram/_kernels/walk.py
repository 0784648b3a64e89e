"""Numba kernels: reading text with an n-gram model: scores, distributions, samples.

The state of a text is a context: the longest n-gram of the trie, shorter than the order, that the text ends in. The
trie is numbered as in `_kernels.estimate`; the n-grams of one token are numbers 1 to K in the order of
the tokens. ``strict`` is for a model that expects nothing after a context that was never seen in full.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truesource.grammar._kernels.kernel import kernel

Array = Any  # numpy arrays; element types are in the docstrings

_TOP53 = np.int64((1 << 53) - 1)
_UNIT = 2.0**-53
_S11, _S17, _S19, _S45 = np.uint64(11), np.uint64(17), np.uint64(19), np.uint64(45)


@kernel
def _child(start: Array, word: Array, node: int, token: int) -> int:
    """The n-gram ``node`` continued by ``token``; -1 when it is not in the trie."""
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
def _step(
    start: Array, word: Array, suffix: Array, log_prob: Array, backoff: Array, node: int, length: int, token: int
) -> tuple[float, int, int]:
    """Log probability of a token after a context of ``length`` tokens, and the next context with its length."""
    total = 0.0
    while True:
        child = _child(start, word, node, token)
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
    start: Array,
    word: Array,
    suffix: Array,
    log_prob: Array,
    backoff: Array,
    order: int,
    strict: bool,
    tokens: Array,
    ends: Array,
) -> Array:
    """Log probability of every token after the first of each sentence, -inf for probability zero.

    Args:
        start: (C + 1,) int32, of the trie.
        word: (G,) int32, of the trie.
        suffix: (G,) int32, of the trie.
        log_prob: (G,) float64, of its n-grams.
        backoff: (C,) float64, of its contexts.
        order: longest n-gram.
        strict: see above.
        tokens: (T,) int32, ``<bos> w1 .. wn <eos>`` sentence by sentence.
        ends: (S,) int64, where each sentence ends.

    Returns:
        (T - S,), nats.
    """
    found = np.empty(len(tokens) - len(ends))
    at = begin = 0
    for s in range(len(ends)):
        node = 1 + tokens[begin] if order > 1 else 0
        length = 1 if order > 1 else 0
        for i in range(begin + 1, ends[s]):
            seen = length == min(order - 1, i - begin)
            value, node, length = _step(start, word, suffix, log_prob, backoff, node, length, tokens[i])
            found[at] = value if seen or not strict else -np.inf
            at += 1
        begin = ends[s]
    return found


@kernel
def contexts(
    start: Array,
    word: Array,
    suffix: Array,
    log_prob: Array,
    backoff: Array,
    order: int,
    tokens: Array,
    ends: Array,
) -> Array:
    """The context before every token after the first of each sentence, (T - S,) int32; arguments as for `score`."""
    found = np.empty(len(tokens) - len(ends), dtype=np.int32)
    at = begin = 0
    for s in range(len(ends)):
        node = 1 + tokens[begin] if order > 1 else 0
        for i in range(begin + 1, ends[s]):
            found[at] = node
            _, node, _ = _step(start, word, suffix, log_prob, backoff, node, 0, tokens[i])
            at += 1
        begin = ends[s]
    return found


@kernel
def look_up(
    start: Array,
    word: Array,
    suffix: Array,
    log_prob: Array,
    backoff: Array,
    nodes: Array,
    tokens: Array,
) -> tuple[Array, Array]:
    """Log probability of one token after each of R contexts ``nodes``, and the contexts then, (R,) int64."""
    values = np.empty(len(nodes))
    after = np.empty(len(nodes), dtype=np.int64)
    for r in range(len(nodes)):
        values[r], after[r], _ = _step(start, word, suffix, log_prob, backoff, nodes[r], 0, tokens[r])
    return values, after


@kernel
def advance(
    start: Array,
    word: Array,
    suffix: Array,
    log_prob: Array,
    backoff: Array,
    nodes: Array,
    lengths: Array,
    tokens: Array,
) -> None:
    """Go on with R texts by one token each: contexts ``nodes`` and their ``lengths`` (R,) int64 are replaced."""
    for r in range(len(nodes)):
        _, nodes[r], lengths[r] = _step(start, word, suffix, log_prob, backoff, nodes[r], lengths[r], tokens[r])


@kernel
def sum_paths(
    start: Array,
    word: Array,
    suffix: Array,
    log_prob: Array,
    backoff: Array,
    allowed: Array,
    begin: int,
    source: Array,
    first: Array,
    tokens: Array,
    most: int,
) -> tuple[Array, Array, Array, Array, Array, Array, Array, int]:
    """Forward pass over the arcs of a lattice, with the contexts of the model as states.

    Args:
        start: as for `score`.
        word: as for `score`.
        suffix: as for `score`.
        log_prob: as for `score`.
        backoff: as for `score`.
        allowed: (C,) whether anything is expected after each context.
        begin: context before the lattice.
        source: (A,) position that each arc comes from; arcs are sorted by their end.
        first: (n+2,) arcs that end at position i are ``first[i]`` to ``first[i+1] - 1``.
        tokens: (A,) int32, of the model.
        most: states after which the pass stops.

    Returns:
        Of each state, in order of position: its context, the log probability of all paths to it, the mean log
        probability of these, that of the most probable one, the state before it there, and its last arc (-1: none);
        where the states of each position begin, (n+2,); and the number of steps. No states stand at the last
        position where the pass stopped.
    """
    n = len(first) - 2
    place = np.full(len(backoff), -1, dtype=np.int64)  # last state of each context
    node, before, arc = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int64)
    log_p, mean, best = np.zeros(64), np.zeros(64), np.zeros(64)
    at = np.zeros(n + 2, dtype=np.int64)
    node[0], before[0], arc[0] = begin, -1, -1
    at[1] = size = 1
    steps = 0
    for position in range(1, n + 1):
        for a in range(first[position], first[position + 1]):
            for s in range(at[source[a]], at[source[a] + 1]):
                if not allowed[node[s]]:
                    continue
                value, context, _ = _step(start, word, suffix, log_prob, backoff, node[s], 0, tokens[a])
                if value == -np.inf:
                    continue
                steps += 1
                new, new_mean, new_best = log_p[s] + value, mean[s] + value, best[s] + value
                t = place[context]
                if t >= at[position]:
                    top = max(log_p[t], new)
                    old_share, new_share = np.exp(log_p[t] - top), np.exp(new - top)
                    mean[t] = (old_share * mean[t] + new_share * new_mean) / (old_share + new_share)
                    log_p[t] = top + np.log(old_share + new_share)
                    if new_best > best[t]:
                        best[t], before[t], arc[t] = new_best, s, a
                    continue
                if size == len(node):
                    node, before, arc = _doubled(node), _doubled(before), _doubled(arc)
                    log_p, mean, best = _doubled(log_p), _doubled(mean), _doubled(best)
                place[context] = size
                node[size], before[size], arc[size] = context, s, a
                log_p[size], mean[size], best[size] = new, new_mean, new_best
                size += 1
        at[position + 1] = size
        if size > most:
            at[position + 1 :] = size
            break
    return node[:size], log_p[:size], mean[:size], best[:size], before[:size], arc[:size], at, steps


@kernel
def _doubled(array: Array) -> Array:
    """The array at the beginning of one twice as long."""
    longer = np.empty(2 * len(array), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@kernel
def expect(
    start: Array,
    word: Array,
    suffix: Array,
    log_prob: Array,
    backoff: Array,
    order: int,
    strict: bool,
    nodes: Array,
    lengths: Array,
    position: int,
    column: Array,
    result: Array,
) -> None:
    """Log probability of every next token.

    Args:
        start: (C + 1,) int32, of the trie.
        word: (G,) int32, of the trie.
        suffix: (G,) int32, of the trie.
        log_prob: (G,) float64, of its n-grams.
        backoff: (C,) float64, of its contexts.
        order: longest n-gram.
        strict: see above.
        nodes: (R,) int64, contexts.
        lengths: (R,) int64, tokens of each context.
        position: tokens before the next one, ``<bos>`` not counted.
        column: (K,) int64, where the probability of each token stands; -1: nowhere.
        result: (R, C) float32 or float64, to be filled; columns that no token has are left alone.
    """
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
        for i in range(depth - 1, -1, -1):  # shorter contexts first, so that what longer ones know stands last
            total = 0.0
            for j in range(i):
                total += backoff[chain[j]]
            for child in range(start[chain[i]], start[chain[i] + 1]):
                if column[word[child]] >= 0:
                    result[r, column[word[child]]] = total + log_prob[child]


@kernel
def _uniform(state: Array) -> float:
    """One float64 in [0, 1) from xoshiro256, as `generator._kernels.uniform`; ``state`` (4,) uint64 moves on."""
    mixed = (np.int64(state[0] >> _S11) + np.int64(state[3] >> _S11)) & _TOP53
    carried = state[1] << _S17
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= carried
    state[3] = (state[3] << _S45) | (state[3] >> _S19)
    return mixed * _UNIT


@kernel
def _room(array: Array, needed: int) -> Array:
    """``array``, or a copy at least twice as long when ``needed`` does not fit."""
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, 2 * len(array)), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


@kernel
def draw(
    start: Array,
    word: Array,
    suffix: Array,
    log_prob: Array,
    backoff: Array,
    order: int,
    count: Array,
    cumulative: Array,
    discount: Array,
    emitted: Array,
    bos: int,
    end: int,
    n: int,
    most: int,
    state: Array,
) -> tuple[Array, Array, Array]:
    """Sentences word by word from the model's own distribution.

    A count is drawn from those after the context; when it lies in the part of its n-gram that the discount took, the
    draw is made again after the context without its first token, and below the empty context among all ``emitted``.

    Args:
        start: (C + 1,) int32, of the trie.
        word: (G,) int32, of the trie.
        suffix: (G,) int32, of the trie.
        log_prob: (G,) float64, of its n-grams.
        backoff: (C,) float64, of its contexts.
        order: longest n-gram.
        count: (G,) int32, counts that the probabilities were estimated from.
        cumulative: (G + 1,) int64, their running sum, from 0.
        discount: (N, 3) float64, as in `truesource.lmtrain.architectures.ngram._kernels.estimate.estimate`.
        emitted: (E,) int64, tokens that can be drawn.
        bos: the token ``<bos>``.
        end: the token ``<eos>``.
        n: how many sentences.
        most: a sentence is left unfinished after so many words.
        state: (4,) uint64, of the random numbers; moves on.

    Returns:
        Tokens (T,) int32 without ``<bos>`` and ``<eos>``, where each sentence ends in them (n,) int64, and whether it
        was finished (n,).
    """
    tokens = np.empty(1024, dtype=np.int32)
    ends = np.empty(n, dtype=np.int64)
    finished = np.zeros(n, dtype=np.bool_)
    at = 0
    for s in range(n):
        node = 1 + bos if order > 1 else 0
        length = 1 if order > 1 else 0
        written = 0
        while True:
            context, k = node, length
            token = -1
            while token < 0:
                low, high = start[context], start[context + 1]
                total = cumulative[high] - cumulative[low]
                if total > 0:
                    x = _uniform(state) * total
                    whole = cumulative[low] + min(np.int64(x), total - 1)
                    while high - low > 1:  # the last of them whose running sum is not above
                        middle = (low + high) >> 1
                        if cumulative[middle] <= whole:
                            low = middle
                        else:
                            high = middle
                    rest = x - (cumulative[low] - cumulative[start[context]])
                    if rest >= discount[k, min(count[low], 3) - 1]:
                        token = word[low]
                        break
                if context == 0:
                    token = emitted[min(np.int64(_uniform(state) * len(emitted)), len(emitted) - 1)]
                    break
                context = suffix[context]
                k -= 1
            if token == end:
                finished[s] = True
                break
            if written == most:
                break
            tokens = _room(tokens, at + 1)
            tokens[at] = token
            at += 1
            written += 1
            _, node, length = _step(start, word, suffix, log_prob, backoff, node, length, token)
        ends[s] = at
    return tokens[:at], ends, finished
