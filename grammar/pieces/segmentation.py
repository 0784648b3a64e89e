"""The pieces of each word of a vocabulary, as tries; the tokeniser cuts words independently of their neighbours."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import NothingToMeasureError

Cut = tuple[str, ...]
SPACE = "▁"  #: character between words, written as most tokenisers do, since no piece may be white space
SPACE_BYTE = "<0x20>"  #: byte between words


@dataclass(frozen=True, eq=False)
class Segmentation:
    """The pieces of each word; a text is the concatenation of the pieces of its words.

    Text reads back from left to right: after the last piece of a word, no piece both continues a longer word and
    begins the next one.

    Raises:
        NothingToMeasureError: two words have the same pieces (code ``equal-pieces``), a word has no piece
            (``no-pieces``), or the pieces of a text do not say where its words end (``no-boundary``).
    """

    words: tuple[str, ...]  #: (V,)
    cuts: tuple[Cut, ...]  #: (V,) pieces of each word after another word
    first: tuple[Cut, ...]  #: (V,) pieces of each word at the start of a text

    def __post_init__(self) -> None:
        for cuts in (self.cuts, self.first):
            for word, cut in zip(self.words, cuts, strict=True):
                if not cut:
                    raise NothingToMeasureError(f"the tokeniser has no piece for the word {word!r}", "no-pieces")
            if same := equal_words(self.words, cuts):
                one, other = same[0][:2]
                raise NothingToMeasureError(f"the words {one!r} and {other!r} have the same pieces", "equal-pieces")
        for trie in (self.trie, self.first_trie):
            self._require_boundaries(trie)

    def _require_boundaries(self, trie: PieceTrie) -> None:
        begins = {piece for piece, _ in self.trie.children[0]}
        for node, word in enumerate(trie.word.tolist()):
            both = begins.intersection(piece for piece, _ in trie.children[node]) if word >= 0 else set()
            if both:
                piece = min(both)
                raise NothingToMeasureError(
                    f"after the word {self.words[word]!r}, the piece {self.pieces[piece]!r} could continue it or begin"
                    " the next word, so pieces do not say where words end; use a tokeniser that marks the beginning or"
                    " the end of words",
                    "no-boundary",
                )

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """(K,) all pieces of the words, in alphabetical order."""
        return tuple(sorted({piece for cuts in (self.cuts, self.first) for cut in cuts for piece in cut}))

    @cached_property
    def piece_ids(self) -> dict[str, int]:
        """Number of each piece."""
        return {piece: i for i, piece in enumerate(self.pieces)}

    def counts(self, cuts: Sequence[Cut]) -> csr_matrix[np.float64]:
        """Return the number of each piece in each word, (V, K)."""
        of = np.repeat(np.arange(len(cuts)), [len(cut) for cut in cuts])
        pieces = [self.piece_ids[piece] for cut in cuts for piece in cut]
        return csr_matrix((np.ones(len(of)), (of, pieces)), shape=(len(cuts), len(self.pieces)))

    @cached_property
    def trie(self) -> PieceTrie:
        """The trie of words after other words."""
        return PieceTrie.of(self.cuts, self.piece_ids)

    @cached_property
    def first_trie(self) -> PieceTrie:
        """The trie of words at the start of a text; the same object as `trie` if they are cut alike."""
        return self.trie if self.first == self.cuts else PieceTrie.of(self.first, self.piece_ids)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the words and their pieces, hexadecimal."""
        return hashlib.sha256(json.dumps([self.words, self.cuts, self.first]).encode()).hexdigest()

    def __repr__(self) -> str:
        return f"Segmentation({len(self.words):,} words, {len(self.pieces):,} pieces)"


def equal_words(words: Sequence[str], cuts: Sequence[Cut]) -> list[list[str]]:
    """Return the groups of two or more words that have the same pieces."""
    groups: dict[Cut, list[str]] = {}
    for word, cut in zip(words, cuts, strict=True):
        groups.setdefault(cut, []).append(word)
    return [group for group in groups.values() if len(group) > 1]


def byte_cut(word: str) -> Cut:
    """Return the UTF-8 bytes of a word: an ASCII character as it is, any other byte as ``<0xE2>``."""
    return tuple(chr(byte) if byte < 0x80 else f"<0x{byte:02X}>" for byte in word.encode())


class Edges(NamedTuple):
    """Edges of a trie, by node: edges of node i are ``first[i]`` to ``first[i + 1] - 1``."""

    first: IntArray  #: (N+1,)
    piece: IntArray  #: (N-1,) piece of each edge
    child: IntArray  #: (N-1,) node that it leads to


@dataclass(frozen=True, eq=False)
class PieceTrie:
    """A trie of words by their pieces. Node 0 is the beginning of a word; children come after their parents."""

    children: tuple[tuple[tuple[int, int], ...], ...]  #: (N,) piece and child of each edge of a node
    word: IntArray  #: (N,) word that ends at a node, -1 for none
    node: IntArray  #: (V,) node at which each word ends

    @classmethod
    def of(cls, cuts: Sequence[Cut], piece_ids: Mapping[str, int]) -> PieceTrie:
        """Return the trie of some words, given the pieces of each."""
        children: list[dict[int, int]] = [{}]
        node = np.zeros(len(cuts), dtype=np.int64)
        for number, cut in enumerate(cuts):
            at = 0
            for piece in cut:
                below = children[at]
                at = below.setdefault(piece_ids[piece], len(children))
                if at == len(children):
                    children.append({})
            node[number] = at
        word = np.full(len(children), -1, dtype=np.int64)
        word[node] = np.arange(len(cuts))
        return cls(tuple(tuple(sorted(below.items())) for below in children), word, node)

    def __len__(self) -> int:
        return len(self.word)

    @cached_property
    def edges(self) -> Edges:
        """The edges as arrays."""
        sizes = [len(below) for below in self.children]
        flat = np.array([edge for below in self.children for edge in below], dtype=np.int64).reshape(-1, 2)
        return Edges(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), flat[:, 0].copy(), flat[:, 1].copy())

    @cached_property
    def next_node(self) -> tuple[dict[int, int], ...]:
        """(N,) child of each node by piece."""
        return tuple(map(dict, self.children))

    def sums(self, probability: FloatArray) -> FloatArray:
        """Return P(the word's pieces begin with the pieces of a node), (N, R), from probabilities of words, (R, V)."""
        return np.asarray(self._below @ probability.T, dtype=np.float64)

    @cached_property
    def _below(self) -> csr_matrix[np.float64]:
        """(N, V) which words pass through a node; only positive terms are added, so tiny sums lose no digits."""
        parent = np.full(len(self), -1, dtype=np.int64)
        for node, edges in enumerate(self.children):
            parent[[child for _, child in edges]] = node
        rows, columns = [], []
        at, words = self.node.copy(), np.arange(len(self.node))
        while at.size:
            rows.append(at)
            columns.append(words)
            at = parent[at]
            words, at = words[at >= 0], at[at >= 0]
        row, column = np.concatenate(rows), np.concatenate(columns)
        return csr_matrix((np.ones(len(row)), (row, column)), shape=(len(self), len(self.node)))
