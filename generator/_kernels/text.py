"""Numba kernels: derivations as text, as trees, as numbers that tell sentences apart.

Rules of all kinds are numbered in one row: binary, then unary, then lexical. ``left`` holds the left or only child (a
word number for lexical rules). A derivation is the row of its rule numbers in preorder. Its nodes are coded
``3 * symbol + children``, where a word under the node counts as no child.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truesource.generator._kernels.random import mixed_with
from truesource.grammar._kernels.kernel import kernel

Array = Any  # numpy arrays; element types are in the docstrings

_OPEN, _CLOSE, _BACKSLASH, _X = 40, 41, 92, 120
_HEXADECIMAL = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


@kernel
def sentence_hashes(rules: Array, ends: Array, left: Array, first_lexical: int) -> Array:
    """64 bits (n,) uint64 that differ, but for chance, where the words of two sentences differ."""
    n = len(ends) - 1
    found = np.empty(n, dtype=np.uint64)
    for s in range(n):
        h = np.uint64(0)
        for i in range(ends[s], ends[s + 1]):
            if rules[i] >= first_lexical:
                h = mixed_with(h, np.uint64(left[rules[i]]))
        found[s] = h
    return found


@kernel
def heights(rules: Array, ends: Array, n_binary: int, first_lexical: int) -> Array:
    """Height (n,) of each derivation: 2 for a symbol over a word, one more for each rule above."""
    n = len(ends) - 1
    found = np.empty(n, dtype=np.int32)
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
        found[s] = done[0]
    return found


@kernel
def reorder(rules: Array, ends: Array, n_binary: int, first_lexical: int, swapped: Array) -> Array:
    """The same derivations in preorder when the children of binary rules with ``swapped`` change places, (N,)."""
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
    """Copy one name to ``target`` from ``at`` on; gives the position after it."""
    for i in range(bounds[which], bounds[which + 1]):
        target[at] = names[i]
        at += 1
    return at


@kernel
def spell_words(
    rules: Array, ends: Array, left: Array, first_lexical: int, words: Array, word_bounds: Array
) -> tuple[Array, Array]:
    """Sentences as UTF-8, words separated by spaces: bytes (B,) and bounds (n + 1,)."""
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
    """Most bytes that `_put_brackets` writes for one sentence."""
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
    """Write one tree as Penn brackets; gives the position after it.

    ``codes`` (m,) are its nodes in preorder, ``text`` its words separated by single spaces; symbols are called
    ``names``; nodes of symbols that are ``dropped`` (S,) give their children to the node above, but not the root,
    and not a symbol over a word. Words are escaped as `truesource.grammar.bracketing` has it.
    """
    owed = np.empty(len(codes) + 1, dtype=np.int64)
    shown = np.empty(len(codes) + 1, dtype=np.bool_)
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
            shown[depth] = show
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
            if shown[depth]:
                target[at] = _CLOSE
                at += 1
    return at


@kernel
def spell_brackets(
    codes: Array, ends: Array, text: Array, text_ends: Array, names: Array, name_bounds: Array, dropped: Array
) -> tuple[Array, Array]:
    """Trees as Penn brackets in UTF-8: bytes (B,) and bounds (n + 1,). Arguments as `_put_brackets`, of n sentences."""
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
