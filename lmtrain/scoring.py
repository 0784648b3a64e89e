"""Log probabilities of the words of sentences under a trained network, in a scoring frame.

The output layer runs only at predicted positions, see `Predictor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from truesource.generator.language_model import ScoringFrame, TokenScores, framed_scores
from truesource.generator.objectives import ORDERS, ranks
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.lmtrain.architectures.target_head import TargetHead
from truesource.lmtrain.data import Batch, by_length, causal_batch, one_mask_batch, pack, step_batch, to_device
from truesource.lmtrain.word_vocabulary import NO_TOKEN, WordVocabulary

LOGITS = 2**23  #: maximum number of float64 logits in memory (64 MiB)


def batch_budget(vocabulary_size: int) -> int:
    """Return the number of tokens of a scoring batch whose logits fit in memory."""
    return max(256, min(8192, LOGITS // vocabulary_size))


def check_lengths(sentences: Sequence[Sequence[str]], longest: int | None) -> None:
    """Refuse a sentence that the model has no positions for.

    Raises:
        InputError: a sentence has more than ``longest`` words (the message says which); None: there is no limit.
    """
    if longest is None:
        return
    for number, sentence in enumerate(sentences):
        if len(sentence) > longest:
            raise InputError(
                f"sentence {number + 1} has {len(sentence)} words, but the model takes at most {longest};"
                " leave it out or train with more max_positions"
            )


def target_log_probs(logits: Tensor, targets: Tensor) -> FloatArray:
    """Return the log softmax in float64 over everything the model emits, at the targets. (T,), nats."""
    exact = logits.double()
    chosen = exact.gather(1, targets[:, None])[:, 0] - torch.logsumexp(exact, dim=1)
    return chosen.cpu().numpy()


def score_causal(
    model: nn.Module, head: str, vocabulary: WordVocabulary, sentences: Sequence[Sequence[str]], frame: ScoringFrame
) -> TokenScores:
    """Score each word given the words before it, and the end of the sentence given all."""
    rows = vocabulary.encode(sentences)
    lengths = np.array([len(row) + 1 for row in rows], dtype=np.int64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    values = np.zeros(int(ends[-1]) if len(ends) else 0)
    with predictor(model, head) as predict, meter("the model's probabilities of sentences", len(rows)) as bar:
        for some in by_length(lengths, batch_budget(len(vocabulary))):
            batch = causal_batch([rows[i] for i in some], vocabulary)
            places = np.concatenate([np.arange(starts[i], ends[i]) for i in some])
            values[places] = _run(predict, model, batch, use_cache=False)
            bar.advance(len(some))
    words = np.concatenate([np.append(row, vocabulary.eos) for row in rows]) if rows else np.zeros(0, dtype=np.int64)
    return framed_scores(values, words == vocabulary.unk, lengths, lengths - 1, frame)


def score_masked(
    model: nn.Module, head: str, vocabulary: WordVocabulary, sentences: Sequence[Sequence[str]], frame: ScoringFrame
) -> TokenScores:
    """Score each word given all others, the model run once per word with that word alone masked."""

    def batches(rows: Sequence[IntArray], numbers: IntArray, places: IntArray) -> list[Batch]:
        return [one_mask_batch(rows, places, vocabulary)]

    return _score_words(model, head, vocabulary, sentences, frame, batches, "the model's probabilities of masked words")


def score_any_order(
    model: nn.Module, head: str, vocabulary: WordVocabulary, sentences: Sequence[Sequence[str]], frame: ScoringFrame
) -> TokenScores:
    """Score each word given the words before it in random orders, as means over orders; one run a word and order.

    The sum over a sentence estimates the lower bound (ELBO) of its log probability given its length.
    """
    orders = [ranks(sentence) for sentence in sentences]

    def batches(rows: Sequence[IntArray], numbers: IntArray, places: IntArray) -> Iterator[Batch]:
        for order in range(ORDERS):
            turns, _ = pack([orders[i][order] for i in numbers], -1)
            hidden = turns >= turns[np.arange(len(turns)), places][:, None]
            yield step_batch(rows, hidden, places, vocabulary)

    return _score_words(model, head, vocabulary, sentences, frame, batches, "the model's probabilities in any order")


def _score_words(
    model: nn.Module,
    head: str,
    vocabulary: WordVocabulary,
    sentences: Sequence[Sequence[str]],
    frame: ScoringFrame,
    batches: Callable[[Sequence[IntArray], IntArray, IntArray], Iterable[Batch]],
    what: str,
) -> TokenScores:
    """Score each word with some words masked, as the mean over the batches that hide them.

    Args:
        model: the network.
        head: its output layer.
        vocabulary: of the model.
        sentences: to score.
        frame: positions that count.
        batches: for some rows of tokens, the numbers of their sentences and a place in each, what the network reads
            to predict the words there.
        what: label of the progress bar.
    """
    rows = vocabulary.encode(sentences)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    sentence = np.repeat(np.arange(len(rows)), lengths)
    position = np.arange(len(sentence)) - (np.cumsum(lengths) - lengths)[sentence]
    words = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    unknown = words == vocabulary.unk
    selected = np.flatnonzero(frame.counts(position, lengths[sentence], unknown))
    values = np.zeros(len(sentence))
    with predictor(model, head) as predict, meter(what, len(selected)) as bar:
        for some in by_length(lengths[sentence[selected]] + 2, batch_budget(len(vocabulary))):
            targets = selected[some]
            numbers = sentence[targets]
            selected_batches = batches([rows[i] for i in numbers], numbers, position[targets])
            values[targets] = np.mean([_run(predict, model, batch) for batch in selected_batches], axis=0)
            bar.advance(len(some))
    return framed_scores(values, unknown, lengths, lengths, frame)


def _run(predict: Any, model: nn.Module, batch: Batch, **options: Any) -> FloatArray:
    model.eval()
    device = next(model.parameters()).device
    with torch.inference_mode():
        batch = to_device(batch, device)
        values = target_log_probs(predict(model, batch, **options), batch["targets"])
    require_finite(values)
    return values


def require_finite(values: FloatArray) -> None:
    """Refuse log probabilities that are not finite.

    Raises:
        InputError: one is not.
    """
    if not np.isfinite(values).all():
        raise InputError("the model's logits are not finite; its weights are damaged or its training diverged")


class Predictor:
    """Logits, or the loss, of a model at chosen positions.

    The output layer is most of a small model's work, and a masked model needs it at few positions. A hook before it
    selects them, so it works for any architecture, also inside a distributed wrapper.
    """

    def __init__(self, model: nn.Module, head: str) -> None:
        self._positions: Tensor | None = None
        self._targets: Tensor | None = None
        layer = getattr(model, head)
        self._scores_targets = isinstance(layer, TargetHead)
        self._handle = layer.register_forward_pre_hook(self._pick)

    def _pick(self, module: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        if self._positions is None:
            return None
        hidden = arguments[0].flatten(0, 1).index_select(0, self._positions)
        return (hidden, *arguments[1:]) if self._targets is None else (hidden, self._targets)

    def __call__(self, model: nn.Module, batch: Batch, **options: Any) -> Tensor:
        """Return logits (T, V) at ``batch["positions"]``; ``model`` is the hooked one or a wrapper of it."""
        inputs = {key: batch[key] for key in ("input_ids", "attention_mask") if key in batch}
        self._positions = batch["positions"]
        try:
            logits: Tensor = model(**inputs, **options).logits
        finally:
            self._positions = None
        return logits

    def loss(self, model: nn.Module, batch: Batch, *, reduction: str = "mean", **options: Any) -> Tensor:
        """Return the cross-entropy with the expected tokens of the batch, or else its targets, nats.

        It is the mean, weighted if the batch has weights, or with ``reduction="none"`` the loss of each (T,).
        """
        if "weights" in batch and reduction == "mean":
            weights = batch["weights"]
            return (self.loss(model, batch, reduction="none", **options) * weights).sum() / weights.sum()
        if not self._scores_targets:
            aim = batch.get("expected", batch["targets"])
            return functional.cross_entropy(self(model, batch, **options).float(), aim, reduction=reduction)
        self._targets = batch["targets"]
        try:
            losses = -self(model, batch, **options)
        finally:
            self._targets = None
        return losses if reduction == "none" else losses.mean()

    def close(self) -> None:
        """Remove the hook."""
        self._handle.remove()


def predictor(model: nn.Module, head: str) -> AbstractContextManager[Predictor]:
    """Return a `Predictor` that leaves the model as it was."""
    return closing(Predictor(model, head))


def log_softmax_at(logits: Tensor, columns: Sequence[int]) -> FloatArray:
    """Return the log softmax in float64 over everything the model emits, at some columns, (W, E) nats.

    A column `NO_TOKEN` is -inf: the model never emits what it has no token for.
    """
    numbers = torch.tensor(columns, device=logits.device)
    exact = torch.log_softmax(logits.double(), dim=1)[:, numbers]
    exact[:, numbers == NO_TOKEN] = -torch.inf
    if bool(exact.isnan().any()):
        raise InputError("the model's logits are not finite; its weights are damaged or its training diverged")
    result: FloatArray = exact.cpu().numpy()
    return result
