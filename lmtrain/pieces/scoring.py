"""Log probabilities of words under models of pieces.

Causal (Pimentel & Meister 2024, "How to Compute the Probability of a Word"; Oh & Schuler 2024). If words carry a mark
at their beginning, the pieces of ``the`` may also begin ``theatre``: their product is the probability that the text
continues with ``the...``, and only the next piece shows that the word is over. With B(c) the probability that the next
piece after c begins a word or ends the sentence::

    p(w | c) = p(pieces of w | c) * B(c w) / B(c)        p(end | c) = p(<eos> | c) / B(c)

At the start of a sentence no word is open, so B does not divide there: the probability of pieces that begin no word is
lost, as the probability of special tokens is everywhere. So the words and the end of a sentence add up to exactly the
log probability of its pieces and ``<eos>``, and the words alone to the log probability of its pieces and B. Marks
within words (``##``) work like marks at beginnings: the next piece without one begins a word. If marks are at the ends
of words, B is 1 and nothing is corrected. Each word is scored as its tokeniser cuts it: other cuts of the same word are
not added.

Masked: the pseudo-log-likelihood of words, left to right within the word (PLL-word-l2r, Kauf & Ivanova 2023, "A
Better Way to Do Masked Language Model Scoring"): a piece is predicted with itself and the later pieces of its
word masked, and the pieces of a word are summed. The model learns from this how many pieces the word has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np
import torch
from torch import nn

from truesource.generator.language_model import ScoringFrame, TokenScores, assemble_scores
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.lmtrain.data import Batch, by_length, pack, to_device
from truesource.lmtrain.pieces.words import (
    Marks,
    Slots,
    WordAligner,
    align_words,
    assemble_words,
    by_sentence,
    check_piece_counts,
    first_words,
)
from truesource.lmtrain.scoring import batch_budget, require_finite

#: opens a function from the model and a batch to logits (T, V) at the batch's ``positions``
OpenPredictor = Callable[[nn.Module], AbstractContextManager[Callable[[nn.Module, Batch], torch.Tensor]]]


def score_causal_words(
    model: nn.Module,
    predictor: OpenPredictor,
    aligner: WordAligner,
    sentences: Sequence[Sequence[str]],
    frame: ScoringFrame,
    *,
    longest: int | None = None,
) -> TokenScores:
    """Score each word given the words before it, and the end of the sentence given all.

    A sentence with an unreadable word is ``impossible``, since ``<unk>`` is no string with a probability; if the frame
    skips unknown words, only that word is excluded.

    Raises:
        InputError: the frame counts something that the tokeniser has no token for, or a sentence has more
            than ``longest`` tokens.
    """
    pieces = align_words(aligner, sentences, frame, longest=longest)
    slots = Slots.of(pieces)
    with meter("the model's probabilities of sentences", len(pieces.words)) as bar:
        values, boundary = slot_log_probs(
            model,
            predictor,
            aligner.marks,
            pieces.rows(),
            batch_budget(len(aligner)),
            begins=aligner.begins,
            opens=slots.opens,
            advance=bar.advance,
        )
    return assemble_words(pieces, slots, values, boundary, frame, ends=bool(aligner.marks.after))


def score_masked_words(
    model: nn.Module,
    predictor: OpenPredictor,
    aligner: WordAligner,
    sentences: Sequence[Sequence[str]],
    frame: ScoringFrame,
    *,
    longest: int | None = None,
) -> TokenScores:
    """Score each word given all others, the model run once per piece (PLL-word-l2r); the end is not scored.

    Words that cannot be read are treated as by `score_causal_words`.

    Raises:
        InputError: the tokeniser has no mask, or a sentence has more than ``longest`` tokens.
    """
    before, after, _, pad = aligner.marks
    mask = require_mask(aligner.marks)
    pieces = aligner.align(sentences)
    check_piece_counts(pieces, len(before) + len(after), longest)
    starts, bounds, sentence = pieces.starts, pieces.bounds, pieces.sentence
    counted = np.ones(len(pieces.counts), dtype=bool)
    counted[pieces.unreadable] = False  # skipped, or without a score
    if not frame.first:
        counted &= ~first_words(pieces)
    selected = np.flatnonzero(np.repeat(counted, pieces.counts))
    word = np.repeat(np.arange(len(pieces.counts)), pieces.counts)
    place, stop = (x - bounds[sentence[word]] + len(before) for x in (np.arange(len(word)), starts[word + 1]))
    left, right = np.array(before, dtype=np.int64), np.array(after, dtype=np.int64)
    rows = [np.concatenate([left, row, right]) for row in pieces.rows()]
    sizes = np.diff(bounds) + len(before) + len(after)
    values = np.zeros(len(word))
    with predictor(model) as predict, meter("the model's probabilities of masked tokens", len(selected)) as bar:
        for some in by_length(sizes[sentence[word[selected]]], batch_budget(len(aligner))):
            targets = selected[some]
            table, occupied = pack([rows[i] for i in sentence[word[targets]]], pad)
            column = np.arange(table.shape[1])
            table[(column >= place[targets][:, None]) & (column < stop[targets][:, None])] = mask
            batch = {
                "input_ids": torch.from_numpy(table),
                "positions": torch.from_numpy(np.arange(len(some)) * table.shape[1] + place[targets]),
                "targets": torch.from_numpy(pieces.ids[targets]),
            }
            if not occupied.all():
                batch["attention_mask"] = torch.from_numpy(occupied.astype(np.int64))
            values[targets] = log_probs_at(predict, model, batch)[0]
            bar.advance(len(some))
    sums = np.add.reduceat(values, starts[:-1]) if len(word) else values
    if frame.unk == "token":
        sums[pieces.unreadable] = -np.inf
    return assemble_scores(by_sentence(sums, pieces), by_sentence(pieces.unreadable, pieces), frame)


def require_mask(marks: Marks) -> int:
    """Return the number of the mask.

    Raises:
        InputError: the tokeniser has none.
    """
    if marks.mask is None:
        raise InputError("the tokeniser has no mask token, so no word can be scored with this masked model")
    return marks.mask


def row_log_probs(
    model: nn.Module,
    predictor: OpenPredictor,
    marks: Marks,
    rows: Sequence[IntArray],
    budget: int,
    *,
    longest: int | None = None,
) -> FloatArray:
    """Return the log probability of each row of pieces and, if it has a token, of the end after it.

    Args:
        model: a causal network.
        predictor: opens it.
        marks: the tokens around a text.
        rows: numbers of the pieces of each text; may be empty.
        budget: tokens of a batch, padding included.
        longest: tokens that the network reads, the one before the text included; None: any number.

    Returns:
        (R,) nats.

    Raises:
        InputError: there is no token before a text, a row is too long, or the logits are not finite.
    """
    check_beginning(marks)
    for number, row in enumerate(rows):
        check_length(len(row), longest, f"text {number + 1}")
    if not len(rows):
        return np.zeros(0)
    values, _ = slot_log_probs(model, predictor, marks, rows, budget)
    first = np.cumsum([0, *(len(row) + 1 for row in rows)])
    if not marks.after:
        values[first[1:] - 1] = 0.0
    sums: FloatArray = np.add.reduceat(values, first[:-1])
    return sums


def row_steps(marks: Marks, rows: Sequence[IntArray], budget: int) -> int:
    """Return the number of tokens that `row_log_probs` of these rows reads, padding included."""
    sizes = _sizes(marks, rows)
    return sum(len(some) * int(sizes[some].max()) for some in by_length(sizes, budget))


def _sizes(marks: Marks, rows: Sequence[IntArray]) -> IntArray:
    """Return the number of tokens read of each row, (R,), tokens before it included."""
    return np.array([len(marks.before) + len(row) for row in rows], dtype=np.int64)


def check_beginning(marks: Marks) -> None:
    """Refuse a tokeniser with no token to predict the first piece of a text from.

    Raises:
        InputError: there is no token before a text.
    """
    if not marks.before:
        raise InputError(
            "the tokeniser has no token for the beginning of a text, so nothing predicts the first piece and"
            " whole texts have no probability; say what comes before a text, commonly its end: --before eos"
        )


def check_length(n_pieces: int, longest: int | None, text: str) -> None:
    """Refuse a text that a causal network has no positions for.

    Raises:
        InputError: ``text`` (its name) has more than ``longest`` pieces, the token before it included.
    """
    if longest is not None and n_pieces + 1 > longest:
        raise InputError(
            f"{text} has {n_pieces} pieces, but the model takes at most {longest - 1}; leave it out or use a model"
            " with more positions"
        )


def slot_log_probs(
    model: nn.Module,
    predictor: OpenPredictor,
    marks: Marks,
    rows: Sequence[IntArray],
    budget: int,
    *,
    begins: BoolArray | None = None,
    opens: BoolArray | None = None,
    advance: Callable[[int], None] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the log probability of every piece of every row and of the end after it.

    Args:
        model: a causal network.
        predictor: opens it.
        marks: the tokens around a text; without one before it the first piece is not predicted (0).
        rows: R rows of T pieces in all.
        budget: tokens of a batch, padding included.
        begins: (V,) tokens whose total probability is returned where ``opens``.
        opens: (T+R,) places of these probabilities.
        advance: called with the number of rows that are done.

    Returns:
        (T+R,) of the pieces of each row, then of its end (meaningless without a token after a text), row after row;
        and (T+R,) of all ``begins`` together where ``opens``, else 0. Nats.

    Raises:
        InputError: the logits are not finite.
    """
    before, after, _, pad = marks
    sizes = _sizes(marks, rows)
    first = np.cumsum([0, *(len(row) + 1 for row in rows)])
    values, boundary = np.zeros(int(first[-1])), np.zeros(int(first[-1]))
    at_opens = np.zeros(len(values), dtype=bool) if opens is None else opens
    columns = None if begins is None else torch.from_numpy(np.flatnonzero(begins))
    end = after[0] if after else pad
    filler = before[0] if before else pad  # on the right, where no causal network looks
    head = np.array(before, dtype=np.int64)
    with predictor(model) as predict:
        for some in by_length(sizes, budget):
            if advance is not None:
                advance(len(some))
            some = some[sizes[some] > 0]
            if not len(some):
                continue
            table, occupied = pack([np.concatenate([head, rows[i]]) for i in some], filler)
            places = np.concatenate([np.arange(first[i] + 1 - len(before), first[i + 1]) for i in some])
            batch = {
                "input_ids": torch.from_numpy(table),
                "positions": torch.from_numpy(np.flatnonzero(occupied)),
                "targets": torch.from_numpy(np.concatenate([np.append(rows[i], end)[1 - len(before) :] for i in some])),
            }
            values[places], boundary[places] = log_probs_at(predict, model, batch, columns, at_opens[places])
    return values, boundary


def log_probs_at(
    predict: Callable[[nn.Module, Batch], torch.Tensor],
    model: nn.Module,
    batch: Batch,
    columns: torch.Tensor | None = None,
    opens: BoolArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return log probabilities of the targets, and where ``opens`` of all ``columns`` together (else 0); (T,), nats."""
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
    require_finite(values)
    require_finite(boundary)
    return values, boundary
