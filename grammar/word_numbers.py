"""Convert between words and numbers, such as rows of sentences from other programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truesource.grammar.sentences import as_sentences
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError


def decoded(terminals: Sequence[str], ids: ArrayLike) -> list[str]:
    """Return the words of some numbers.

    Args:
        terminals: (V,) the words.
        ids: (n,) numbers from 0 to V-1.

    Raises:
        InputError: a number is out of range, or they are no row of integers.
    """
    return [terminals[number] for number in _checked(_whole_numbers(ids, 1), len(terminals)).tolist()]


def sentences_of(terminals: Sequence[str], sentences: Any) -> list[list[str]]:
    """Return sentences as lists of words.

    Args:
        terminals: (V,) the words.
        sentences: lists of words; or a matrix (B, L) of word numbers, an array or a tensor, in which every negative
            number is padding, at the ends of rows only.

    Raises:
        InputError: they are neither, a number is V or more, or there is padding before a word.
    """
    if not hasattr(sentences, "__array__"):
        sentences = as_sentences(sentences)
        return [_as_words(sentence, row) for row, sentence in enumerate(sentences, start=1)]
    table = _whole_numbers(sentences, 2)
    sizes = (table >= 0).sum(axis=1)
    padded = np.arange(table.shape[1]) >= sizes[:, None]
    if ((table < 0) != padded).any():
        row = int(np.argmax(((table < 0) != padded).any(axis=1)))
        raise InputError(
            f"row {row + 1} has padding before a word; negative numbers are allowed only at the end of a row"
        )
    _checked(table[~padded], len(terminals))
    return [[terminals[word] for word in row[:size].tolist()] for row, size in zip(table, sizes, strict=True)]


def _as_words(sentence: Any, row: int) -> list[str]:
    if isinstance(sentence, str) or not all(isinstance(word, str) for word in sentence):
        raise InputError(
            f"sentence {row} is no list of words; split texts into words, and pass word numbers as one padded matrix"
        )
    return list(sentence)


def _whole_numbers(ids: Any, dimensions: int) -> IntArray:
    on_cpu = getattr(ids, "cpu", None)  # method of a tensor, which may be on another device
    table = np.asarray(ids if on_cpu is None else on_cpu())
    if table.ndim != dimensions or (table.size and not np.issubdtype(table.dtype, np.integer)):
        what = "one row" if dimensions == 1 else "a matrix"
        raise InputError(f"word numbers are {what} of integers, got {table.dtype} of shape {table.shape}")
    return table.astype(np.int64)


def _checked(numbers: IntArray, size: int) -> IntArray:
    wrong = numbers[(numbers < 0) | (numbers >= size)]
    if wrong.size:
        raise InputError(f"there is no word number {wrong[0]}; use numbers 0 to {size - 1:,}")
    return numbers
