"""Batches: sentences become padded tensors with the positions to predict, in an order fixed by a seed.

A batch holds about the same number of tokens whatever the lengths, or, if that is asked for, the same number of
sentences. Batch number i is a function of the seed and i alone: a run that is resumed, or shared by
several processes, sees the same data as one that was not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from truesource.generator.columns import Rows
from truesource.generator.objectives import Objective
from truesource.grammar.support.arrays import BoolArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import LARGEST_NUMBER, approximate
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.word_vocabulary import Encoder

#: ``input_ids`` (B, L), ``attention_mask`` (B, L) where something must be hidden, ``positions`` (T,) into
#: the flattened B * L, ``targets`` (T,) token numbers to predict there, ``expected`` (T, V), the probability of each
#: token there, where a model is trained on distributions, and ``weights`` (T,) where some count more than others
Batch = dict[str, Tensor]

POOL = 16  #: batches of about equal tokens whose sentences are sorted by length together
PLANNED = 1_000  #: epochs whose batches are counted; more have as many batches each as these have on average
POOL_EQUAL = 50  #: the same for batches of equal numbers of sentences, which have more padding


def pack(
    rows: Sequence[IntArray], filler: int, *, before: int | None = None, after: int | None = None
) -> tuple[IntArray, BoolArray]:
    """Pack rows of different lengths into an array (B, L), filled on the right, and mark the rows' own entries."""
    lengths = np.array([len(row) for row in rows])
    left = int(before is not None)
    table = np.full((len(rows), left + int(lengths.max()) + int(after is not None)), filler, dtype=np.int64)
    column = np.arange(table.shape[1])
    occupied = (column >= left) & (column < left + lengths[:, None])
    table[occupied] = np.concatenate(rows)
    if before is not None:
        table[:, 0] = before
    if after is not None:
        table[np.arange(len(rows)), left + lengths] = after
    return table, occupied


def causal_batch(rows: Sequence[IntArray], vocabulary: Encoder) -> Batch:
    """Return ``<bos> w1 .. wn`` with targets ``w1 .. wn <eos>``.

    Padding is on the right, where no causal model looks, so there is no attention mask.
    """
    inputs, occupied = pack(rows, vocabulary.eos, before=vocabulary.bos)
    targets = np.roll(inputs, -1, axis=1)
    ends = np.array([len(row) for row in rows])
    targets[np.arange(len(rows)), ends] = vocabulary.eos
    occupied[:, 0] = True
    positions = np.flatnonzero(occupied)
    return {
        "input_ids": torch.from_numpy(inputs),
        "positions": torch.from_numpy(positions),
        "targets": torch.from_numpy(targets.ravel()[positions]),
    }


def masked_batch(rows: Sequence[IntArray], hidden: BoolArray, vocabulary: Encoder) -> Batch:
    """Return ``<bos> w1 .. wn <eos>`` in which the ``hidden`` (B, max n) words are ``<mask>`` and are to be predicted.

    A hidden word is always replaced by ``<mask>``, never by another word or itself: scoring masks one
    word at a time, so training shows what scoring will show.
    """
    inputs, _ = pack(rows, vocabulary.pad, before=vocabulary.bos, after=vocabulary.eos)
    chosen = np.zeros(inputs.shape, dtype=bool)
    chosen[:, 1:-1] = hidden
    positions = np.flatnonzero(chosen)
    targets = inputs.ravel()[positions]
    inputs[chosen] = vocabulary.mask
    batch = {
        "input_ids": torch.from_numpy(inputs),
        "positions": torch.from_numpy(positions),
        "targets": torch.from_numpy(targets),
    }
    visible = inputs != vocabulary.pad
    if not visible.all():
        batch["attention_mask"] = torch.from_numpy(visible.astype(np.int64))
    return batch


def one_mask_batch(rows: Sequence[IntArray], places: IntArray, vocabulary: Encoder) -> Batch:
    """Return a batch like `masked_batch`, with exactly the word ``places[i]`` of row i hidden."""
    width = max(len(row) for row in rows)
    return masked_batch(rows, np.arange(width) == places[:, None], vocabulary)


def any_order_batch(rows: Sequence[IntArray], rng: np.random.Generator, vocabulary: Encoder) -> Batch:
    """Make rows in which a random number of words, from one to all, are ``<mask>`` and are to be predicted.

    Each number m is as likely, and so is each set of m words. A word counts n/m of a row of n words: the mean over
    words is the loss of masked diffusion (Sahoo et al. 2024: absorbing states, linear schedule) with its time
    integrated out, and the loss of a model whose words become known in a random order. A batch takes its shares m/n
    evenly from 0 to 1, which makes the loss less noisy.
    """
    lengths = np.array([len(row) for row in rows])
    share = (rng.permutation(len(rows)) + rng.random()) / len(rows)
    number = 1 + (share * lengths).astype(np.int64)
    place = rng.random((len(rows), int(lengths.max())))
    place[np.arange(place.shape[1]) >= lengths[:, None]] = 2.0
    hidden = place.argsort(axis=1).argsort(axis=1) < number[:, None]
    batch = masked_batch(rows, hidden, vocabulary)
    batch["weights"] = torch.from_numpy(np.repeat(lengths / number, number).astype(np.float32))
    return batch


def step_batch(rows: Sequence[IntArray], hidden: BoolArray, places: IntArray, vocabulary: Encoder) -> Batch:
    """Return a batch like `masked_batch` that predicts only the word ``places[i]`` of row i, a hidden one."""
    batch = masked_batch(rows, hidden, vocabulary)
    selected = np.flatnonzero((np.arange(hidden.shape[1]) == places[:, None])[hidden])
    return {**batch, "positions": batch["positions"][selected], "targets": batch["targets"][selected]}


def random_masks(rows: Sequence[IntArray], probability: float, rng: np.random.Generator) -> BoolArray:
    """Hide each word independently with ``probability``, and at least one word of each row; (B, max n)."""
    lengths = np.array([len(row) for row in rows])
    width = int(lengths.max())
    hidden = (rng.random((len(rows), width)) < probability) & (np.arange(width) < lengths[:, None])
    place = rng.integers(lengths)
    none = np.flatnonzero(~hidden.any(axis=1))
    hidden[none, place[none]] = True
    return hidden


def cut(lengths: IntArray, order: IntArray, budget: int) -> list[IntArray]:
    """Cut ``order`` into pieces whose padded size, rows times the longest length, is within ``budget``.

    A row longer than ``budget`` is a piece of its own.
    """
    pieces, start, widest = [], 0, 0
    for end, length in enumerate(lengths[order].tolist()):
        widest = max(widest, length)
        if (end + 1 - start) * widest > budget and end > start:
            pieces.append(order[start:end])
            start, widest = end, length
    pieces.append(order[start:])
    return pieces


def by_length(lengths: IntArray, budget: int) -> Iterator[IntArray]:
    """Yield the row numbers in batches of similar length, each within ``budget`` tokens; for scoring."""
    if len(lengths):
        yield from cut(lengths, np.argsort(lengths, kind="stable"), budget)


@dataclass(frozen=True, eq=False)
class ExpectedTokens:
    """Soft targets of a causal model in place of the tokens that occurred: the probability of each token."""

    table: NDArray[np.float32]  #: (T, V) at each token and end of the train sentences in order; rows sum to 1
    digest: str  #: of all that decides them, for the record of the training

    def require(self, lengths: IntArray, size: int, objective: Objective) -> None:
        """Refuse a table that does not fit these sentences.

        Args:
            lengths: (n,) tokens of each sentence, ends not included.
            size: V, tokens of the vocabulary.
            objective: of the model.

        Raises:
            InputError: it has other positions or tokens, or the model is masked.
        """
        expected = (int(lengths.sum()) + len(lengths), size)
        if objective != "causal":
            raise InputError("only causal models are trained on expected tokens; leave them out", code="masked")
        if self.table.shape != expected:
            raise InputError(f"the expected tokens are a table {self.table.shape}, but the text needs one {expected}")


class TrainingBatches(Dataset[Batch]):
    """All batches of a training run, in order: element i is micro-batch i."""

    def __init__(
        self,
        rows: Sequence[IntArray],
        vocabulary: Encoder,
        objective: Objective,
        config: TrainConfig,
        *,
        seed: int,
        processes: int = 1,
        expected: ExpectedTokens | None = None,
    ) -> None:
        """Plan the run; ``rows`` are the encoded, non-empty train sentences, ``expected`` what is expected in them."""
        self._rows = Rows.of(rows)
        self._expected = expected
        if expected is not None:
            expected.require(self._rows.lengths, len(vocabulary), objective)
        self._vocabulary = vocabulary
        self._objective = objective
        self._config = config
        self._seed = seed
        self._lengths = self._rows.lengths + (1 if objective == "causal" else 2)
        self._plans: dict[int, list[IntArray]] = {}
        self._seen: dict[int, IntArray] = {}  # tokens of an epoch after each of its batches
        self._starts = [0]  # number of the first batch of each epoch so far planned
        group = config.accumulation * processes
        if config.max_steps is not None:
            self.n_steps = config.max_steps
        else:
            assert config.epochs is not None
            whole, part = divmod(min(config.epochs, PLANNED), 1.0)
            micro = self._first(int(whole)) + (part * len(self._plan(int(whole))) if part else 0)
            self.n_steps = max(1, round(micro / group * max(1.0, config.epochs / PLANNED)))
        if self.n_steps * group > LARGEST_NUMBER:
            raise InputError(
                f"training takes {approximate(self.n_steps * group)} batches, expecting at most {LARGEST_NUMBER:,};"
                " choose fewer epochs, or a smaller max_steps or accumulation",
                code="too-large",
            )
        self.group = group  #: micro-batches of one optimiser step, over all processes

    def __len__(self) -> int:
        return self.n_steps * self.group

    def _plan(self, epoch: int) -> list[IntArray]:
        if epoch not in self._plans:
            rng = np.random.default_rng([self._seed, 0, epoch])
            order = rng.permutation(len(self._rows))
            sentences, tokens = self._config.batch_sentences, self._config.batch_tokens
            pool = max(1, int(POOL * tokens / self._lengths.mean())) if sentences is None else POOL_EQUAL * sentences
            pieces: list[IntArray] = []
            for start in range(0, len(order), pool):
                some = order[start : start + pool]
                some = some[np.argsort(self._lengths[some], kind="stable")]
                if sentences is None:
                    pieces += cut(self._lengths, some, tokens)
                else:
                    pieces += [some[i : i + sentences] for i in range(0, len(some), sentences)]
            self._plans = {epoch: [pieces[i] for i in rng.permutation(len(pieces))]}  # keep one epoch only
        return self._plans[epoch]

    def _first(self, epoch: int) -> int:
        while len(self._starts) <= epoch:
            self._starts.append(self._starts[-1] + len(self._plan(len(self._starts) - 1)))
        return self._starts[epoch]

    def _locate(self, number: int) -> tuple[int, int]:
        """Return the epoch of a micro-batch, and its number within it."""
        epoch = 0
        while self._first(epoch + 1) <= number:
            epoch += 1
        return epoch, number - self._first(epoch)

    def __getitem__(self, number: int) -> Batch:
        epoch, within = self._locate(number)
        numbers = self._plan(epoch)[within]
        rows = [self._rows[i] for i in numbers]
        if self._objective == "causal":
            batch = causal_batch(rows, self._vocabulary)
            if self._expected is not None:
                ends = self._rows.offsets[1:] + np.arange(1, len(self._rows) + 1)  # each sentence has one more: its end
                places = [np.arange(ends[i] - len(row) - 1, ends[i]) for i, row in zip(numbers, rows, strict=True)]
                batch["expected"] = torch.from_numpy(np.asarray(self._expected.table[np.concatenate(places)]))
            return batch
        rng = np.random.default_rng([self._seed, 1, number])
        if self._objective == "any-order":
            return any_order_batch(rows, rng, self._vocabulary)
        return masked_batch(rows, random_masks(rows, self._mask_probability(number), rng), self._vocabulary)

    def _mask_probability(self, number: int) -> float:
        first, last = self._config.mask_probability, self._config.mask_probability_end
        return first if last is None else first + (last - first) * number / len(self)

    def progress(self, step: int) -> tuple[float, int]:
        """Return the epochs and tokens (words and sentence ends) that ``step`` optimiser steps have seen."""
        if step == 0:
            return 0.0, 0
        epoch, within = self._locate(step * self.group - 1)
        plan = self._plan(epoch)
        if epoch not in self._seen:
            extra = 0 if self._objective == "causal" else 1  # <bos> is an input, not a token seen
            sizes = np.array([self._lengths[piece].sum() - extra * len(piece) for piece in plan])
            self._seen = {epoch: np.cumsum(sizes)}
        seen = self._seen[epoch]
        return epoch + (within + 1) / len(plan), int(epoch * seen[-1] + seen[within])


def dev_batches(
    rows: Sequence[IntArray], vocabulary: Encoder, objective: Objective, *, limit: int, budget: int
) -> list[Batch]:
    """Return the batches of the dev loss: the same at every evaluation of every model.

    Causal: the first ``limit`` sentences. Masked: ``limit`` words drawn from the whole split, each masked
    alone, which estimates without bias the pseudo-log-likelihood per word that scoring measures. Any order: the same
    words, each at its turn in a random order.
    """
    if objective == "causal":
        rows = rows[:limit]
        places = np.zeros(0, dtype=np.int64)
    else:
        encoded = Rows.of(rows)
        total = len(encoded.flat)
        words = np.sort(np.random.default_rng(0).choice(total, size=min(limit, total), replace=False))
        sentence = np.searchsorted(encoded.offsets[1:], words, side="right")
        places = words - encoded.offsets[sentence]
        rows = [encoded[i] for i in sentence]
    lengths = np.array([len(row) + 2 for row in rows], dtype=np.int64)
    rng = np.random.default_rng(1)

    def batch_of(some: IntArray) -> Batch:
        chosen = [rows[i] for i in some]
        if objective == "causal":
            return causal_batch(chosen, vocabulary)
        if objective == "masked":
            return one_mask_batch(chosen, places[some], vocabulary)
        turns = rng.random((len(some), int(lengths[some].max()) - 2))  # words of this turn or later are hidden
        in_row = np.arange(turns.shape[1]) < (lengths[some] - 2)[:, None]
        hidden = in_row & (turns >= turns[np.arange(len(some)), places[some]][:, None])
        return step_batch(chosen, hidden, places[some], vocabulary)

    return [batch_of(some) for some in by_length(lengths, budget)]


def to_device(batch: Batch, device: Any) -> Batch:
    """Return the batch on a device."""
    return {key: value.to(device) for key, value in batch.items()}
