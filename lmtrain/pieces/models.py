"""Models of pieces, each a `LanguageModel` of words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from typing import Self

from tokenizers.models import WordLevel
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from truesource.generator.language_model import Objective, PieceTokenizer, ScoringFrame, TokenScores
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.cache import without_cache
from truesource.lmtrain.data import Batch
from truesource.lmtrain.decoding.decode import Alphabet
from truesource.lmtrain.decoding.network import NetworkStepper
from truesource.lmtrain.heads import predictor
from truesource.lmtrain.model_registry import network_names
from truesource.lmtrain.network_size import token_count
from truesource.lmtrain.pieces.batch_scorer import OpenPredictor, row_log_probs, row_steps
from truesource.lmtrain.pieces.incremental_scorer import NetworkScorer
from truesource.lmtrain.pieces.inventory import read_pieces
from truesource.lmtrain.pieces.kv_cache import FixedStates, KeyValues, WholeTexts, memory_of
from truesource.lmtrain.pieces.open_vocabulary import OpenVocabulary, numbers, reading_of
from truesource.lmtrain.pieces.scoring import score_causal_words, score_masked_words
from truesource.lmtrain.pieces.word_aligner import Marks, WordAligner
from truesource.lmtrain.scoring import batch_budget

_NAMED = ("bos", "eos", "cls", "sep", "pad")


class _PieceModel(OpenVocabulary):
    """What both kinds share."""

    objective: Objective
    has_hidden_states = True  #: see `truesource.generator.abilities`

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        aligner: WordAligner,
        name: str,
        *,
        head: str | None = None,
        longest: int | None = None,
    ) -> None:
        """Join a network and its tokeniser.

        Args:
            model: returns ``logits`` (B, L, V).
            tokenizer: as saved beside it.
            aligner: the same tokeniser as scoring sees it.
            name: in tables.
            head: attribute of the output layer, run only where something is predicted; None: run everywhere.
            longest: tokens that the network takes, those around the text included; None: any number.
        """
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.aligner = aligner
        self.name = name
        self.longest = longest
        self._whole_words = isinstance(tokenizer.backend_tokenizer.model, WordLevel)
        self._predictor: OpenPredictor = _everywhere if head is None else lambda model: _at_head(model, head)

    @property
    def _why(self) -> str:
        if not self._whole_words:
            return super()._why
        return (
            f"has a tokeniser of whole words, but distributions over them can be read only of the architectures"
            f" {', '.join(network_names())} with tokens for the beginning and the end of a text"
        )


class CausalPieceModel(_PieceModel):
    """A model of each piece given those before it, as a model of words; see `truesource.lmtrain.pieces.scoring`."""

    objective: Objective = "causal"
    chosen_before: str | None = None  #: the token before a text, where `around_texts` changed it

    def around_texts(self, *, before: str | None = None, end: bool = True) -> Self:
        """The same model with other tokens around a text.

        Models without a token for the beginning (Qwen, Falcon) were trained on documents one after the other, so what
        stands before a text commonly is the token that ends one: ``before="eos"``.

        Args:
            before: ``bos``, ``eos``, ``cls``, ``sep`` or ``pad``, or the token itself; None: as it is.
            end: False leaves the end of a text out of its probability, which then is that of all texts that begin so.

        Raises:
            InputError: there is no such token.
        """
        marks: Marks = self.aligner.marks
        if before is not None:
            token = getattr(self.tokenizer, f"{before}_token", None) if before in _NAMED else before
            number = self.tokenizer.get_vocab().get(token) if token is not None else None
            if number is None:
                raise InputError(f"the tokeniser of {self.name} has no token {before!r} to put before a text")
            marks = marks._replace(before=(int(number),))
        if not end:
            marks = marks._replace(after=())
        changed, aligner = copy(self), copy(self.aligner)
        aligner.marks = marks  # type: ignore[misc]
        changed.aligner, changed.chosen_before = aligner, before
        return changed

    @property
    def reading(self) -> str:
        """How words are scored, for signatures: the correction, and the tokens around a text, by number."""
        return reading_of(self.aligner)

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Log probability of every word and sentence end that ``frame`` counts.

        The softmax is over all the model emits. A sentence with a word that the pieces cannot spell is
        ``impossible``; a frame that skips unknown words leaves out that word only.

        Raises:
            InputError: a sentence is longer than the model's positions, the frame counts the first word or the
                end and there is no token for it, or a word's pieces do not show where it begins.
        """
        return score_causal_words(self.model, self._predictor, self.aligner, sentences, frame, longest=self.longest)

    @property
    def alphabet(self) -> Alphabet:
        """Its pieces, for `truesource.lmtrain.decoding`; sentences are drawn piece by piece and spelt by the tokeniser.

        Raises:
            InputError: the tokeniser has no token for the beginning or the end of a text.
        """
        before, after, _, _ = self.aligner.marks
        if not before or not after:
            raise InputError(f"{self.name} has no token to begin or to end a sentence with, so none can be drawn")
        size = token_count(self.model)
        sayable = set(self.tokenizer.get_vocab().values()) - set(self.tokenizer.all_special_ids)
        sayable |= {after[0], self.tokenizer.unk_token_id}
        return Alphabet(
            size=size,
            eos=after[0],
            never=tuple(i for i in range(size) if i not in sayable),
            longest=None if self.longest is None else self.longest - len(before),
            spell=lambda numbers: self.tokenizer.decode(list(numbers)).split(),
        )

    def stepper(self) -> NetworkStepper:
        """Log probabilities of its next piece, for one batch of text at a time."""
        return NetworkStepper(self.model, self.aligner.marks.before[0])

    @property
    def around(self) -> tuple[int, int]:
        """How many tokens stand before a text and after it: 1 or 0 each."""
        before, after, _, _ = self.aligner.marks
        return len(before), len(after)

    @cached_property
    def pieces(self) -> PieceTokenizer:
        """Its tokeniser, for sums over all ways to cut a text.

        Raises:
            InputError: its texts are no joinings of pieces (the message says why).
        """
        return read_pieces(self.tokenizer)

    def log_probs(self, rows: Sequence[IntArray]) -> FloatArray:
        """Log probability of each row of pieces, and of the end after it if there is a token for that.

        Args:
            rows: R arrays of token numbers, nothing around them; may be empty.

        Returns:
            (R,) nats, float64. The softmax is over all the model emits.

        Raises:
            InputError: the tokeniser has no token for the beginning of a text, or a row is longer than the model's
                positions.
        """
        budget = batch_budget(len(self.aligner))
        return row_log_probs(self.model, self._predictor, self.aligner.marks, rows, budget, longest=self.longest)

    def token_steps(self, rows: Sequence[IntArray]) -> int:
        """Tokens that `log_probs` of these rows runs the network at, the one before each and padding included."""
        return row_steps(self.aligner.marks, rows, batch_budget(len(self.aligner)))

    def incremental_scorer(self) -> NetworkScorer:
        """Begin to read texts piece by piece.

        Raises:
            InputError: the tokeniser has no token for the beginning of a text.
        """
        return NetworkScorer(self._memory(self.model), self.aligner.marks, longest=self.longest)

    @cached_property
    def _memory(self) -> type[KeyValues] | type[FixedStates] | type[WholeTexts]:
        return memory_of(self.model)


class MaskedPieceModel(_PieceModel):
    """A model of pieces given all others, as a model of words; see `truesource.lmtrain.pieces.scoring`."""

    objective: Objective = "masked"

    @property
    def reading(self) -> str:
        """How words are scored, for signatures: the variant, and the tokens around a text, by number."""
        before, after, _, _ = self.aligner.marks
        return f"pieces/pll-word-l2r/before={numbers(before)}/after={numbers(after)}"

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Pseudo-log-likelihood of every word that ``frame`` counts, left to right within the word.

        Words that the pieces cannot spell are treated as by `CausalPieceModel.score`.

        Raises:
            InputError: a sentence is longer than the model's positions, or the tokeniser has no mask.
        """
        return score_masked_words(self.model, self._predictor, self.aligner, sentences, frame, longest=self.longest)


@contextmanager
def _at_head(model: nn.Module, head: str) -> Iterator[Callable[[nn.Module, Batch], Tensor]]:
    options = without_cache(model)
    with predictor(model, head) as predict:
        yield lambda network, batch: predict(network, batch, **options)


@contextmanager
def _everywhere(model: nn.Module) -> Iterator[Callable[[nn.Module, Batch], Tensor]]:
    options = without_cache(model)

    def predict(network: nn.Module, batch: Batch) -> Tensor:
        inputs = {key: value for key, value in batch.items() if key not in ("positions", "targets")}
        logits: Tensor = network(**inputs, **options).logits
        return logits.flatten(0, 1).index_select(0, batch["positions"])

    yield predict
