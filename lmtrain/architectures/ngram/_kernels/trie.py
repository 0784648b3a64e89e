"""The argument of the kernels that read with an n-gram model: a named tuple of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from truesource.grammar.support.arrays import FloatArray, Int32Array


class TrieArrays(NamedTuple):
    """A trie of G n-grams, C of them contexts, and their log probabilities."""

    start: Int32Array  #: (C + 1,) number of the first continuation of each context
    word: Int32Array  #: (G,) last token
    suffix: Int32Array  #: (G,) the n-gram without its first token
    log_prob: FloatArray  #: (G,)
    backoff: FloatArray  #: (C,)
