"""From log probabilities of pieces to those of words; see `truesource.lmtrain.pieces.scoring` for the formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truesource.generator.language_model import ScoringFrame, TokenScores, assemble_scores
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.pieces.word_aligner import Pieces, WordAligner


class Slots(NamedTuple):
    """Places of predictions: the pieces of each sentence, then its end, sentence after sentence."""

    n: int
    first: IntArray  #: (S+1,) first slot of each sentence; the last entry is ``n``
    segments: IntArray  #: (W+S,) first slot of each word and of each end, in order
    words: IntArray  #: (W,) which segments are words; the others are ends
    opens: BoolArray  #: (n,) true where a word or an end follows a finished word, so that B is wanted

    @classmethod
    def of(cls, pieces: Pieces) -> Slots:
        """The slots of some sentences."""
        sentences = np.arange(len(pieces.words) + 1)
        first = pieces.bounds + sentences
        words = np.arange(len(pieces.counts)) + pieces.sentence
        segments = np.empty(len(pieces.counts) + len(pieces.words), dtype=np.int64)
        segments[words] = pieces.starts[:-1] + pieces.sentence
        segments[np.cumsum(pieces.words) + sentences[:-1]] = first[1:] - 1
        opens = np.zeros(int(first[-1]), dtype=bool)
        opens[segments] = True
        opens[first[:-1]] = False
        return cls(int(first[-1]), first, segments, words, opens)


def align_words(
    aligner: WordAligner, sentences: Sequence[Sequence[str]], frame: ScoringFrame, *, longest: int | None = None
) -> Pieces:
    """The pieces of sentences whose words a causal model of pieces can score.

    Raises:
        InputError: the frame counts something that the tokeniser has no token for, a sentence has more than
            ``longest`` tokens, or a word's pieces do not show where it begins.
    """
    before, after, _, _ = aligner.marks
    if frame.first and not before:
        raise InputError(
            "the tokeniser has no token for the beginning of a text, so nothing predicts the first word;"
            " say what comes before a text (score --before eos), or use a frame that leaves the first word out, such as"
            " paper"
        )
    if frame.eos and not after:
        raise InputError("the tokeniser has no token for the end of a text; use a frame without it, such as paper")
    pieces = aligner.align(sentences)
    check_piece_counts(pieces, len(before), longest)
    if aligner.begins is not None:
        _check_marks(pieces, aligner.begins, sentences)
    return pieces


def assemble_words(
    pieces: Pieces, slots: Slots, values: FloatArray, boundary: FloatArray, frame: ScoringFrame, *, ends: bool
) -> TokenScores:
    """Log probabilities of words and ends from those of pieces.

    Args:
        pieces: of the sentences.
        slots: `Slots.of` them.
        values: (n,) log probability of what stands at each slot, nats.
        boundary: (n,) log B where ``slots.opens``, else 0.
        frame: which positions count. Where it does not skip unknown words, a sentence with a word that the pieces do
            not spell has no score.
        ends: whether the model predicts the end of a text.
    """
    sums = np.add.reduceat(values, slots.segments) if len(slots.segments) else values
    opening = boundary[slots.segments]
    sums -= opening
    sums[slots.words] += opening[slots.words + 1]
    sums[np.isnan(sums)] = -np.inf  # both of a difference are impossible
    if frame.unk == "token":
        sums[slots.words[pieces.unreadable]] = -np.inf  # the whole sentence has no score
    stops = np.cumsum(pieces.words + 1)
    found = [sums[b - n - 1 : b if ends else b - 1] for b, n in zip(stops, pieces.words, strict=True)]
    return assemble_scores(found, by_sentence(pieces.unreadable, pieces), frame)


def check_piece_counts(pieces: Pieces, marks: int, longest: int | None) -> None:
    """Stop before a sentence that the model has no positions for.

    Raises:
        InputError: a sentence has more than ``longest`` tokens, ``marks`` included (the message says which).
    """
    if longest is None:
        return
    sizes = np.diff(pieces.bounds)
    over = np.flatnonzero(sizes + marks > longest)
    if len(over):
        raise InputError(
            f"sentence {over[0] + 1} has {sizes[over[0]]} pieces, but the model takes at most {longest - marks};"
            " leave it out or use a model with more positions"
        )


def _check_marks(pieces: Pieces, begins: BoolArray, sentences: Sequence[Sequence[str]]) -> None:
    """Stop where pieces do not tell where words begin: every word but a sentence's first must begin with a mark.

    Raises:
        InputError: a word has no mark, or one within it, so that its pieces are those of other words as well.
    """
    marked = begins[pieces.ids]
    first = np.zeros(len(pieces.ids), dtype=bool)
    first[pieces.starts[:-1]] = True
    opening = first_words(pieces)
    word = np.repeat(np.arange(len(pieces.counts)), pieces.counts)
    wrong = np.flatnonzero((marked != first) & ~(first & opening[word]))
    if len(wrong):
        at = word[wrong[0]]
        number = int(pieces.sentence[at])
        place = int(at - pieces.words[:number].sum())
        raise InputError(
            f"the tokeniser cuts the word {sentences[number][place]!r} of sentence {number + 1} into pieces that do"
            " not show where it begins and ends, so it has no probability as one word"
        )


def first_words(pieces: Pieces) -> BoolArray:
    """(W,) true for the first word of each sentence."""
    return np.diff(pieces.sentence, prepend=-1) > 0


def by_sentence(values: NDArray[Any], pieces: Pieces) -> list[NDArray[Any]]:
    """What stands at each word (W,), sentence by sentence."""
    return np.split(values, np.cumsum(pieces.words)[:-1]) if len(pieces.words) else []
