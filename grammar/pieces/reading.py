"""Sentences of pieces, read from left to right into words and the beginning of a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from truesource.grammar.pieces.segmentation import Segmentation
from truesource.grammar.support.arrays import BoolArray, Int32Array, IntArray


class PieceReading(NamedTuple):
    """The states of sentences of pieces, one before each piece that can follow and one at the end; S of them.

    A state has complete words and the pieces of the current word, a node of a trie; node 0 is only at the start of a
    text. A piece that begins the next word completes the current one.
    """

    texts: tuple[tuple[int, ...], ...]  #: complete words of each sentence, the last one too if its pieces are complete
    t: IntArray  #: (S,) position, pieces to the left
    column: IntArray  #: (S,) sentence
    words: IntArray  #: (S,) number of complete words before the current one
    node: IntArray  #: (S,) pieces of the current word
    word: IntArray  #: (S,) word that they are, -1 for none
    on_text: BoolArray  #: (S,) whether the sentence has this word there, rather than a longer one
    continues: IntArray  #: (S,) node after the piece that follows, if it continues the word; -1 otherwise
    begins: IntArray  #: (S,) node after the piece that follows, if it begins the next word; -1 otherwise


def read_pieces(segmentation: Segmentation, sentences: Sequence[Int32Array]) -> PieceReading:
    """Read sentences of pieces up to the first piece that cannot be there.

    Args:
        segmentation: the words and their pieces.
        sentences: piece numbers of each, -1 for unknown.
    """
    later, start = segmentation.trie, segmentation.first_trie
    words_at = {id(trie): trie.word.tolist() for trie in (later, start)}
    texts: list[tuple[int, ...]] = []
    states: list[tuple[int, int, int, int, int, bool, int, int]] = []
    for column, sentence in enumerate(sentences):
        trie, node, words = start, 0, list[int]()
        for t, piece in enumerate([*sentence.tolist(), None]):
            word = words_at[id(trie)][node]
            child = -1 if piece is None else trie.next_node[node].get(piece, -1)
            begins = -1 if piece is None or word < 0 or child >= 0 else later.next_node[0].get(piece, -1)
            on_text = word >= 0 and (begins >= 0 or piece is None)
            states.append((t, column, len(words), node, word, on_text, child, begins))
            if on_text:
                words.append(word)
            if child < 0 and begins < 0:
                break
            trie, node = (trie, child) if child >= 0 else (later, begins)
        texts.append(tuple(words))
    table = np.array(states, dtype=np.int64).reshape(-1, 8)
    columns: list[IntArray] = [table[:, i].copy() for i in range(8)]
    at, of, before, end, complete, present, inner, outer = columns
    return PieceReading(tuple(texts), at, of, before, end, complete, present.astype(np.bool_), inner, outer)
