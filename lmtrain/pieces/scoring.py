"""Log probabilities of words under models of pieces.

Causal (Pimentel & Meister 2024, "How to Compute the Probability of a Word"; Oh & Schuler 2024). Where words
carry a mark at their beginning, the pieces of ``the`` are also how ``theatre`` may begin: their product is the
probability that the text goes on with ``the...``, and only the next piece tells that the word is over. With
B(c) the probability that what follows c begins a word or ends the sentence::

    p(w | c) = p(pieces of w | c) * B(c w) / B(c)        p(end | c) = p(<eos> | c) / B(c)

At the start of a sentence no word is open, so nothing is divided by there: what the model gives to pieces that
begin no word is lost to it, as what it gives to special tokens is everywhere. So the words and the end of a
sentence add up to exactly the log probability of its pieces and ``<eos>``, and the words alone to that of its
pieces and B of what follows. Marks at the places within a word (``##``) serve as well as marks at beginnings: the
next piece without one begins a word. Where marks stand at the ends of words, B is 1 and nothing is corrected.
Each word is scored as its tokeniser cuts it: other cuts of the same word are not added.

Masked: the pseudo-log-likelihood of words, left to right within the word (PLL-word-l2r, Kauf & Ivanova 2023, "A
Better Way to Do Masked Language Model Scoring"): a piece is predicted with itself and the later pieces of its
word masked, and the pieces of a word are summed. How many pieces the word has is given away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from generator.frame import ScoringFrame
from generator.language_model import TokenScores, assemble_scores
from grammar.errors import InputError
from grammar.progress import meter
from lmtrain.data import Batch, by_length, pack, to_device
from lmtrain.pieces.cutter import Cutter, Flags, Ints, Pieces
from lmtrain.scoring import batch_budget

Floats = NDArray[np.float64]
#: opens a function from the model and a batch to logits (T, V) at the batch's ``positions``
OpenPredictor = Callable[[nn.Module], AbstractContextManager[Callable[[nn.Module, Batch], torch.Tensor]]]


def score_causal_words(
    model: nn.Module,
    predictor: OpenPredictor,
    cutter: Cutter,
    sentences: Sequence[Sequence[str]],
    frame: ScoringFrame,
    *,
    longest: int | None = None,
) -> TokenScores:
    """Each word given those before it, and the end of the sentence given all.

    A sentence with a word that cannot be read goes to ``impossible``, as ``<unk>`` is no string with a
    probability; where the frame skips unknown words, only that word is left out.

    Raises:
        InputError: the frame counts something that the tokeniser has no token for, or a sentence has more
            than ``longest`` tokens.
    """
    before, after, _, pad = cutter.marks
    if frame.first and not before:
        raise InputError(
            "the tokeniser has no token for the beginning of a text, so nothing predicts the first word;"
            " use a frame that leaves it out, such as paper"
        )
    if frame.eos and not after:
        raise InputError("the tokeniser has no token for the end of a text; use a frame without it, such as paper")
    pieces = cutter.cut(sentences)
    check_piece_counts(pieces, len(before), longest)
    if cutter.begins is not None:
        _check_marks(pieces, cutter.begins, sentences)
    slots = _Slots.of(pieces)
    values, boundary = np.zeros(slots.n), np.zeros(slots.n)
    columns = None if cutter.begins is None else torch.from_numpy(np.flatnonzero(cutter.begins))
    rows, sizes = pieces.rows(), np.diff(pieces.bounds)
    end = after[0] if after else pad
    head = np.array(before, dtype=np.int64)
    with predictor(model) as predict, meter("score", len(rows)) as bar:
        for some in by_length(len(before) + sizes, batch_budget(len(cutter))):
            bar.advance(len(some))
            some = some[len(before) + sizes[some] > 0]
            if not len(some):
                continue
            table, own = pack([np.concatenate([head, rows[i]]) for i in some], pad)
            places = np.concatenate([np.arange(slots.first[i] + 1 - len(before), slots.first[i + 1]) for i in some])
            batch = {
                "input_ids": torch.from_numpy(table),
                "positions": torch.from_numpy(np.flatnonzero(own)),
                "targets": torch.from_numpy(np.concatenate([np.append(rows[i], end)[1 - len(before) :] for i in some])),
            }
            values[places], boundary[places] = _run(predict, model, batch, columns, slots.opens[places])
    sums = np.add.reduceat(values, slots.segments) if len(slots.segments) else values
    opening = boundary[slots.segments]
    sums -= opening
    sums[slots.words] += opening[slots.words + 1]
    if frame.unk == "token":
        sums[slots.words[pieces.unreadable]] = np.nan  # the whole sentence has no score
    ends = np.cumsum(pieces.words + 1)
    found = [sums[b - n - 1 : b if after else b - 1] for b, n in zip(ends, pieces.words, strict=True)]
    return assemble_scores(found, _by_sentence(pieces.unreadable, pieces), frame)


class _Slots(NamedTuple):
    """Places of predictions: the pieces of each sentence, then its end, sentence after sentence."""

    n: int
    first: Ints  #: (S+1,) first slot of each sentence; the last entry is ``n``
    segments: Ints  #: (W+S,) first slot of each word and of each end, in order
    words: Ints  #: (W,) which segments are words; the others are ends
    opens: Flags  #: (n,) true where a word or an end follows a finished word, so that B is wanted

    @classmethod
    def of(cls, pieces: Pieces) -> _Slots:
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


def score_masked_words(
    model: nn.Module,
    predictor: OpenPredictor,
    cutter: Cutter,
    sentences: Sequence[Sequence[str]],
    frame: ScoringFrame,
    *,
    longest: int | None = None,
) -> TokenScores:
    """Each word given all others, the model run once per piece (PLL-word-l2r); no end of the sentence.

    Words that cannot be read are treated as by `score_causal_words`.

    Raises:
        InputError: the tokeniser has no mask, or a sentence has more than ``longest`` tokens.
    """
    before, after, mask, pad = cutter.marks
    if mask is None:
        raise InputError("the tokeniser has no mask token, so no word can be scored with this masked model")
    pieces = cutter.cut(sentences)
    check_piece_counts(pieces, len(before) + len(after), longest)
    starts, bounds, sentence = pieces.starts, pieces.bounds, pieces.sentence
    counted = np.ones(len(pieces.counts), dtype=bool)
    counted[pieces.unreadable] = False  # skipped, or without a score
    if not frame.first:
        counted &= ~_first_words(pieces)
    wanted = np.flatnonzero(np.repeat(counted, pieces.counts))
    word = np.repeat(np.arange(len(pieces.counts)), pieces.counts)
    place, stop = (x - bounds[sentence[word]] + len(before) for x in (np.arange(len(word)), starts[word + 1]))
    left, right = np.array(before, dtype=np.int64), np.array(after, dtype=np.int64)
    rows = [np.concatenate([left, row, right]) for row in pieces.rows()]
    sizes = np.diff(bounds) + len(before) + len(after)
    values = np.zeros(len(word))
    with predictor(model) as predict, meter("score, one mask at a time", len(wanted)) as bar:
        for some in by_length(sizes[sentence[word[wanted]]], batch_budget(len(cutter))):
            targets = wanted[some]
            table, own = pack([rows[i] for i in sentence[word[targets]]], pad)
            column = np.arange(table.shape[1])
            table[(column >= place[targets][:, None]) & (column < stop[targets][:, None])] = mask
            batch = {
                "input_ids": torch.from_numpy(table),
                "positions": torch.from_numpy(np.arange(len(some)) * table.shape[1] + place[targets]),
                "targets": torch.from_numpy(pieces.ids[targets]),
            }
            if not own.all():
                batch["attention_mask"] = torch.from_numpy(own.astype(np.int64))
            values[targets] = _run(predict, model, batch)[0]
            bar.advance(len(some))
    sums = np.add.reduceat(values, starts[:-1]) if len(word) else values
    if frame.unk == "token":
        sums[pieces.unreadable] = np.nan
    return assemble_scores(_by_sentence(sums, pieces), _by_sentence(pieces.unreadable, pieces), frame)


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


def _check_marks(pieces: Pieces, begins: Flags, sentences: Sequence[Sequence[str]]) -> None:
    """Stop where pieces do not tell where words begin: every word but a sentence's first must begin with a mark.

    Raises:
        InputError: a word has no mark, or one within it, so that its pieces are those of other words as well.
    """
    marked = begins[pieces.ids]
    first = np.zeros(len(pieces.ids), dtype=bool)
    first[pieces.starts[:-1]] = True
    opening = _first_words(pieces)
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


def _first_words(pieces: Pieces) -> Flags:
    """(W,) true for the first word of each sentence."""
    return np.diff(pieces.sentence, prepend=-1) > 0


def _by_sentence(values: NDArray[Any], pieces: Pieces) -> list[NDArray[Any]]:
    return np.split(values, np.cumsum(pieces.words)[:-1]) if len(pieces.words) else []


def _run(
    predict: Callable[[nn.Module, Batch], torch.Tensor],
    model: nn.Module,
    batch: Batch,
    columns: torch.Tensor | None = None,
    opens: Flags | None = None,
) -> tuple[Floats, Floats]:
    """Log probability of the targets, and, where ``opens``, of all ``columns`` together (else 0); (T,) each, nats."""
    model.eval()
    device = next(model.parameters()).device
    with torch.inference_mode():
        batch = to_device(batch, device)
        logits = predict(model, batch).double()
        total = torch.logsumexp(logits, dim=1)
        values = (logits.gather(1, batch["targets"][:, None])[:, 0] - total).cpu().numpy()
        boundary = np.zeros(len(values))
        if columns is not None and opens is not None and opens.any():
            at = torch.from_numpy(np.flatnonzero(opens)).to(device)
            together = torch.logsumexp(logits[at].index_select(1, columns.to(device)), dim=1) - total[at]
            boundary[opens] = together.cpu().numpy()
    if not (np.isfinite(values).all() and np.isfinite(boundary).all()):
        raise InputError("the model's logits are not finite; its weights are damaged or its training diverged")
    return values, boundary
