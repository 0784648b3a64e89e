"""Trained models as `LanguageModel`s: loading them, scoring, next-word probabilities, samples."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from generator.frame import ScoringFrame
from generator.language_model import LogDistributions, Objective, TokenScores
from grammar.errors import InputError
from lmtrain.architectures import ARCHITECTURES, architecture_of
from lmtrain.decoding.decode import Alphabet, Samples, draw
from lmtrain.decoding.network import NetworkStepper
from lmtrain.decoding.settings import Decoding
from lmtrain.distributions import causal_distributions, masked_distributions
from lmtrain.next_token import NextToken
from lmtrain.ngram.loading import is_ngram, load_ngram
from lmtrain.ngram.model import NgramModel
from lmtrain.ngram.pieces import NgramPieceModel
from lmtrain.pieces.checkpoint import load_checkpoint, load_tokenizer, subword_model
from lmtrain.pieces.models import CausalPieceModel, MaskedPieceModel
from lmtrain.quiet import no_bars
from lmtrain.scoring import check_lengths, score_causal, score_masked
from lmtrain.subwords import is_ours, is_subword
from lmtrain.tokenizer import Vocabulary


class _TrainedModel:
    """What both kinds share."""

    objective: Objective
    _auto: ClassVar[Any]
    _extra: ClassVar[int]  #: positions taken by <bos> and <eos>

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, name: str) -> None:
        architecture = architecture_of(model.config.model_type)
        if architecture is None or architecture.objective != self.objective:
            raise InputError(
                f"a model of type {model.config.model_type!r} is not a {self.objective} architecture known here;"
                f" there are {', '.join(sorted(ARCHITECTURES))}"
            )
        self.model = model.eval()
        self.tokenizer = tokenizer
        self._vocabulary = Vocabulary(tokenizer)
        self._head = architecture.head
        longest = architecture.longest(model.config)
        self._longest = None if longest is None else longest - self._extra
        self._name = name

    @classmethod
    def load(cls, folder: str | Path, *, device: str | None = None) -> Self:
        """Load a trained folder.

        Args:
            folder: made by `lmtrain.training.train`, or by ``save_pretrained`` of such a model and tokeniser.
            device: such as ``"cpu"``; None: a GPU when there is one.

        Raises:
            InputError: the folder is absent, unfinished, damaged, or of the other kind.
        """
        folder = Path(folder)
        if not (folder / "config.json").is_file():
            raise InputError("there is no trained model here; train one, or finish its training", folder)
        try:
            with no_bars():
                model = cls._auto.from_pretrained(folder, local_files_only=True)
                tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise InputError(f"the model cannot be loaded: {str(error).splitlines()[0]}", folder) from error
        if is_subword(tokenizer):
            raise InputError("this is a model of subword pieces; load it with load_model", folder)
        target = device or ("cuda" if torch.cuda.is_available() else "cpu")
        return cls(model.to(target), tokenizer, _name(folder))

    @property
    def name(self) -> str:
        """What the model is called in tables."""
        return self._name

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words it knows, frequent ones first; all others are ``<unk>`` to it."""
        return self._vocabulary.words

    @property
    def longest(self) -> int | None:
        """The most words a sentence may have; None: any number."""
        return self._longest


class CausalModel(_TrainedModel):
    """A model of each word given those before it; implements `generator.language_model.LanguageModel`."""

    objective: Objective = "causal"
    _auto = AutoModelForCausalLM
    _extra = 1

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Log probability of every word and sentence end that ``frame`` counts.

        The softmax is over all the model emits, special tokens included: what it gives to them is lost
        to it, as for any reader of its probabilities. The last position of a sentence is its end.

        Raises:
            InputError: a sentence is longer than the model's positions.
        """
        check_lengths(sentences, self.longest)
        return score_causal(self.model, self._head, self._vocabulary, sentences, frame)

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Every word and the end of the sentence at every position; see `DistributionModel.distributions`.

        Raises:
            InputError: the sentences differ in length, one is empty or longer than the model's positions.
        """
        check_lengths(sentences, self.longest)
        yield from causal_distributions(self.model, self._head, self._vocabulary, sentences)

    def next_token(self, prefix: Sequence[str]) -> NextToken:
        """Probabilities of what follows ``prefix`` (words; may be empty).

        Raises:
            InputError: the prefix is longer than the model's positions.
        """
        check_lengths([prefix], self.longest)
        v = self._vocabulary
        ids = torch.tensor([[v.bos, *v.encode([prefix])[0].tolist()]], device=self.model.device)
        with torch.inference_mode():
            logits = self.model(input_ids=ids, use_cache=False).logits[0, -1].double()
        p = torch.softmax(logits, dim=0).cpu().numpy()
        return NextToken(p[v.word_ids], float(p[v.unk]), float(p[v.eos]), float(p[[v.pad, v.bos, v.mask]].sum()))

    def sample(self, n: int, *, seed: int, max_tokens: int | None = None, batch_size: int = 512) -> Samples:
        """Draw sentences word by word from the model's own distribution (ancestral sampling).

        ``<pad>``, ``<bos>`` and ``<mask>`` are never drawn: their small probability goes to the rest in
        proportion.

        Args:
            n: how many.
            seed: equal seeds give equal sentences on the same machine, for one ``batch_size``.
            max_tokens: a sentence not ended after so many words is returned as it is and flagged; None:
                as many as the model takes, or 200 if it takes any number.
            batch_size: sentences drawn at once.
        """
        drawn = draw(self, n, Decoding(max_tokens=max_tokens), seed=seed, rows=batch_size)
        return Samples(drawn.sentences, drawn.finished)

    @property
    def alphabet(self) -> Alphabet:
        """Its tokens, for `lmtrain.decoding`."""
        return Alphabet.of_words(self._vocabulary, self.longest)

    def stepper(self) -> NetworkStepper:
        """Its next-token log probabilities, for one batch of text at a time."""
        return NetworkStepper(self.model, self._vocabulary.bos)


class MaskedModel(_TrainedModel):
    """A model of each word given all others; implements `generator.language_model.LanguageModel`."""

    objective: Objective = "masked"
    _auto = AutoModelForMaskedLM
    _extra = 2

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Log probability of every word that ``frame`` counts, with that word alone masked.

        A pseudo-log-likelihood: the network runs once per word. There is no end-of-sentence position. The
        softmax is over all the model emits, special tokens included.

        Raises:
            InputError: a sentence is longer than the model's positions.
        """
        check_lengths(sentences, self.longest)
        return score_masked(self.model, self._head, self._vocabulary, sentences, frame)

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Every word at every position, with that word alone masked; see `DistributionModel.distributions`.

        Raises:
            InputError: the sentences differ in length, one is empty or longer than the model's positions.
        """
        check_lengths(sentences, self.longest)
        yield from masked_distributions(self.model, self._head, self._vocabulary, sentences)


TrainedModel = CausalModel | MaskedModel | CausalPieceModel | MaskedPieceModel | NgramModel | NgramPieceModel


def as_language_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, name: str) -> TrainedModel:
    """A network of one of our architectures with a tokeniser made here, as the kind of model it is."""
    if is_subword(tokenizer):
        return subword_model(model, tokenizer, name)
    architecture = architecture_of(model.config.model_type)
    masked = architecture is not None and architecture.objective == "masked"
    return (MaskedModel if masked else CausalModel)(model, tokenizer, name)


def load_model(folder: str | Path, *, device: str | None = None) -> TrainedModel:
    """Load a folder as the kind of model it is.

    What `lmtrain.training.train` made of whole words comes as `CausalModel` or `MaskedModel`, counts as `NgramModel`
    or `lmtrain.ngram.pieces.NgramPieceModel`; everything else that
    ``save_pretrained`` of a causal or masked model and its fast tokeniser wrote, subword models trained here too, as
    a model of pieces that scores words, see `lmtrain.pieces`.

    Raises:
        InputError: see `CausalModel.load` and `lmtrain.pieces.checkpoint.load_checkpoint`.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise InputError("there is no trained model here; train one, or finish its training", folder)
    if is_ngram(folder):
        return load_ngram(folder)
    try:
        kind = AutoConfig.from_pretrained(folder, local_files_only=True).model_type
    except (OSError, ValueError) as error:
        raise InputError(f"the model cannot be loaded: {str(error).splitlines()[0]}", folder) from error
    architecture = architecture_of(kind)
    tokenizer = load_tokenizer(folder)
    if architecture is None or is_subword(tokenizer) or not is_ours(tokenizer):
        return load_checkpoint(folder, tokenizer, _name(folder), device=device)
    load = partial(CausalModel.load if architecture.objective == "causal" else MaskedModel.load, device=device)
    return load(folder)


def _name(folder: Path) -> str:
    record = folder / "training.json"
    if record.is_file():
        return str(json.loads(record.read_text(encoding="utf-8"))["name"])
    return folder.name
