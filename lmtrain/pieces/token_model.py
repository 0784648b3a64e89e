"""A model of pieces as a model of its own tokens, with the probabilities of all of them in every context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from transformers import PreTrainedModel

from truesource.generator.language_model import EVERY_POSITION, LogDistributions, ScoringFrame, TokenScores, model_line
from truesource.generator.objectives import Objective
from truesource.generator.piece_model import PieceTokenizer
from truesource.grammar.sentences import takes_sentences
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.data import pack, to_device
from truesource.lmtrain.pieces.scoring import OpenPredictor, require_mask, score_causal_words, score_masked_words
from truesource.lmtrain.pieces.words import Marks, Pieces, WordAligner, check_piece_counts
from truesource.lmtrain.scoring import batch_budget, log_softmax_at


class ModelOfPieces(Protocol):
    """The parts of a model of pieces that its tokens need."""

    name: str
    tokenizer: Any
    objective: Objective

    @property
    def longest(self) -> int | None:
        """Most tokens that it reads; None: any number."""

    @property
    def aligner(self) -> WordAligner:
        """Its tokeniser as scoring sees it."""

    @property
    def token_names(self) -> tuple[str, ...]:
        """(V,) the name of each token."""


class CausalPieces(ModelOfPieces, Protocol):
    """The parts of a causal model of pieces that its tokens need."""

    @property
    def pieces(self) -> PieceTokenizer:
        """Its tokeniser, for sums over all ways to cut a text."""


class TokenAligner:
    """The tokens of a model as a `WordAligner` whose words are single tokens."""

    begins: BoolArray | None = None

    def __init__(self, names: Sequence[str], marks: Marks) -> None:
        self.marks = marks
        self._numbers = {name: number for number, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self._numbers)

    def align(self, sentences: Sequence[Sequence[str]]) -> Pieces:
        """Return the numbers of tokens.

        Raises:
            InputError: there is no such token.
        """
        numbers = [self._numbers.get(piece, -1) for sentence in sentences for piece in sentence]
        if -1 in numbers:
            every = [piece for sentence in sentences for piece in sentence]
            raise InputError(f"the tokeniser has no piece {every[numbers.index(-1)]!r}")
        ids = np.array(numbers, dtype=np.int64)
        sizes = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        return Pieces(ids, np.ones_like(ids), sizes, np.zeros(len(ids), dtype=np.bool_))


class PieceNetwork(CausalPieces, Protocol):
    """A causal network of pieces."""

    model: PreTrainedModel


class MaskedPieceNetwork(ModelOfPieces, Protocol):
    """A masked network of pieces."""

    model: PreTrainedModel


class TokensOfModel:
    """A model of pieces whose texts are sequences of its pieces.

    The piece for unknown characters is ``<unk>``. Probabilities are over all the model emits: the probability of
    special tokens is lost to the model, as in the scores of words.

    Args:
        model: of pieces.
    """

    folder: Path | None = None

    def __init__(self, model: ModelOfPieces) -> None:
        self.name, self.longest, self.objective = model.name, model.longest, model.objective
        self.of_words: Any = model  #: the same model as one of words
        names, marks = model.token_names, model.aligner.marks
        self._aligner = TokenAligner(names, marks)
        special = {*model.tokenizer.all_special_ids, *marks.before, *marks.after}
        self.vocabulary = tuple(name for number, name in enumerate(names) if name and number not in special)
        unknown = model.tokenizer.unk_token_id
        numbers = [number for number, name in enumerate(names) if name and number not in special]
        self._columns = [*numbers, -1 if unknown is None else int(unknown)]

    def __repr__(self) -> str:
        return model_line(self)

    @property
    def reading(self) -> str:
        """The way that tokens are scored, for signatures."""
        return "tokens"

    def _of_one_length(self, sentences: Sequence[Sequence[str]], around: int) -> Pieces:
        """Return the numbers of tokens of sentences of one length, with ``around`` tokens around each.

        Raises:
            InputError: the sentences differ in length, one is empty or longer than the model's positions, or there is
                no such token.
        """
        lengths = {len(sentence) for sentence in sentences}
        if len(lengths) != 1 or 0 in lengths:
            raise InputError("full distributions need sentences of one length, 1 or more; group them by length")
        pieces = self._aligner.align(sentences)
        check_piece_counts(pieces, around, self.longest)
        return pieces


class CausalTokens(TokensOfModel):
    """A causal model of pieces whose texts are sequences of its pieces.

    Args:
        model: a causal model of pieces.

    Raises:
        InputError: it has no token for the beginning or the end of a text.
    """

    def __init__(self, model: CausalPieces) -> None:
        marks = model.aligner.marks
        if not marks.before or not marks.after:
            raise InputError(f"{model.name} has no token for the beginning or the end of a text, as distributions need")
        super().__init__(model)
        self._columns.append(marks.after[0])

    @property
    def spelling(self) -> dict[str, str] | None:
        """The spelling of each piece in an alphabet in which a text is the concatenation of its pieces, by name.

        None if texts are not concatenations of pieces.
        """
        try:
            inventory = self.of_words.pieces.inventory
        except InputError:
            return None
        names, numbers = self.of_words.token_names, inventory.ids.tolist()
        return {names[number]: piece for number, piece in zip(numbers, inventory.pieces, strict=True)}


class TokenModel(CausalTokens):
    """A causal network of pieces as a model of its tokens, with full distributions over them.

    Args:
        model: a causal network of pieces.
        predictor: opens it.

    Raises:
        InputError: it has no token for the beginning or the end of a text.
    """

    def __init__(self, model: PieceNetwork, predictor: OpenPredictor) -> None:
        super().__init__(model)
        self._network, self._predictor = model.model, predictor

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame = EVERY_POSITION) -> TokenScores:
        """Return the log probability of every piece and sentence end that ``frame`` counts.

        Raises:
            InputError: a sentence is longer than the model's positions.
        """
        return score_causal_words(self._network, self._predictor, self._aligner, sentences, frame, longest=self.longest)

    @takes_sentences
    @torch.inference_mode()
    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Yield the distribution of the next piece or end at every position; see `DistributionModel.distributions`.

        Raises:
            InputError: the sentences differ in length, one is empty or longer than the model's positions.
        """
        marks = self._aligner.marks
        pieces = self._of_one_length(sentences, len(marks.before))
        inputs, _ = pack(pieces.rows(), marks.pad, before=marks.before[0])
        device = next(self._network.parameters()).device
        step = max(1, batch_budget(len(self._aligner)) // inputs.shape[1])
        table = np.empty((inputs.shape[1], len(inputs), len(self._columns)))
        for at in range(0, len(inputs), step):
            ids = torch.from_numpy(inputs[at : at + step]).to(device)
            logits = self._network(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits
            for position in range(inputs.shape[1]):
                table[position, at : at + step] = log_softmax_at(logits[:, position], self._columns)
        for position, rows in enumerate(table):
            yield LogDistributions(position, rows)


class MaskedTokenModel(TokensOfModel):
    """A masked network of pieces as a model of its tokens, with full distributions over them.

    One piece is masked at a time: the context is all other pieces of the sentence, and their number.

    Args:
        model: a masked network of pieces.
        predictor: opens it.

    Raises:
        InputError: its tokeniser has no mask.
    """

    def __init__(self, model: MaskedPieceNetwork, predictor: OpenPredictor) -> None:
        self._mask = require_mask(model.aligner.marks)
        super().__init__(model)
        self._network, self._predictor = model.model, predictor

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame = EVERY_POSITION) -> TokenScores:
        """Return the log probability of every piece that ``frame`` counts, with that piece alone masked.

        Raises:
            InputError: a sentence is longer than the model's positions.
        """
        return score_masked_words(self._network, self._predictor, self._aligner, sentences, frame, longest=self.longest)

    @takes_sentences
    @torch.inference_mode()
    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Yield the distribution of each piece, with it alone masked; see `DistributionModel.distributions`.

        Raises:
            InputError: the sentences differ in length, one is empty or longer than the model's positions.
        """
        marks = self._aligner.marks
        pieces = self._of_one_length(sentences, len(marks.before) + len(marks.after))
        before, after = (np.tile(np.array(tokens, dtype=np.int64), (len(sentences), 1)) for tokens in marks[:2])
        inputs = np.hstack([before, np.stack(pieces.rows()), after])
        rows = max(1, batch_budget(len(self._aligner)) // inputs.shape[1])
        together = max(1, rows // len(inputs))  # positions
        n = len(sentences[0])
        for first in range(0, n, together):
            places = np.arange(first, min(n, first + together))
            table = self._at_places(inputs, places, rows)
            for place, block in zip(places.tolist(), np.split(table, len(places)), strict=True):
                yield LogDistributions(place, block)

    def _at_places(self, inputs: IntArray, places: IntArray, rows: int) -> FloatArray:
        """Return the distributions at some positions of all sentences, position by position, (P * W, E) nats.

        Args:
            inputs: (W, L) tokens, those around a text included.
            places: (P,) numbers of pieces to the left.
            rows: number of rows that the network reads at once.
        """
        self._network.eval()
        device = next(self._network.parameters()).device
        masked = np.tile(inputs, (len(places), 1))
        column = np.repeat(places, len(inputs)) + len(self._aligner.marks.before)
        masked[np.arange(len(masked)), column] = self._mask
        parts = []
        with self._predictor(self._network) as predict:
            for at in range(0, len(masked), rows):
                some = masked[at : at + rows]
                positions = np.arange(len(some)) * some.shape[1] + column[at : at + rows]
                batch = {"input_ids": torch.from_numpy(some), "positions": torch.from_numpy(positions)}
                logits = predict(self._network, to_device(batch, device))
                parts.append(log_softmax_at(logits, self._columns))
        return np.concatenate(parts)
