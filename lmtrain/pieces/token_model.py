"""A causal model of pieces as a model of its own tokens, with the probabilities of all of them in every context."""

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
from truesource.grammar.support.arrays import BoolArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.data import pack
from truesource.lmtrain.pieces.scoring import OpenPredictor, score_causal_words
from truesource.lmtrain.pieces.words import Marks, Pieces, WordAligner, check_piece_counts
from truesource.lmtrain.scoring import batch_budget, log_softmax_at


class CausalPieces(Protocol):
    """The parts of a causal model of pieces that its tokens need."""

    name: str
    tokenizer: Any

    @property
    def longest(self) -> int | None:
        """Most tokens that it reads; None: any number."""

    @property
    def aligner(self) -> WordAligner:
        """Its tokeniser as scoring sees it."""

    @property
    def token_names(self) -> tuple[str, ...]:
        """(V,) the name of each token."""

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


class TokensOfModel:
    """A causal model of pieces whose texts are sequences of its pieces.

    The piece for unknown characters is ``<unk>``. Probabilities are over all the model emits: the probability of
    special tokens is lost to the model, as in the scores of words.

    Args:
        model: a causal model of pieces.

    Raises:
        InputError: it has no token for the beginning or the end of a text.
    """

    objective: Objective = "causal"
    folder: Path | None = None

    def __init__(self, model: CausalPieces) -> None:
        marks = model.aligner.marks
        if not marks.before or not marks.after:
            raise InputError(f"{model.name} has no token for the beginning or the end of a text, as distributions need")
        self.name, self.longest = model.name, model.longest
        self.of_words = model  #: the same model as one of words
        self._aligner = TokenAligner(model.token_names, marks)
        special = {*model.tokenizer.all_special_ids, *marks.before, *marks.after}
        names = model.token_names
        self.vocabulary = tuple(name for number, name in enumerate(names) if name and number not in special)
        unknown = model.tokenizer.unk_token_id
        numbers = [number for number, name in enumerate(names) if name and number not in special]
        self._columns = [*numbers, -1 if unknown is None else int(unknown), marks.after[0]]

    def __repr__(self) -> str:
        return model_line(self)

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

    @property
    def reading(self) -> str:
        """The way that tokens are scored, for signatures."""
        return "tokens"


class TokenModel(TokensOfModel):
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
        pieces = self._aligner.align(sentences)
        lengths = {len(sentence) for sentence in sentences}
        if len(lengths) != 1 or 0 in lengths:
            raise InputError("full distributions need sentences of one length, 1 or more; group them by length")
        marks = self._aligner.marks
        check_piece_counts(pieces, len(marks.before), self.longest)
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
