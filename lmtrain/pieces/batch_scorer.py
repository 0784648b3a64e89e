"""Log probabilities of the pieces of whole texts under a causal network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np
import torch
from torch import nn

from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.data import Batch, by_length, pack, to_device
from truesource.lmtrain.pieces.word_aligner import Marks

#: opens a function from the model and a batch to logits (T, V) at the batch's ``positions``
OpenPredictor = Callable[[nn.Module], AbstractContextManager[Callable[[nn.Module, Batch], torch.Tensor]]]


def row_log_probs(
    model: nn.Module,
    predictor: OpenPredictor,
    marks: Marks,
    rows: Sequence[IntArray],
    budget: int,
    *,
    longest: int | None = None,
) -> FloatArray:
    """Log probability of each row of pieces and, where there is a token for it, of the end after it.

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
        InputError: nothing stands before a text, a row is too long, or the logits are not finite.
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
    """Tokens that `row_log_probs` of these rows runs the network at, padding included."""
    sizes = _sizes(marks, rows)
    return sum(len(some) * int(sizes[some].max()) for some in by_length(sizes, budget))


def _sizes(marks: Marks, rows: Sequence[IntArray]) -> IntArray:
    """(R,) tokens that are read of each row, those before it included."""
    return np.array([len(marks.before) + len(row) for row in rows], dtype=np.int64)


def check_beginning(marks: Marks) -> None:
    """Stop where nothing predicts the first piece of a text.

    Raises:
        InputError: no token stands before a text.
    """
    if not marks.before:
        raise InputError(
            "the tokeniser has no token for the beginning of a text, so nothing predicts the first piece and"
            " whole texts have no probability; say what comes before a text, commonly its end: --before eos"
        )


def check_length(n_pieces: int, longest: int | None, text: str) -> None:
    """Stop before a text that a causal network has no positions for.

    Raises:
        InputError: ``text`` (how to call it) has so many pieces that they and the token before them are more than
            ``longest``.
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
    """Log probability of every piece of every row and of the end after it.

    Args:
        model: a causal network.
        predictor: opens it.
        marks: the tokens around a text; without one before it the first piece is not predicted (0).
        rows: R rows of T pieces in all.
        budget: tokens of a batch, padding included.
        begins: (V,) tokens whose probability together is wanted where ``opens``.
        opens: (T+R,) where.
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
    wanted = np.zeros(len(values), dtype=bool) if opens is None else opens
    columns = None if begins is None else torch.from_numpy(np.flatnonzero(begins))
    end = after[0] if after else pad
    filler = before[0] if before else pad  # stands on the right, where no causal network looks
    head = np.array(before, dtype=np.int64)
    with predictor(model) as predict:
        for some in by_length(sizes, budget):
            if advance is not None:
                advance(len(some))
            some = some[sizes[some] > 0]
            if not len(some):
                continue
            table, own = pack([np.concatenate([head, rows[i]]) for i in some], filler)
            places = np.concatenate([np.arange(first[i] + 1 - len(before), first[i + 1]) for i in some])
            batch = {
                "input_ids": torch.from_numpy(table),
                "positions": torch.from_numpy(np.flatnonzero(own)),
                "targets": torch.from_numpy(np.concatenate([np.append(rows[i], end)[1 - len(before) :] for i in some])),
            }
            values[places], boundary[places] = log_probs_at(predict, model, batch, columns, wanted[places])
    return values, boundary


def log_probs_at(
    predict: Callable[[nn.Module, Batch], torch.Tensor],
    model: nn.Module,
    batch: Batch,
    columns: torch.Tensor | None = None,
    opens: BoolArray | None = None,
) -> tuple[FloatArray, FloatArray]:
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
