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

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from truesource.generator.language_model import ScoringFrame, TokenScores, assemble_scores
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.lmtrain.data import by_length, pack
from truesource.lmtrain.pieces.batch_scorer import OpenPredictor, log_probs_at, slot_log_probs
from truesource.lmtrain.pieces.prediction_slots import (
    Slots,
    align_words,
    assemble_words,
    by_sentence,
    check_piece_counts,
    first_words,
)
from truesource.lmtrain.pieces.word_aligner import WordAligner
from truesource.lmtrain.scoring import batch_budget


def score_causal_words(
    model: nn.Module,
    predictor: OpenPredictor,
    aligner: WordAligner,
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
    """Each word given all others, the model run once per piece (PLL-word-l2r); no end of the sentence.

    Words that cannot be read are treated as by `score_causal_words`.

    Raises:
        InputError: the tokeniser has no mask, or a sentence has more than ``longest`` tokens.
    """
    before, after, mask, pad = aligner.marks
    if mask is None:
        raise InputError("the tokeniser has no mask token, so no word can be scored with this masked model")
    pieces = aligner.align(sentences)
    check_piece_counts(pieces, len(before) + len(after), longest)
    starts, bounds, sentence = pieces.starts, pieces.bounds, pieces.sentence
    counted = np.ones(len(pieces.counts), dtype=bool)
    counted[pieces.unreadable] = False  # skipped, or without a score
    if not frame.first:
        counted &= ~first_words(pieces)
    wanted = np.flatnonzero(np.repeat(counted, pieces.counts))
    word = np.repeat(np.arange(len(pieces.counts)), pieces.counts)
    place, stop = (x - bounds[sentence[word]] + len(before) for x in (np.arange(len(word)), starts[word + 1]))
    left, right = np.array(before, dtype=np.int64), np.array(after, dtype=np.int64)
    rows = [np.concatenate([left, row, right]) for row in pieces.rows()]
    sizes = np.diff(bounds) + len(before) + len(after)
    values = np.zeros(len(word))
    with predictor(model) as predict, meter("the model's probabilities of masked tokens", len(wanted)) as bar:
        for some in by_length(sizes[sentence[word[wanted]]], batch_budget(len(aligner))):
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
            values[targets] = log_probs_at(predict, model, batch)[0]
            bar.advance(len(some))
    sums = np.add.reduceat(values, starts[:-1]) if len(word) else values
    if frame.unk == "token":
        sums[pieces.unreadable] = -np.inf
    return assemble_scores(by_sentence(sums, pieces), by_sentence(pieces.unreadable, pieces), frame)
