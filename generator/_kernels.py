"""Kernels: random numbers, random derivations of a PCFG, and derivations as text, as trees and as hashes.

Random numbers are from xoshiro256 (Blackman & Vigna 2021), seeded by splitmix64 (Steele et al. 2014). A state is (4,)
uint64 and advances in place. An output adds the upper bits of two of its words, so that no step overflows. Seeds
promise the same text forever, so no number given here may change (`tests/generator/test_random_numbers.py`).

Rules of all kinds are numbered consecutively: binary, then unary, then lexical. ``left`` holds the left or only child
(a word number for lexical rules), ``right`` the right child of binary rules. A derivation is the row of its rule
numbers in preorder. Its nodes are coded ``3 * symbol + children``, where a word under the node counts as no child.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truesource.grammar._kernels.kernel import kernel, room
from truesource.grammar._kernels.rules import Choices, NumberedRules

_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_S17, _S19, _S27, _S30, _S31, _S45 = (np.uint64(s) for s in (17, 19, 27, 30, 31, 45))
_S11, _S12 = np.uint64(11), np.uint64(12)
_TOP53, _TOP52 = np.int64((1 << 53) - 1), np.int64((1 << 52) - 1)
_OPEN, _CLOSE, _BACKSLASH, _X = 40, 41, 92, 120
_HEXADECIMAL = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


@kernel
def _move(state: Array) -> None:
    carried = state[1] << _S17
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= carried
    state[3] = (state[3] << _S45) | (state[3] >> _S19)


@kernel
def uniform(state: Array) -> float:
    """Return one float64 in [0, 1), a multiple of 2^-53."""
    mixed = (np.int64(state[0] >> _S11) + np.int64(state[3] >> _S11)) & _TOP53
    _move(state)
    return mixed * 2.0**-53


@kernel
def uniforms(n: int, state: Array) -> Array:
    """Return n float64 in [0, 1), as from `uniform`, (n,)."""
    numbers = np.empty(n)
    for i in range(n):
        numbers[i] = uniform(state)
    return numbers


@kernel
def uniform_open(state: Array) -> float:
    """Return one float64 in (0, 1), neither end included, an odd multiple of 2^-53."""
    mixed = (np.int64(state[0] >> _S12) + np.int64(state[3] >> _S12)) & _TOP52
    _move(state)
    return (mixed + 0.5) * 2.0**-52


@kernel
def mixed_with(h: Any, value: Any) -> Any:
    """Return the next 64 bits of a hash ``h`` after ``value``; both uint64. One step of splitmix64."""
    h = (h ^ value) + _STEP
    h = (h ^ (h >> _S30)) * _MIX1
    h = (h ^ (h >> _S27)) * _MIX2
    return h ^ (h >> _S31)


@kernel
def seeded(seed: int, stream: int) -> Array:
    """Return a state (4,) uint64 from two numbers."""
    state = np.empty(4, dtype=np.uint64)
    at = np.uint64(seed) + np.uint64(stream) * _MIX1
    for i in range(4):
        state[i] = mixed_with(at, np.uint64(0))
        at += _STEP
    return state


Array = Any  # numpy arrays; element types are in the docstrings


@kernel
def _first_above(cumulative: Array, begin: int, end: int, x: float) -> int:
    """Return the smallest i in [begin, end) with ``cumulative[i] > x``; end - 1 for none."""
    low, high = begin, end - 1
    while low < high:
        middle = (low + high) >> 1
        if cumulative[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def row_sums_running(bounds: Array, weights: Array) -> Array:
    """Return running sums of ``weights`` that restart at each of ``bounds`` (S + 1,)."""
    sums = np.empty(len(weights))
    for a in range(len(bounds) - 1):
        total = 0.0
        for i in range(bounds[a], bounds[a + 1]):
            total += weights[i]
            sums[i] = total
    return sums


@kernel
def draw_free(
    numbered: NumberedRules, choices: Choices, start: int, n: int, state: Array, max_nodes: int
) -> tuple[Array, Array, Array, Array, bool]:
    """Draw ``n`` derivations of ``start``.

    The weights of ``choices`` are probabilities. Return rules (N,), ends (n + 1,), tokens (n,), log probabilities (n,)
    and whether all stayed below ``max_nodes``.
    """
    left, right, logp, n_binary, n_unary = numbered
    options, bounds, sums = choices
    rules = np.empty(64 * n + 64, dtype=np.int32)
    ends = np.zeros(n + 1, dtype=np.int64)
    tokens = np.zeros(n, dtype=np.int32)
    log_prob = np.zeros(n)
    stack = np.empty(1024, dtype=np.int32)
    used = 0
    for s in range(n):
        stack[0] = start
        depth = 1
        total = 0.0
        while depth > 0:
            depth -= 1
            a = stack[depth]
            begin, end = bounds[a], bounds[a + 1]
            rule = options[_first_above(sums, begin, end, uniform(state) * sums[end - 1])]
            if used - ends[s] >= max_nodes:
                return rules[:used], ends, tokens, log_prob, False
            rules = room(rules, used + 1)
            rules[used] = rule
            used += 1
            total += logp[rule]
            if rule >= n_binary + n_unary:
                tokens[s] += 1
            elif rule >= n_binary:
                stack[depth] = left[rule]
                depth += 1
            else:
                stack = room(stack, depth + 2)
                stack[depth] = right[rule]
                stack[depth + 1] = left[rule]
                depth += 2
        ends[s + 1] = used
        log_prob[s] = total
    return rules[:used], ends, tokens, log_prob, True


@kernel
def _splits(left: int, right: int, n: int, sizes: Array) -> tuple[int, int]:
    """Return the least left child length among n tokens, and one past the greatest; sizes as in `draw_conditioned`."""
    return max(sizes[left, 0], n - sizes[right, 1]), min(sizes[left, 1], n - sizes[right, 0]) + 1


@kernel
def _convolution(left: int, right: int, n: int, mass: Array, sizes: Array) -> float:
    """Return the sum over k in 1..n-1 of ``mass[left, k] * mass[right, n - k]``."""
    total = 0.0
    low, high = _splits(left, right, n, sizes)
    for k in range(low, high):
        total += mass[left, k] * mass[right, n - k]
    return total


@kernel
def draw_conditioned(
    numbered: NumberedRules,
    phrases: Choices,
    ready: Array,
    words: Choices,
    mass: Array,
    sizes: Array,
    low: int,
    high: int,
    start: int,
    n: int,
    state: Array,
    max_nodes: int,
) -> tuple[Array, Array, Array, Array, bool]:
    """Draw ``n`` derivations of ``start`` given that the length is in ``low..high``, without rejection.

    ``mass`` (S, high + 1) holds P(A yields exactly m tokens), ``sizes`` (S, 2) the least and the greatest such m. At a
    symbol that owes m tokens a rule is chosen with weight p * mass of its children, a binary rule's split with
    mass(left, k) * mass(right, m - k). ``phrases.sums`` (high + 1, P) and ``ready`` (high + 1, S) are filled here, a
    row when first needed: running weights of the binary and unary rules of a symbol; ``words.sums`` are running weights
    of unary and lexical rules for one token. Results as in `draw_free`.
    """
    left, right, logp, n_binary, n_unary = numbered
    phrase_options, phrase_bounds, phrase_sums = phrases
    word_options, word_bounds, word_sums = words
    length_sums = np.cumsum(mass[start, low : high + 1])
    rules = np.empty(64 * n + 64, dtype=np.int32)
    ends = np.zeros(n + 1, dtype=np.int64)
    tokens = np.zeros(n, dtype=np.int32)
    log_prob = np.zeros(n)
    stack = np.empty((high + 1, 2), dtype=np.int32)
    used = 0
    for s in range(n):
        m = low + _first_above(length_sums, 0, len(length_sums), uniform(state) * length_sums[-1])
        tokens[s] = m
        stack[0, 0] = start
        stack[0, 1] = m
        depth = 1
        total = 0.0
        while depth > 0:
            depth -= 1
            a, m = stack[depth, 0], stack[depth, 1]
            if m == 1:
                begin, end = word_bounds[a], word_bounds[a + 1]
                rule = word_options[_first_above(word_sums, begin, end, uniform(state) * word_sums[end - 1])]
            else:
                begin, end = phrase_bounds[a], phrase_bounds[a + 1]
                row = phrase_sums[m]
                if not ready[m, a]:
                    running = 0.0
                    for i in range(begin, end):
                        r = phrase_options[i]
                        weight = mass[left[r], m] if r >= n_binary else _convolution(left[r], right[r], m, mass, sizes)
                        running += np.exp(logp[r]) * weight
                        row[i] = running
                    ready[m, a] = True
                rule = phrase_options[_first_above(row, begin, end, uniform(state) * row[end - 1])]
            if used - ends[s] >= max_nodes:
                return rules[:used], ends, tokens, log_prob, False
            rules = room(rules, used + 1)
            rules[used] = rule
            used += 1
            total += logp[rule]
            if rule >= n_binary + n_unary:
                continue
            if rule >= n_binary:
                stack[depth, 0] = left[rule]
                stack[depth, 1] = m
                depth += 1
                continue
            b, c = left[rule], right[rule]
            x = uniform(state) * _convolution(b, c, m, mass, sizes)
            running = 0.0
            split = 1
            first, last = _splits(b, c, m, sizes)
            for k in range(first, last):
                weight = mass[b, k] * mass[c, m - k]
                if weight > 0.0:
                    split = k
                    running += weight
                    if running > x:
                        break
            stack[depth, 0] = c
            stack[depth, 1] = m - split
            stack[depth + 1, 0] = b
            stack[depth + 1, 1] = split
            depth += 2
        ends[s + 1] = used
        log_prob[s] = total
    return rules[:used], ends, tokens, log_prob, True


@kernel
def sentence_hashes(rules: Array, ends: Array, left: Array, first_lexical: int) -> Array:
    """Return 64 bits (n,) uint64 that differ for different sentences, except by chance."""
    n = len(ends) - 1
    result = np.empty(n, dtype=np.uint64)
    for s in range(n):
        h = np.uint64(0)
        for i in range(ends[s], ends[s + 1]):
            if rules[i] >= first_lexical:
                h = mixed_with(h, np.uint64(left[rules[i]]))
        result[s] = h
    return result


@kernel
def heights(rules: Array, ends: Array, n_binary: int, first_lexical: int) -> Array:
    """Return the height (n,) of each derivation: 2 for a symbol over a word, one more for each rule above."""
    n = len(ends) - 1
    result = np.empty(n, dtype=np.int32)
    most = 1
    for s in range(n):
        most = max(most, ends[s + 1] - ends[s])
    done = np.empty(most, dtype=np.int32)
    for s in range(n):
        top = 0
        for i in range(ends[s + 1] - 1, ends[s] - 1, -1):
            if rules[i] >= first_lexical:
                done[top] = 2
                top += 1
            elif rules[i] >= n_binary:
                done[top - 1] += 1
            else:
                done[top - 2] = max(done[top - 1], done[top - 2]) + 1
                top -= 1
        result[s] = done[0]
    return result


@kernel
def reorder(rules: Array, ends: Array, n_binary: int, first_lexical: int, swapped: Array) -> Array:
    """Return derivations in preorder after exchanging the children of binary rules with ``swapped``, (N,)."""
    result = np.empty_like(rules)
    most = 1
    for s in range(len(ends) - 1):
        most = max(most, ends[s + 1] - ends[s])
    size = np.empty(most, dtype=np.int64)
    stack = np.empty(most, dtype=np.int64)
    for s in range(len(ends) - 1):
        begin, n = ends[s], ends[s + 1] - ends[s]
        for i in range(n - 1, -1, -1):
            rule = rules[begin + i]
            if rule >= first_lexical:
                size[i] = 1
            elif rule >= n_binary:
                size[i] = 1 + size[i + 1]
            else:
                size[i] = 1 + size[i + 1] + size[i + 1 + size[i + 1]]
        at = begin
        stack[0] = 0
        top = 1
        while top > 0:
            top -= 1
            i = stack[top]
            rule = rules[begin + i]
            result[at] = rule
            at += 1
            if rule >= first_lexical:
                continue
            if rule >= n_binary:
                stack[top] = i + 1
                top += 1
                continue
            one, two = i + 1, i + 1 + size[i + 1]
            if swapped[rule]:
                one, two = two, one
            stack[top] = two
            stack[top + 1] = one
            top += 2
    return result


@kernel
def _put(target: Array, at: int, names: Array, bounds: Array, which: int) -> int:
    """Copy one name to ``target`` from ``at`` on; return the position after it."""
    for i in range(bounds[which], bounds[which + 1]):
        target[at] = names[i]
        at += 1
    return at


@kernel
def spell_words(
    rules: Array, ends: Array, left: Array, first_lexical: int, words: Array, word_bounds: Array
) -> tuple[Array, Array]:
    """Return sentences as UTF-8, words separated by spaces: bytes (B,) and bounds (n + 1,)."""
    n = len(ends) - 1
    bounds = np.zeros(n + 1, dtype=np.int64)
    for s in range(n):
        size = 0
        for i in range(ends[s], ends[s + 1]):
            if rules[i] >= first_lexical:
                w = left[rules[i]]
                size += word_bounds[w + 1] - word_bounds[w] + 1
        bounds[s + 1] = bounds[s] + size - 1
    text = np.empty(bounds[n], dtype=np.uint8)
    for s in range(n):
        at = bounds[s]
        for i in range(ends[s], ends[s + 1]):
            if rules[i] >= first_lexical:
                if at > bounds[s]:
                    text[at] = 32
                    at += 1
                at = _put(text, at, words, word_bounds, left[rules[i]])
    return text, bounds


@kernel
def _bracket_size(codes: Array, name_bounds: Array, text: Array) -> int:
    """Return the most bytes that `_put_brackets` writes for one sentence."""
    size = 0
    for i in range(len(codes)):
        a = codes[i] // 3
        size += name_bounds[a + 1] - name_bounds[a] + 4
    for i in range(len(text)):
        size += 4 if text[i] == _OPEN or text[i] == _CLOSE or text[i] == _BACKSLASH else 1
    return size


@kernel
def _put_brackets(
    target: Array, at: int, codes: Array, text: Array, names: Array, name_bounds: Array, dropped: Array
) -> int:
    """Write one tree as Penn brackets; return the position after it.

    ``codes`` (m,) are its nodes in preorder, ``text`` its words separated by single spaces; symbols have ``names``.
    Nodes of symbols that are ``dropped`` (S,) are replaced by their children, except the root and symbols over words.
    Words are escaped as in `truesource.grammar.tree`.
    """
    owed = np.empty(len(codes) + 1, dtype=np.int64)
    visible = np.empty(len(codes) + 1, dtype=np.bool_)
    depth = 0
    word = 0
    for i in range(len(codes)):
        a, children = codes[i] // 3, codes[i] % 3
        show = i == 0 or children == 0 or not dropped[a]
        if show:
            if i > 0:
                target[at] = 32
                at += 1
            target[at] = _OPEN
            at = _put(target, at + 1, names, name_bounds, a)
        if children > 0:
            owed[depth] = children
            visible[depth] = show
            depth += 1
            continue
        target[at] = 32
        at += 1
        while word < len(text) and text[word] != 32:
            byte = text[word]
            mistaken = byte == _BACKSLASH and word + 1 < len(text) and text[word + 1] == _X
            if byte in (_OPEN, _CLOSE) or mistaken:
                target[at] = _BACKSLASH
                target[at + 1] = _X
                target[at + 2] = _HEXADECIMAL[byte >> 4]
                target[at + 3] = _HEXADECIMAL[byte & 15]
                at += 4
            else:
                target[at] = byte
                at += 1
            word += 1
        word += 1
        target[at] = _CLOSE
        at += 1
        while depth > 0:
            owed[depth - 1] -= 1
            if owed[depth - 1] > 0:
                break
            depth -= 1
            if visible[depth]:
                target[at] = _CLOSE
                at += 1
    return at


@kernel
def spell_brackets(
    codes: Array, ends: Array, text: Array, text_ends: Array, names: Array, name_bounds: Array, dropped: Array
) -> tuple[Array, Array]:
    """Return trees as Penn brackets in UTF-8: bytes (B,) and bounds (n + 1,).

    Arguments as `_put_brackets`, of n sentences.
    """
    n = len(ends) - 1
    room = 0
    for s in range(n):
        room += _bracket_size(codes[ends[s] : ends[s + 1]], name_bounds, text[text_ends[s] : text_ends[s + 1]])
    target = np.empty(room, dtype=np.uint8)
    bounds = np.zeros(n + 1, dtype=np.int64)
    at = 0
    for s in range(n):
        row, words = codes[ends[s] : ends[s + 1]], text[text_ends[s] : text_ends[s + 1]]
        at = _put_brackets(target, at, row, words, names, name_bounds, dropped)
        bounds[s + 1] = at
    return target[:at], bounds
