"""The exact distribution of the next word at every position of a batch of sentences, as one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Distributions
from truesource.grammar.inference.causal import ExactCausal
from truesource.grammar.inference.distributions import next_token_distributions
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.room import require_memory
from truesource.grammar.word_numbers import sentences_of

SLACK = 1.4  #: largest factor by which a text is padded


class CausalTruth(Protocol):
    """The part of a `truesource.grammar.truth.Truth` needed for next-word distributions."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """(V,) the words."""

    @property
    def exact(self) -> ExactCausal:
        """Exact inference of the truth."""


@dataclass(frozen=True, eq=False, repr=False)
class NextWords:
    """Distributions after each prefix of some sentences. A row of ``probability`` is a distribution, or zero.

    Rows are zero beyond the end of a sentence, and after an impossible word.
    """

    words: tuple[str, ...]  #: (V,) words of the columns
    lengths: IntArray  #: (B,) words of each sentence
    probability: FloatArray  #: (B, L+1, V+1) P(word | first j words); the last column is the end
    possible: BoolArray  #: (B, L+1) whether the row is a distribution, less the mass of infinite derivations

    def __repr__(self) -> str:
        longest = self.probability.shape[1] - 1
        return f"NextWords({len(self.lengths):,} sentences of up to {longest:,} words, {len(self.words):,} words)"


def next_words(truth: CausalTruth, sentences: Any, lengths: LengthRange | None = None) -> NextWords:
    """Return the exact distribution of the next word after 0, 1, 2, ... words of each sentence.

    Only the words before a position matter, so texts may be incomplete. Equal sentences are computed
    once, and sentences of one length together.

    Args:
        truth: a grammar or a process.
        sentences: B lists of words; or a matrix (B, L) of word numbers, an array or a tensor, in which every negative
            number is padding at the end of a row.
        lengths: condition on this range of lengths of whole sentences.

    Raises:
        InputError: the sentences are neither, no sentence of the truth has such a length, or the table does not fit
            the memory of this machine.

    >>> from truesource import PCFG
    >>> grammar = PCFG.from_text("S -> S S 0.3 | a 0.4 | b 0.3")
    >>> table = next_words(grammar, [["a", "b"], ["b"]])
    >>> table
    NextWords(2 sentences of up to 2 words, 2 words)
    >>> table.probability[0, 1].round(3)
    array([0.171, 0.129, 0.7  ])
    """
    texts = sentences_of(truth.vocabulary, sentences)
    sizes = np.array([len(text) for text in texts], dtype=np.int64)
    shape = (len(texts), int(sizes.max(initial=0)) + 1, len(truth.vocabulary) + 1)
    _require_room(shape)
    table, possible = np.zeros(shape), np.zeros(shape[:2], dtype=np.bool_)

    def keep(block: Distributions) -> None:
        row = np.repeat(np.arange(len(block.members)), [len(each) for each in block.members])
        number = numbers[[member for each in block.members for member in each]]
        within = block.position <= sizes[number]
        row, number = row[within], number[within]
        table[number, block.position] = block.probability[row]
        possible[number, block.position] = block.possible[row]

    numbers = np.flatnonzero(sizes)
    lengthened = _lengthened([texts[i] for i in numbers.tolist()], _none_of(truth.vocabulary))
    for _ in next_token_distributions(truth.exact, lengthened, keep, lengths):
        pass
    empty = np.flatnonzero(sizes == 0)
    if empty.size:
        first = truth.exact.next_token([], lengths)
        table[empty, 0] = [*first.probability, first.stop]
        possible[empty, 0] = True
    return NextWords(tuple(truth.vocabulary), sizes, table, possible)


def _none_of(words: Sequence[str]) -> str:
    """Return a word that is not among some words."""
    return "_" * (1 + max(map(len, words), default=0))


def _lengthened(texts: Sequence[Sequence[str]], padding: str) -> list[list[str]]:
    """Pad texts at the end, so that there are few lengths: texts of one length are one batch.

    The words after a position do not affect it. No text grows by more than `SLACK`, since time grows as the cube of the
    length.
    """
    goals: dict[int, int] = {}
    longest = 0
    for size in sorted({len(text) for text in texts}, reverse=True):
        if not goals or longest > SLACK * size:
            longest = size
        goals[size] = longest
    return [[*text, *[padding] * (goals[len(text)] - len(text))] for text in texts]


def _require_room(shape: Sequence[int]) -> None:
    """Refuse a table before it is allocated.

    Raises:
        NoRoomError: the machine has less memory.
    """
    require_memory(
        f"a table of {shape[0]:,} sentences, {shape[1]:,} positions and {shape[2]:,} columns",
        8.0 * float(np.prod(shape, dtype=np.float64)),
        "give fewer sentences at a time",
    )
