"""The truth inside a custom training loop: fresh sentences, exact targets, and the divergence from the truth.

A text begins with the token of a new text and each position predicts what comes next, as in GPT-2: the input of
``w1 .. wn`` is ``<bos> w1 .. wn <eos>``, and its targets are n+1 exact distributions, of which the last is the one
after ``wn``; nothing is predicted after the end. In the order of the truth the words have their numbers there, 0 to
V-1, and V is both the token before a text and the end. In the order of a tokeniser all tokens are its own. The words
that a tokeniser of words does not know are ``<unk>`` to the truth; a tokeniser of pieces cuts truth and text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerFast, TrainerCallback

from truesource.generator.arguments import as_lengths, as_truth
from truesource.generator.process_sampler import sampler_of
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.sentences import as_sentences, takes_sentence, takes_sentences
from truesource.grammar.support.arrays import IntArray, random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth
from truesource.lmtrain.data import Batch, pack
from truesource.lmtrain.pieces.segmentation import PieceCutter
from truesource.lmtrain.tokenizer import UNK
from truesource.lmtrain.word_vocabulary import NO_TOKEN, WordVocabulary

if TYPE_CHECKING:
    from transformers import Trainer

_STREAM = 7  #: of random numbers; held-out sentences have another
_HELD_OUT = 8
IGNORED = -100  #: label of a position that a loss leaves out, in PyTorch and transformers
AT_ONCE = 32  #: held-out sentences in one batch


def endless(
    truth: Truth, *, batch: int, seed: int, lengths: LengthRange | None = None, start: int = 0
) -> Iterator[list[list[str]]]:
    """Return an endless iterator of fresh batches of sentences.

    Batch i depends on the seed and i alone, so a training that resumes at step i takes ``start=i``.

    Args:
        truth: to draw from.
        batch: sentences in each.
        seed: whole number from 0 on.
        lengths: condition on the number of words.
        start: number of the first batch.

    Raises:
        InputError: a number is out of range, or no sentence has such a length.
    """
    return _batches_of(truth, batch, seed, lengths, start, _STREAM)


def _batches_of(
    truth: Truth, batch: int, seed: int, lengths: LengthRange | None, start: int, stream: int
) -> Iterator[list[list[str]]]:
    if batch < 1 or start < 0:
        raise InputError(f"a batch has 1 sentence or more and a number from 0 on, got {batch} and {start}")
    random_state(seed)  # refuses an invalid seed
    sampler = sampler_of(truth, lengths)

    def batches() -> Iterator[list[list[str]]]:
        number = start
        while True:
            yield sampler.sentences(sampler.draw(batch, random_state(seed, stream, number)))
            number += 1

    return batches()


@dataclass(frozen=True, eq=False)
class TokenOrder:
    """The tokens of a model, and how the words of the truth become them."""

    truth: Truth  #: with words that have no token as ``<unk>``
    tokens: IntArray  #: (V+1,) token of each word of that truth, then of the end
    before: int  #: token before a text
    size: int  #: tokens of the model
    cutter: PieceCutter | None = None  #: cuts sentences into the words of that truth, if they are pieces

    @classmethod
    def of(cls, truth: Truth, vocabulary: WordVocabulary | PreTrainedTokenizerFast | None = None) -> TokenOrder:
        """Return the order of a tokeniser of words or of pieces; None: of the truth.

        Raises:
            InputError: the tokeniser lacks a word and has no token for unknown ones, or the truth is a process, whose
                words cannot be merged into one; for pieces as `PieceCutter`.
        """
        if isinstance(vocabulary, PreTrainedTokenizerFast):
            return cls._of_pieces(truth, PieceCutter(vocabulary))
        end = len(truth.vocabulary)
        if vocabulary is None:
            return cls(truth, np.arange(end + 1), end, end + 1)
        if not isinstance(vocabulary, WordVocabulary):
            raise InputError(
                "expecting the vocabulary of a tokeniser of words, or a fast tokeniser of transformers, got"
                f" {type(vocabulary).__name__}; AutoTokenizer.from_pretrained(FOLDER) loads one"
            )
        missing = [word for word in truth.vocabulary if word not in vocabulary.ids]
        if missing and vocabulary.unk == NO_TOKEN:
            raise InputError(f"the tokeniser has no token for {missing[0]!r}, and none for unknown words; use another")
        seen = truth.collapse(vocabulary.words, UNK) if missing else truth
        tokens = [*(vocabulary.ids.get(word, vocabulary.unk) for word in seen.vocabulary), vocabulary.eos]
        return cls(seen, np.array(tokens, dtype=np.int64), vocabulary.bos, len(vocabulary))

    @classmethod
    def _of_pieces(cls, truth: Truth, cutter: PieceCutter) -> TokenOrder:
        language = cutter.language(truth)
        before, after = cutter.around
        numbers = {name: number for number, name in enumerate(cutter.names)}
        tokens = [*(numbers[piece] for piece in language.vocabulary), after]
        return cls(language, np.array(tokens, dtype=np.int64), before, len(cutter.names), cutter)

    @takes_sentence
    def read(self, sentence: Sequence[str]) -> list[str]:
        """Return the sentence as the truth has it here."""
        if self.cutter is not None:
            return self.cutter.cut([sentence])[0]
        word_ids = self.truth.word_ids
        return [word if word in word_ids or UNK not in word_ids else UNK for word in sentence]


class ExactTargets(Dataset[Batch]):
    """Sentences with the exact distribution of the next token at each of their positions.

    An element is ``input_ids`` (n+2,), ``attention_mask`` (n+2,), ``labels`` (n+2,) and ``target_probs`` (n+2, E). The
    first three are what a causal model of transformers takes: its loss moves the labels by one position. Row t of
    ``target_probs`` is the exact distribution of the token at position t+1; the row of the end is zero. `collate` pads
    elements to a batch: labels of padding are -100, rows of ``target_probs`` zero, and `kl_to_truth` leaves them out. A
    `DataLoader` asks for whole batches at once, which are computed together.

    Args:
        truth: the grammar or process.
        sentences: sentences of the truth, or their beginnings.
        vocabulary: of a tokeniser of words; or a fast tokeniser of pieces, which then cuts truth and sentences; None:
            tokens are the numbers of the words of the truth, V is the end.
        lengths: the condition that the sentences were drawn under.
        dtype: of the probabilities.

    Raises:
        InputError: as `TokenOrder.of`.
    """

    def __init__(
        self,
        truth: Truth,
        sentences: Sequence[Sequence[str]] = (),
        vocabulary: WordVocabulary | PreTrainedTokenizerFast | None = None,
        *,
        lengths: LengthRange | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._order = TokenOrder.of(as_truth(truth), vocabulary)
        self._sentences = as_sentences(sentences)
        self._lengths = as_lengths(lengths)
        self._dtype = dtype

    @property
    def size(self) -> int:
        """Number of tokens, the last dimension of ``target_probs``."""
        return self._order.size

    def __len__(self) -> int:
        return len(self._sentences)

    def __getitem__(self, number: int) -> Batch:
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Batch]:
        """Return several elements; a `DataLoader` requests a batch so."""
        sentences = [self._sentences[i] for i in numbers]
        whole = self.batch(sentences)
        ends = whole["attention_mask"].sum(dim=1).tolist()
        return [{name: table[i, :end] for name, table in whole.items()} for i, end in enumerate(ends)]

    def inputs(self, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
        """Return the ``input_ids`` of any sentences, padded, (B, L); unknown words are ``<unk>`` if there is a token.

        Raises:
            InputError: a sentence has a word without a token.
        """
        order = self._order
        rows = [order.truth.encode(order.read(sentence)) for sentence in sentences]
        wrong = [i for i, row in enumerate(rows) if (row < 0).any()]
        if wrong:
            raise InputError(f"a word of {' '.join(sentences[wrong[0]])!r} has no token")
        packed, _ = pack([order.tokens[row] for row in rows], int(order.tokens[-1]), before=order.before)
        return torch.from_numpy(packed)

    @property
    def columns(self) -> tuple[tuple[str, ...], IntArray]:
        """Words of the truth that the tokens tell apart, and the token of each and of the end, (V+1,)."""
        return self._order.truth.vocabulary, self._order.tokens

    @takes_sentences
    def batch(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Return any sentences as padded tensors, such as sentences of `endless`; see the class.

        Raises:
            InputError: the truth cannot make a sentence.
        """
        order = self._order
        read = [order.read(sentence) for sentence in sentences]
        exact = order.truth.next_words(read, self._lengths)
        inside = np.arange(exact.possible.shape[1]) <= exact.lengths[:, None]
        if not exact.possible[inside].all():
            wrong = int(np.argmax((inside & ~exact.possible).any(axis=1)))
            raise InputError(f"the truth cannot make {' '.join(sentences[wrong])!r}; train on sentences of the truth")
        number, positions = exact.possible.shape
        probs = torch.zeros((number, positions + 1, order.size), dtype=self._dtype)
        of_words = torch.from_numpy(exact.probability).to(self._dtype)
        probs[:, :positions].index_add_(2, torch.from_numpy(order.tokens), of_words)
        end = int(order.tokens[-1])
        rows = [order.tokens[order.truth.encode(sentence)] for sentence in read]
        inputs, _ = pack(rows, end, before=order.before, after=end)
        mask = torch.from_numpy(np.arange(positions + 1) < exact.lengths[:, None] + 2)
        return _batch(torch.from_numpy(inputs), mask, probs)

    def collate(self, elements: Sequence[Batch]) -> Batch:
        """Return elements as padded tensors, (B, L), and ``target_probs`` (B, L, E) if they have any.

        `transformers.Trainer` takes columns that its model does not name out of the elements, and so these.
        """
        shape = len(elements), max(len(element["input_ids"]) for element in elements)
        inputs = torch.full(shape, int(self._order.tokens[-1]))
        mask = torch.zeros(shape, dtype=torch.bool)
        probs = torch.zeros((*shape, self.size), dtype=self._dtype) if "target_probs" in elements[0] else None
        for row, element in enumerate(elements):
            end = len(element["input_ids"])
            inputs[row, :end], mask[row, :end] = element["input_ids"], True
            if probs is not None:
                probs[row, :end] = element["target_probs"]
        return _batch(inputs, mask, probs)

    def collate_soft(self, elements: Sequence[Batch]) -> Batch:
        """Return elements as `collate` does, with the exact distributions as ``labels``.

        This is the collator of a `transformers.Trainer` with ``compute_loss_func`` and ``remove_unused_columns=False``.
        """
        batch = self.collate(elements)
        return {**batch, "labels": batch.pop("target_probs")}


def _batch(inputs: Tensor, mask: Tensor, probs: Tensor | None) -> Batch:
    """Join the parts of a batch."""
    batch = {"input_ids": inputs, "attention_mask": mask.long(), "labels": inputs.masked_fill(~mask, IGNORED)}
    return batch if probs is None else {**batch, "target_probs": probs}


def kl_to_truth(logits: Tensor, expected: Tensor, reduction: Literal["mean", "sum", "none"] = "mean") -> Tensor:
    """Return KL(P || Q) of a token, nats, of the truth P and the model Q; 0 only if both are equal.

    It has the gradient of the cross-entropy with exact soft targets, so it is also a loss to train on.

    Args:
        logits: (..., E) of the model, or log probabilities; it may have more tokens than the truth, after these.
        expected: (..., E) exact probabilities; rows that are zero throughout are padding.
        reduction: mean over all positions that are no padding, their sum, or each of them (0 at padding).

    Raises:
        InputError: the shapes do not agree, or there is nothing but padding to take a mean of.
    """
    size = expected.shape[-1]
    if logits.shape[:-1] != expected.shape[:-1] or logits.shape[-1] < size:
        raise InputError(
            f"the logits have the shape {tuple(logits.shape)}, but the truth has {tuple(expected.shape)}; both need the"
            " same positions, and the model at least the tokens of the truth"
        )
    log_q = torch.log_softmax(logits.to(torch.promote_types(logits.dtype, expected.dtype)), dim=-1)[..., :size]
    # if P is 0 the model may say -inf, and 0 times -inf is no number
    cross = (expected * log_q.masked_fill(expected == 0, 0.0)).sum(-1)
    each: Tensor = torch.special.xlogy(expected, expected).sum(-1) - cross
    if reduction == "none":
        return each
    positions = (expected > 0).any(-1).sum()
    if reduction == "mean" and positions == 0:
        raise InputError("all rows of the truth are zero, so there is no position to take a mean of")
    total = each.sum()
    return total if reduction == "sum" else total.div(positions)


class TruthCallback(TrainerCallback):  # type: ignore[misc]
    """A callback that logs the KL of the model from the truth through the `Trainer`, so that trackers get it too.

    Every ``steps`` steps it logs ``kl_to_truth``: the mean KL(P || Q) of a token in nats on held-out sentences of the
    truth, which are the same throughout. Weights, modes and random numbers stay as they are.

    Args:
        trainer: its `Trainer`.
        truth: the grammar or process.
        vocabulary: of the tokeniser of the model, or its tokeniser of pieces; None: the order of the truth, see
            `ExactTargets`.
        steps: number of steps between two measurements.
        sentences: number of held-out sentences.
        seed: of these sentences.
        lengths: the condition that the training text was drawn under.

    Raises:
        InputError: a number is out of range, or as `ExactTargets`.
    """

    def __init__(
        self,
        trainer: Trainer,
        truth: Truth,
        vocabulary: WordVocabulary | PreTrainedTokenizerFast | None = None,
        *,
        steps: int = 100,
        sentences: int = 128,
        seed: int = DEFAULT_SEED,
        lengths: LengthRange | None = None,
    ) -> None:
        if steps < 1:
            raise InputError(f"steps is {steps}, but measurements need 1 step or more between them")
        self._trainer = trainer
        self._steps = steps
        held_out = next(_batches_of(truth, sentences, seed, lengths, 0, _HELD_OUT))
        held_out.sort(key=len)
        targets = ExactTargets(truth, (), vocabulary, lengths=lengths)
        self._batches = [targets.batch(held_out[at : at + AT_ONCE]) for at in range(0, len(held_out), AT_ONCE)]

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **more: Any) -> None:
        """Measure and log every ``steps`` steps."""
        if state.global_step % self._steps:
            return
        should_log = control.should_log  # logging resets it, and the loss of this step would be lost
        self._trainer.log({"kl_to_truth": self.measure(model)})
        control.should_log = should_log

    def measure(self, model: Any) -> float:
        """Return the mean KL(P || Q) of a token on the held-out sentences, nats.

        Raises:
            InputError: the model reads shorter texts only, has other tokens than the truth, or its logits are no
                numbers.
        """
        longest = max(batch["input_ids"].shape[1] for batch in self._batches)
        most = getattr(getattr(model, "config", None), "max_position_embeddings", None)
        if most is not None and longest > most:
            raise InputError(
                f"a held-out sentence has {longest} tokens, but the model reads {most} at most; give lengths such as"
                f" 1..{most - 1}, or a longer model"
            )
        training = model.training
        model.eval()
        try:
            with torch.no_grad():
                total, positions = 0.0, 0
                for batch in self._batches:
                    device = next(model.parameters()).device
                    logits = model(input_ids=batch["input_ids"].to(device)).logits
                    total += float(kl_to_truth(logits.double(), batch["target_probs"].to(device).double(), "sum"))
                    positions += int((batch["target_probs"] > 0).any(-1).sum())
        finally:
            model.train(training)
        if math.isnan(total):
            raise InputError("the model's logits are not numbers; lower the learning rate")
        return total / positions
