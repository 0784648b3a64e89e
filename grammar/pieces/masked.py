"""Exact distributions of one masked piece, given all other pieces of a sentence and their number.

A masked piece continues the word to its left or begins a word, and the piece to its right continues its word or begins
the next one. In each of these ways the other words are known, and the masked piece decides only the word that it is in.
So its distribution is a sum of masked distributions of words over the ways, each weighted with the probability of its
sentences::

    P(piece p | others) is proportional to P(left v right),   v = the word that p completes, left and right of its way

The others may have different numbers of words in different ways, so the length condition, a range of words, counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.distributions import masked_blocks
from truesource.grammar.pcfg import PCFG
from truesource.grammar.pieces.reading import read_pieces
from truesource.grammar.pieces.segmentation import PieceTrie, Segmentation
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.grammar.inference.exact import Exact
    from truesource.grammar.truth import Truth

Words = tuple[int, ...]


class Joining(NamedTuple):
    """A way in which a masked piece joins its neighbours: known words, and a gap between them."""

    left: Words
    right: Words

    def filled(self, word: int) -> Words:
        """Return the sentence with a word in the gap."""
        return (*self.left, word, *self.right)


class FittingPieces(NamedTuple):
    """The pieces that fit a position in one way."""

    pieces: IntArray  #: (F,) all distinct
    words: IntArray  #: (F,) the word that each completes


class MaskedSentence:
    """A sentence of pieces, each of which may be masked.

    Args:
        segmentation: the words and their pieces.
        pieces: (n,) piece numbers, -1 for unknown.
    """

    def __init__(self, segmentation: Segmentation, pieces: Sequence[int]) -> None:
        self._later, self._first, self._pieces = segmentation.trie, segmentation.first_trie, pieces
        self._reading = read_pieces(segmentation, [np.array(pieces, dtype=np.int32)])
        self._rest: list[Words | None] = [None] * len(pieces)  # words of the pieces from each place, if a word begins
        for at in range(len(pieces) - 1, -1, -1):
            child = self._later.next_node[0].get(pieces[at], -1)
            words = None if child < 0 else self._finished(self._later, child, at + 1)
            self._rest[at] = None if words is None else (words[0], *words[1])

    @property
    def words(self) -> Words:
        """The words of the sentence; empty if the pieces spell none."""
        finished = self._finished(self._first, 0, 0) if self._pieces else None
        return () if finished is None else (finished[0], *finished[1])

    def _finished(self, trie: PieceTrie, node: int, at: int) -> tuple[int, Words] | None:
        """Return the word that begins with the pieces of a node and those from ``at`` on, and the words after it."""
        while at < len(self._pieces) and (child := trie.next_node[node].get(self._pieces[at], -1)) >= 0:
            node, at = child, at + 1
        word = int(trie.word[node])
        rest: Words | None = () if at == len(self._pieces) else self._rest[at]
        return None if word < 0 or rest is None else (word, rest)

    def ways(self, position: int) -> dict[Joining, FittingPieces]:
        """Return all ways in which pieces fit a position; none if the pieces to the left begin no sentence."""
        fits: dict[Joining, tuple[list[int], list[int]]] = {}
        reading = self._reading
        if position >= len(reading.t):
            return {}
        complete, node = int(reading.words[position]), int(reading.node[position])
        words, trie = reading.texts[0][:complete], self._later if complete else self._first
        word = int(trie.word[node])
        begun = self._later.children[0] if word >= 0 else ()
        candidates = [(words, trie, *edge) for edge in trie.children[node]]
        candidates += [((*words, word), self._later, *edge) for edge in begun]
        for left, of, piece, child in candidates:
            finished = self._finished(of, child, position + 1)
            if finished is not None:
                pieces, completed = fits.setdefault(Joining(left, finished[1]), ([], []))
                pieces.append(piece)
                completed.append(finished[0])
        return {way: FittingPieces(np.array(pieces), np.array(words)) for way, (pieces, words) in fits.items()}


def masked_rows(
    truth: Truth, segmentation: Segmentation, sentences: Sequence[Sequence[int]], lengths: LengthRange | None = None
) -> list[FloatArray]:
    """Return P(piece | all other pieces and their number) at all positions of sentences, (n, K) each.

    Args:
        truth: the language of words.
        segmentation: the words and their pieces.
        sentences: piece numbers, -1 for unknown.
        lengths: range of words.

    Returns:
        Rows sum to 1, or are 0 if no piece fits.

    Raises:
        InputError: the language has no rules (code ``missing-ability``).
    """
    if not isinstance(truth, PCFG):
        raise InputError(
            "a masked piece has exact probabilities in the language of a grammar; this language is a process, which"
            " has only probabilities of the next piece",
            code="missing-ability",
        )
    read = [MaskedSentence(segmentation, sentence) for sentence in sentences]
    fitting = [
        (row, at, way, fits)
        for row, sentence in enumerate(sentences)
        for at in range(len(sentence))
        for way, fits in read[row].ways(at).items()
        if lengths is None or len(way.filled(0)) in lengths
    ]
    words: dict[Joining, set[int]] = {}
    for _, _, way, fits in fitting:
        words.setdefault(way, set()).update(fits.words.tolist())
    needed = {way: np.array(sorted(some)) for way, some in words.items()}
    joint = _joint(truth.exact, needed, {sentence.words for sentence in read})
    result = [np.full((len(sentence), len(segmentation.pieces)), -np.inf) for sentence in sentences]
    for row, at, way, fits in fitting:
        result[row][at, fits.pieces] = joint[way][np.searchsorted(needed[way], fits.words)]
    return [_normalised(table) for table in result]


def _normalised(logs: FloatArray) -> FloatArray:
    """Return rows of probabilities from unnormalised logarithms, (n, K); 0 if all are -inf."""
    top = logs.max(axis=1, initial=-np.inf, keepdims=True)
    values = np.exp(logs - np.where(np.isneginf(top), 0.0, top))
    total = values.sum(axis=1, keepdims=True)
    rows: FloatArray = np.divide(values, total, out=np.zeros_like(values), where=total > 0.0)
    return rows


def _joint(exact: Exact, needed: Mapping[Joining, IntArray], texts: Iterable[Words]) -> dict[Joining, FloatArray]:
    """Return ln P(the sentence of a way with each needed word in its gap).

    P(v | other words) of the sentence with one word has the ratios of all others. ``texts`` are sentences whose words
    are taken for gaps, since all positions of a sentence have one chart.
    """
    usual = {Joining(text[:at], text[at + 1 :]): word for text in texts for at, word in enumerate(text)}
    gaps: dict[Words, dict[int, Joining]] = {}
    for way, words in needed.items():
        gaps.setdefault(way.filled(usual.get(way, int(words[0]))), {})[len(way.left)] = way
    sentences = list(gaps)
    names = exact.pcfg.vocabulary
    result = {way: np.full(len(words), -np.inf) for way, words in needed.items()}
    likely: dict[Joining, Words] = {}
    for batch in exact.charts().batches([[names[word] for word in text] for text in sentences], outside=True):
        members = [sentences[member] for (member,) in batch.members]
        positions = sorted({at for text in members for at in gaps[text]})
        for block in masked_blocks(exact, batch, positions=positions):
            for text, probability in zip(members, block.probability, strict=True):
                gap = gaps[text].get(block.position)
                if gap is not None and (values := probability[needed[gap]]).any():
                    best = int(values.argmax())
                    likely[gap] = gap.filled(int(needed[gap][best]))
                    with np.errstate(divide="ignore"):
                        result[gap] = np.log(values) - np.log(values[best])
    numbers = {text: number for number, text in enumerate(dict.fromkeys(likely.values()))}
    logs = exact.string_log_probs([[names[word] for word in text] for text in numbers])
    for way, text in likely.items():
        result[way] += logs[numbers[text]]
    return result
