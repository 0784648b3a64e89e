"""Trained networks of whole words, each a `LanguageModel`: scores, distributions, next-word probabilities, samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from truesource.generator.language_model import (
    EVERY_POSITION,
    LogDistributions,
    NextTokenProbabilities,
    ScoringFrame,
    TokenScores,
    model_line,
)
from truesource.generator.objectives import Objective, ranks
from truesource.grammar.sentences import takes_sentence, takes_sentences
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.networks import NetworkArchitecture
from truesource.lmtrain.data import causal_batch, masked_batch, one_mask_batch, step_batch, to_device
from truesource.lmtrain.decoding.alphabet import Alphabet
from truesource.lmtrain.decoding.decode import Samples, draw
from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.decoding.steppers import NetworkStepper
from truesource.lmtrain.loading import load_config, load_network, load_tokenizer, token_count
from truesource.lmtrain.model_registry import network_names, network_of
from truesource.lmtrain.scoring import (
    batch_budget,
    check_lengths,
    log_softmax_at,
    predictor,
    score_any_order,
    score_causal,
    score_masked,
)
from truesource.lmtrain.subword_vocabulary import is_subword
from truesource.lmtrain.training_record import model_name
from truesource.lmtrain.word_vocabulary import NO_TOKEN, WordVocabulary


class _TrainedModel:
    """The common part of causal and masked models of words."""

    objective: Objective
    folder: Path | None = None  #: the folder it was loaded from, which may have the record of its training
    has_hidden_states = True  #: see `truesource.generator.abilities`
    _extra: ClassVar[int]  #: positions taken by <bos> and <eos>

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        name: str,
        *,
        encoder: WordVocabulary | None = None,
    ) -> None:
        """Join a network of an architecture known here and a tokeniser of whole words.

        Args:
            model: the network.
            tokenizer: as saved with it.
            name: in tables.
            encoder: the same tokeniser as scoring sees it; None: it was made here.

        Raises:
            InputError: the network is of another architecture, or has no positions.
        """
        architecture = _require_architecture(model.config, self.objective)
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.encoder = WordVocabulary(tokenizer) if encoder is None else encoder
        self._head = architecture.head
        longest = architecture.longest(model.config)
        if longest is not None and longest <= self._extra:
            raise InputError(f"config.json gives the model {longest} positions, so it can read no word")
        self.longest = None if longest is None else longest - self._extra  #: words of a sentence; None: any number
        self.name = name

    def __repr__(self) -> str:
        return model_line(self)

    @classmethod
    def load(cls, folder: str | Path, *, device: str | None = None) -> Self:
        """Load a trained folder.

        Args:
            folder: made by `lmtrain.training.train`, or by ``save_pretrained`` of such a model and tokeniser.
            device: such as ``"cpu"``; None: a GPU when there is one.

        Raises:
            InputError: the folder is absent, unfinished, damaged, or of the other kind; see `lmtrain.loading`.
        """
        folder = Path(folder)
        config = load_config(folder)
        architecture = _require_architecture(config, cls.objective, folder)
        tokenizer = load_tokenizer(folder)
        if is_subword(tokenizer):
            raise InputError("this is a model of subword pieces; load it with load_model", folder)
        network = load_network(folder, config, tokenizer, architecture.objective, device)
        return cls(network, tokenizer, model_name(folder))

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The known words, frequent ones first; all others are ``<unk>``."""
        return self.encoder.words

    def _score(
        self, sentences: Sequence[Sequence[str]], frame: ScoringFrame, score: Callable[..., TokenScores]
    ) -> TokenScores:
        """Score the sentences that the tokeniser can read; the others are impossible."""
        check_lengths(sentences, self.longest)
        readable = [i for i, sentence in enumerate(sentences) if not self.encoder.unreadable(sentence)]
        scores = score(self.model, self._head, self.encoder, [sentences[i] for i in readable], frame)
        numbers = np.array(readable, dtype=np.int32)
        return TokenScores(
            scores.log_prob,
            numbers[scores.sentence],
            scores.position,
            np.setdiff1d(np.arange(len(sentences), dtype=np.int32), numbers),
            len(sentences),
            frame,
        )

    def check_readable(self, sentences: Sequence[Sequence[str]]) -> None:
        """Refuse a sentence that the model cannot read.

        Raises:
            InputError: it is longer than the model's positions, or has an unknown word and there is no token for these.
        """
        check_lengths(sentences, self.longest)
        for sentence in sentences:
            for word in self.encoder.unreadable(sentence):
                raise InputError(
                    f"{self.name} has no token for the word {word!r} and none for unknown words, so the next word has"
                    " no distribution; leave such sentences out, or give the tokeniser an unknown token"
                )


class CausalModel(_TrainedModel):
    """A model of each word given those before it.

    It implements `truesource.generator.language_model.LanguageModel`.
    """

    objective: Objective = "causal"
    _extra = 1

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame = EVERY_POSITION) -> TokenScores:
        """Return the log probability of every word and sentence end that ``frame`` counts.

        The softmax is over all the model emits, special tokens included: their probability is lost to the model. The
        last position of a sentence is its end.

        Raises:
            InputError: a sentence is longer than the model's positions.
        """
        return self._score(sentences, frame, score_causal)

    @takes_sentences
    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Yield the distribution of the next word or end at every position; see `DistributionModel.distributions`.

        Raises:
            InputError: the sentences differ in length, one is empty or longer than the model's positions.
        """
        self.check_readable(sentences)
        yield from causal_distributions(self.model, self._head, self.encoder, sentences)

    @takes_sentence
    def next_token(self, prefix: Sequence[str]) -> NextTokenProbabilities:
        """Return the probabilities of the next word or end after ``prefix`` (words; may be empty).

        Raises:
            InputError: the prefix is longer than the model's positions.
        """
        self.check_readable([prefix])
        v = self.encoder
        ids = torch.tensor([[v.bos, *v.encode([prefix])[0].tolist()]], device=self.model.device)
        with torch.inference_mode():
            logits = self.model(input_ids=ids, use_cache=False).logits[0, -1].double()
        p = torch.softmax(logits, dim=0).cpu().numpy()
        unk = float(p[v.unk]) if v.unk != NO_TOKEN else 0.0
        return NextTokenProbabilities(p[v.word_ids], unk, float(p[v.eos]), float(p[[*self.alphabet.never]].sum()))

    def sample(self, n: int, *, seed: int, max_tokens: int | None = None, batch_size: int = 512) -> Samples:
        """Draw sentences word by word from the model's own distribution (ancestral sampling).

        ``<pad>``, ``<bos>`` and ``<mask>`` are never drawn: their small probability goes to the rest in
        proportion.

        Args:
            n: number of sentences.
            seed: equal seeds give equal sentences on the same machine, for one ``batch_size``.
            max_tokens: a sentence not ended after so many words is returned as it is and flagged; None:
                as many as the model takes, or 200 if it takes any number.
            batch_size: sentences drawn at once.
        """
        decoded = draw(self, n, Decoding(max_tokens=max_tokens), seed=seed, rows=batch_size)
        return Samples(decoded.sentences, decoded.finished)

    @property
    def alphabet(self) -> Alphabet:
        """Its tokens, for `truesource.lmtrain.decoding`."""
        size = token_count(self.model)
        return Alphabet.of_words(self.encoder, size, self.longest)

    def stepper(self) -> NetworkStepper:
        """Return its next-token log probabilities, for one batch of text at a time."""
        return NetworkStepper(self.model, self.encoder.bos)


class MaskedModel(_TrainedModel):
    """A model of each word given all others.

    It implements `truesource.generator.language_model.LanguageModel`.
    """

    objective: Objective = "masked"
    _extra = 2

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame = EVERY_POSITION) -> TokenScores:
        """Return the log probability of every word that ``frame`` counts, with that word alone masked.

        A pseudo-log-likelihood: the network runs once per word. There is no end-of-sentence position. The
        softmax is over all the model emits, special tokens included.

        Raises:
            InputError: a sentence is longer than the model's positions.
        """
        return self._score(sentences, frame, score_masked)

    @takes_sentences
    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Yield the distribution of each word, with it alone masked; see `DistributionModel.distributions`.

        Raises:
            InputError: the sentences differ in length, one is empty or longer than the model's positions.
        """
        self.check_readable(sentences)
        yield from masked_distributions(self.model, self._head, self.encoder, sentences)


class AnyOrderModel(_TrainedModel):
    """A model of words at gaps given any other words, such as masked diffusion.

    It implements `truesource.generator.language_model.LanguageModel`.
    """

    objective: Objective = "any-order"
    _extra = 2

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame = EVERY_POSITION) -> TokenScores:
        """Return log probabilities of the words that ``frame`` counts given those before in random orders, as means.

        Their sum over a sentence estimates the ELBO of its log probability given its length (Sahoo et al. 2024). The
        network runs once per word; there is no end-of-sentence position. The softmax is over all the model emits,
        special tokens included.

        Raises:
            InputError: a sentence is longer than the model's positions.
        """
        return self._score(sentences, frame, score_any_order)

    @takes_sentences
    @torch.inference_mode()
    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Yield the distribution of the word at every position given the words before it in its scoring order.

        Raises:
            InputError: as `denoise`.
        """
        self.check_readable(sentences)
        self.model.eval()
        rows, n = _rows(self.encoder, sentences)
        orders = np.array([ranks(sentence)[0] for sentence in sentences])
        columns = [*self.encoder.word_ids.tolist(), self.encoder.unk]
        step = max(1, batch_budget(len(self.encoder)) // (len(rows) * (n + 2)))
        with predictor(self.model, self._head) as predict:
            for first in range(0, n, step):
                places = np.arange(first, min(n, first + step)).repeat(len(rows))
                turns = np.tile(orders, (len(places) // len(rows), 1))
                hidden = turns >= turns[np.arange(len(turns)), places][:, None]
                batch = step_batch(rows * (len(places) // len(rows)), hidden, places, self.encoder)
                logits = predict(self.model, to_device(batch, self.model.device))
                for i, part in enumerate(torch.split(logits, len(rows))):
                    yield LogDistributions(first + i, log_softmax_at(part, columns))

    @torch.inference_mode()
    def denoise(self, patterns: Sequence[Sequence[str | None]]) -> FloatArray:
        """Return the log probability of each word of ``vocabulary``, then ``<unk>``, at every place: (B, n, V+1) nats.

        Args:
            patterns: B sentences of one length n, with None for unknown words. At known words a row is the network's
                prediction, which is not trained.

        Raises:
            InputError: the sentences differ in length, one is empty or longer than the model's positions.
        """
        v, gaps = self.encoder, [[word is None for word in pattern] for pattern in patterns]
        filled = [[self.vocabulary[0] if word is None else word for word in pattern] for pattern in patterns]
        self.check_readable(filled)
        rows, n = _rows(v, filled)
        batch = to_device(masked_batch(rows, np.array(gaps), v), self.model.device)
        inputs = {key: batch[key] for key in ("input_ids", "attention_mask") if key in batch}
        logits = self.model(**inputs).logits[:, 1:-1].flatten(0, 1)
        return log_softmax_at(logits, [*v.word_ids.tolist(), v.unk]).reshape(len(rows), n, -1)


KINDS: dict[Objective, type[CausalModel | MaskedModel | AnyOrderModel]] = {
    kind.objective: kind for kind in (CausalModel, MaskedModel, AnyOrderModel)
}


def _require_architecture(config: Any, objective: Objective, folder: Path | None = None) -> NetworkArchitecture[Any]:
    architecture = network_of(config)
    if architecture is None or architecture.objective != objective:
        raise InputError(
            f"a model of type {config.model_type!r} is not a {objective} architecture known here;"
            f" there are {', '.join(network_names())}",
            folder,
        )
    return architecture


@torch.inference_mode()
def causal_distributions(
    model: nn.Module, head: str, vocabulary: WordVocabulary, sentences: Sequence[Sequence[str]]
) -> Iterator[LogDistributions]:
    """Yield the distribution at each position given the words before: one run, the output layer position by position.

    Raises:
        InputError: the sentences differ in length, one is empty, or the logits are not finite.
    """
    rows, n = _rows(vocabulary, sentences)
    device = next(model.parameters()).device
    columns = [*vocabulary.word_ids.tolist(), vocabulary.unk, vocabulary.eos]
    layer = getattr(model, head)
    hidden, rest = head_inputs(model, layer, causal_batch(rows, vocabulary)["input_ids"].to(device))
    for position in range(n + 1):
        yield LogDistributions(position, log_softmax_at(layer(hidden[:, position], *rest), columns))


@torch.inference_mode()
def masked_distributions(
    model: nn.Module, head: str, vocabulary: WordVocabulary, sentences: Sequence[Sequence[str]]
) -> Iterator[LogDistributions]:
    """Yield the distribution of each word given all others: one run a position, with that word of each sentence masked.

    Raises:
        InputError: as `causal_distributions`.
    """
    rows, n = _rows(vocabulary, sentences)
    model.eval()
    device = next(model.parameters()).device
    columns = [*vocabulary.word_ids.tolist(), vocabulary.unk]
    for position in range(n):
        batch = to_device(one_mask_batch(rows, np.full(len(rows), position), vocabulary), device)
        with predictor(model, head) as predict:
            logits = predict(model, batch)
        yield LogDistributions(position, log_softmax_at(logits, columns))


def _rows(vocabulary: WordVocabulary, sentences: Sequence[Sequence[str]]) -> tuple[list[IntArray], int]:
    lengths = {len(sentence) for sentence in sentences}
    if len(lengths) != 1 or 0 in lengths:
        raise InputError("full distributions need sentences of one length, 1 or more; group them by length")
    return vocabulary.encode(sentences), lengths.pop()


def head_inputs(model: nn.Module, layer: nn.Module, inputs: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
    """Return the input of the output layer at all positions, (W, n+1, dim), and its other arguments.

    The layer itself sees the first position only, so that the logits of all are never in memory at once.
    """
    seen: list[tuple[Any, ...]] = []

    def keep(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        seen.append(arguments)
        return (arguments[0][:, :1], *arguments[1:])

    handle = layer.register_forward_pre_hook(keep)
    try:
        model.eval()
        model(input_ids=inputs, use_cache=False)
    finally:
        handle.remove()
    ((hidden, *rest),) = seen
    return hidden, tuple(rest)
