"""Models of pieces, each a `LanguageModel` of words, trained here or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from tokenizers.models import WordLevel
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES

from truesource.generator.language_model import EVERY_POSITION, ScoringFrame, TokenScores, model_line
from truesource.generator.objectives import Objective
from truesource.generator.piece_model import PieceTokenizer
from truesource.grammar.sentences import takes_sentences
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.data import Batch
from truesource.lmtrain.decoding.alphabet import Alphabet
from truesource.lmtrain.decoding.steppers import NetworkStepper, without_cache
from truesource.lmtrain.loading import load_network, token_count
from truesource.lmtrain.model_registry import network_names, network_of
from truesource.lmtrain.pieces.cut_words import CutsWords
from truesource.lmtrain.pieces.incremental_scorer import FixedStates, KeyValues, NetworkScorer, WholeTexts, memory_of
from truesource.lmtrain.pieces.inventory import read_pieces
from truesource.lmtrain.pieces.scoring import (
    OpenPredictor,
    row_log_probs,
    row_steps,
    score_causal_words,
    score_masked_words,
)
from truesource.lmtrain.pieces.token_model import MaskedTokenModel, TokenModel
from truesource.lmtrain.pieces.words import Marks, OffsetAligner, OpenVocabulary, WordAligner, numbers, reading_of
from truesource.lmtrain.scoring import batch_budget, predictor
from truesource.lmtrain.subword_vocabulary import SubwordVocabulary, is_ours, is_subword

_NAMED = ("bos", "eos", "cls", "sep", "pad")


class _PieceModel(OpenVocabulary):
    """The common part of causal and masked models of pieces."""

    objective: Objective
    folder: Path | None = None  #: the folder it was loaded from, which may have the record of its training
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
            tokenizer: as saved with it.
            aligner: the same tokeniser as scoring sees it.
            name: in tables.
            head: attribute of the output layer, run only at predicted positions; None: run everywhere.
            longest: tokens that the network takes, tokens around the text included; None: any number.
        """
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.aligner = aligner
        self.name = name
        self.longest = longest
        self._whole_words = isinstance(tokenizer.backend_tokenizer.model, WordLevel)
        self._predictor: OpenPredictor = _everywhere if head is None else lambda model: _at_head(model, head)

    def __repr__(self) -> str:
        return model_line(self)

    @property
    def _why(self) -> str:
        if not self._whole_words:
            return super()._why
        return (
            f"has a tokeniser of whole words, but distributions over them can be read only of the architectures"
            f" {', '.join(network_names())} with tokens for the beginning and the end of a text"
        )


class CausalPieceModel(CutsWords, _PieceModel):
    """A model of each piece given those before it, as a model of words; see `truesource.lmtrain.pieces.scoring`."""

    objective: Objective = "causal"
    chosen_before: str | None = None  #: the token before a text, if `around_texts` changed it

    def around_texts(self, *, before: str | None = None, end: bool = True) -> Self:
        """Return this model with other tokens around a text.

        Models without a token for the beginning (Qwen, Falcon) were trained on documents one after the other, so the
        token before a text is usually the end token: ``before="eos"``.

        Args:
            before: ``bos``, ``eos``, ``cls``, ``sep`` or ``pad``, or the token itself; None: as it is.
            end: False excludes the end from the probability of a text, which then covers all texts that begin so.

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

    def as_tokens(self) -> TokenModel:
        """Return this model as a model of sequences of its pieces, with full distributions over them.

        Raises:
            InputError: it has no token for the beginning or the end of a text.
        """
        return TokenModel(self, self._predictor)

    @property
    def reading(self) -> str:
        """The way that words are scored, for signatures: the correction, and the tokens around a text, by number."""
        return reading_of(self.aligner)

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame = EVERY_POSITION) -> TokenScores:
        """Return the log probability of every word and sentence end that ``frame`` counts.

        The softmax is over all the model emits. A sentence with a word that the pieces cannot spell is ``impossible``;
        a frame that skips unknown words excludes only that word.

        Raises:
            InputError: a sentence is longer than the model's positions, the frame counts the first word or the end,
                which has no token, or a word's pieces do not show its beginning.
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
        """Return the log probabilities of its next piece, for one batch of text at a time."""
        return NetworkStepper(self.model, self.aligner.marks.before[0])

    @property
    def around(self) -> tuple[int, int]:
        """Numbers of tokens before a text and after it: 1 or 0 each."""
        before, after, _, _ = self.aligner.marks
        return len(before), len(after)

    @cached_property
    def pieces(self) -> PieceTokenizer:
        """Its tokeniser, for sums over all ways to cut a text.

        Raises:
            InputError: its texts are not concatenations of pieces (the message says why).
        """
        return read_pieces(self.tokenizer)

    def log_probs(self, rows: Sequence[IntArray]) -> FloatArray:
        """Return the log probability of each row of pieces, and of the end after it if it has a token.

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
        """Return the number of tokens that `log_probs` of these rows reads, padding and tokens before them included."""
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


class MaskedPieceModel(CutsWords, _PieceModel):
    """A model of pieces given all others, as a model of words; see `truesource.lmtrain.pieces.scoring`."""

    objective: Objective = "masked"

    def as_tokens(self) -> MaskedTokenModel:
        """Return this model as a model of sequences of its pieces, with full distributions over them.

        Raises:
            InputError: its tokeniser has no mask.
        """
        return MaskedTokenModel(self, self._predictor)

    @property
    def reading(self) -> str:
        """The way that words are scored, for signatures: the variant, and the tokens around a text, by number."""
        before, after, _, _ = self.aligner.marks
        return f"pieces/pll-word-l2r/before={numbers(before)}/after={numbers(after)}"

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame = EVERY_POSITION) -> TokenScores:
        """Return the pseudo-log-likelihood of every word that ``frame`` counts, left to right within the word.

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


def load_checkpoint(
    folder: Path,
    config: PreTrainedConfig,
    tokenizer: PreTrainedTokenizerFast,
    name: str,
    *,
    device: str | None = None,
) -> CausalPieceModel | MaskedPieceModel:
    """Load a folder made by ``save_pretrained`` of a causal or masked model and its fast tokeniser.

    Weights are read as 32-bit numbers. With a subword tokeniser of ours the text has its ``<bos>`` and ``<eos>``
    around it. With another, a causal model starts from the tokeniser's ``bos`` (else ``cls``) token and ends with
    its ``eos`` (else ``sep``), and a masked model takes the tokens that the tokeniser puts around a text.

    Args:
        folder: with ``config.json``, weights, ``tokenizer.json``.
        config: of that folder, see `truesource.lmtrain.loading.load_config`.
        tokenizer: of that folder, see `truesource.lmtrain.loading.load_tokenizer`.
        name: in tables.
        device: such as ``"cpu"``; None: a GPU when there is one.

    Raises:
        InputError: something is absent or damaged, the model is neither causal nor masked, its weights do not fit its
            configuration (see `lmtrain.loading.load_network`), or the tokeniser does not belong to it.
    """
    objective = objective_of(config, folder)
    return piece_model(load_network(folder, config, tokenizer, objective, device), tokenizer, name, objective, folder)


def piece_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    name: str,
    objective: Objective,
    folder: Path | None = None,
) -> CausalPieceModel | MaskedPieceModel:
    """Join a network and its fast tokeniser.

    Args:
        model: ready to be run.
        tokenizer: that goes with it.
        name: in tables.
        objective: of the network, see `objective_of`.
        folder: for messages.

    Raises:
        InputError: the network reads later words, or the tokeniser does not belong to it.
    """
    if is_ours(tokenizer) and is_subword(tokenizer) and network_of(model.config) is not None:
        return subword_model(model, tokenizer, name)
    kind = CausalPieceModel if objective == "causal" else MaskedPieceModel
    aligner = OffsetAligner(tokenizer, objective)
    loaded = kind(model, tokenizer, aligner, name, longest=_positions(model, tokenizer))
    if objective == "causal" and _sees_ahead(loaded.model):
        raise InputError("this causal model reads words after the one it predicts, so it cannot be scored", folder)
    return loaded


def subword_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, name: str
) -> CausalPieceModel | MaskedPieceModel:
    """Return a network of one of our architectures with a subword tokeniser made here.

    Raises:
        InputError: the architecture is unknown here.
    """
    architecture = network_of(model.config)
    if architecture is None:
        raise InputError(f"a model of type {model.config.model_type!r} is not an architecture known here")
    kind = CausalPieceModel if architecture.objective == "causal" else MaskedPieceModel
    longest = architecture.longest(model.config)
    return kind(model, tokenizer, SubwordVocabulary(tokenizer), name, head=architecture.head, longest=longest)


def objective_of(config: Any, folder: Path | None) -> Objective:
    """The objective of a checkpoint, by the class that its configuration names.

    Raises:
        InputError: the class is neither a causal nor a masked model.
    """
    name = (getattr(config, "architectures", None) or ["nothing"])[0]
    if name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        return "causal"
    if name in MODEL_FOR_MASKED_LM_MAPPING_NAMES.values():
        return "masked"
    architecture = network_of(config)
    if architecture is not None and name.endswith(("LMHeadModel", "ForCausalLM", "ForMaskedLM")):
        return architecture.objective
    raise InputError(f"the checkpoint holds a {name}, which is neither a causal nor a masked language model", folder)


def _positions(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> int | None:
    """Return the maximum number of tokens that the network and its tokeniser take; None: any number."""
    limits = [int(tokenizer.model_max_length)]
    stated = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if stated is not None and stated > 0:
        limits.append(int(stated))
    for name, module in model.named_modules():  # some tables of positions start after the number of <pad>
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            limits.append(module.num_embeddings - module.padding_idx - 1)
    return min(limits) if min(limits) < 10**9 else None


def _sees_ahead(model: PreTrainedModel) -> bool:
    """Return True if the logits of a causal model change with a token further right."""
    size = token_count(model)
    ids = torch.arange(8, device=model.device).remainder(size)[None]
    other = ids.clone()
    other[0, -1] = (other[0, -1] + 1) % size
    with torch.inference_mode():
        one, two = (model.eval()(input_ids=x).logits[0, :-1].double() for x in (ids, other))
    return bool((one - two).abs().max() > 1e-5 * one.abs().max().clamp(min=1.0))
