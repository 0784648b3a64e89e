"""Trained models as `LanguageModel`s: loading them, scoring, next-word probabilities, samples."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
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
from generator.language_model import Objective, TokenScores
from grammar.errors import InputError
from lmtrain.architectures import ARCHITECTURES
from lmtrain.quiet import no_bars
from lmtrain.scoring import check_lengths, score_causal, score_masked
from lmtrain.tokenizer import Vocabulary


class NextToken(NamedTuple):
    """What a causal model expects after a prefix; everything together is 1."""

    words: NDArray[np.float64]  #: (V,) probability of each word, in the order of the model's ``vocabulary``
    unk: float  #: probability of ``<unk>``
    eos: float  #: probability that the sentence ends
    special: float  #: probability lost on ``<pad>``, ``<bos>`` and ``<mask>``, which no sentence contains


class Samples(NamedTuple):
    """Sentences drawn from a model."""

    sentences: list[list[str]]  #: words; ``<unk>`` may be among them
    finished: NDArray[np.bool_]  #: (n,) whether the model ended the sentence itself within the tokens allowed


class _TrainedModel:
    """What both kinds share."""

    objective: Objective
    _auto: ClassVar[Any]
    _extra: ClassVar[int]  #: positions taken by <bos> and <eos>

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, name: str) -> None:
        architecture = ARCHITECTURES.get(model.config.model_type)
        if architecture is None or architecture.objective != self.objective:
            raise InputError(
                f"a model of type {model.config.model_type!r} is not a {self.objective} architecture known here;"
                f" there are {', '.join(sorted(ARCHITECTURES))}"
            )
        self.model = model.eval()
        self.tokenizer = tokenizer
        self._vocabulary = Vocabulary(tokenizer)
        self._head = architecture.head
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
    def longest(self) -> int:
        """The most words a sentence may have."""
        return int(self.model.config.max_position_embeddings) - self._extra


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
                as many as the model takes.
            batch_size: sentences drawn at once.
        """
        most = self.longest if max_tokens is None else max_tokens
        if n < 0 or not 1 <= most <= self.longest:
            raise InputError(f"cannot draw {n} sentences of at most {most} words; the model takes 1 to {self.longest}")
        generator = torch.Generator(device=self.model.device).manual_seed(seed)
        sentences: list[list[str]] = []
        finished: list[bool] = []
        for start in range(0, n, batch_size):
            rows, ended = self._draw(min(batch_size, n - start), most, generator)
            sentences += [[self._vocabulary.tokens[i] for i in row] for row in rows]
            finished += ended
        return Samples(sentences, np.array(finished, dtype=bool))

    @torch.inference_mode()
    def _draw(self, n: int, most: int, generator: torch.Generator) -> tuple[list[list[int]], list[bool]]:
        v, device = self._vocabulary, self.model.device
        rows: list[list[int]] = [[] for _ in range(n)]
        ended = [False] * n
        alive = torch.arange(n, device=device)
        tokens = torch.full((n, 1), v.bos, device=device)
        cache: Any = None
        for length in range(most + 1):
            output = self.model(input_ids=tokens, past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            logits = output.logits[:, -1].float()
            logits[:, [v.pad, v.bos, v.mask]] = -torch.inf
            drawn = torch.multinomial(torch.softmax(logits, dim=-1), 1, generator=generator)[:, 0]
            going = drawn != v.eos
            for row, token, more in zip(alive.tolist(), drawn.tolist(), going.tolist(), strict=True):
                ended[row] = not more
                if more and length < most:
                    rows[row].append(token)
            if length == most or not going.any():
                break
            if not going.all():
                cache.batch_select_indices(going.nonzero()[:, 0])
                alive = alive[going]
            tokens = drawn[going][:, None]
        return rows, ended


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


def load_model(folder: str | Path, *, device: str | None = None) -> CausalModel | MaskedModel:
    """Load a trained folder as the kind of model it is; see `CausalModel.load`."""
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise InputError("there is no trained model here; train one, or finish its training", folder)
    try:
        kind = AutoConfig.from_pretrained(folder, local_files_only=True).model_type
    except (OSError, ValueError) as error:
        raise InputError(f"the model cannot be loaded: {str(error).splitlines()[0]}", folder) from error
    architecture = ARCHITECTURES.get(kind)
    if architecture is None:
        raise InputError(f"unknown architecture {kind!r}; there are {', '.join(sorted(ARCHITECTURES))}", folder)
    load = partial(CausalModel.load if architecture.objective == "causal" else MaskedModel.load, device=device)
    return load(folder)


def _name(folder: Path) -> str:
    record = folder / "training.json"
    if record.is_file():
        return str(json.loads(record.read_text(encoding="utf-8"))["name"])
    return folder.name
