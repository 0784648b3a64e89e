"""What all n-gram models share, whatever their tokens are."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence

from transformers import PreTrainedTokenizerFast

from truesource.generator.language_model import Objective
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.ngram.reading import Reader
from truesource.lmtrain.architectures.ngram.smoothing import Smoothing, estimate
from truesource.lmtrain.architectures.ngram.stepper import NgramStepper
from truesource.lmtrain.architectures.ngram.stream import Stream, read_stream
from truesource.lmtrain.architectures.ngram.trie import Trie
from truesource.lmtrain.decoding.decode import Alphabet, Samples
from truesource.lmtrain.tokenizer import Encoder


class CountedModel(ABC):
    """A model of each token given the N - 1 tokens before it.

    Args:
        trie: counts, as `truesource.lmtrain.architectures.ngram.smoothing.adjust` left them.
        smoothing: ``mle`` or ``kneser_ney``.
        tokenizer: as it is saved.
        encoder: the same tokeniser as counting sees it.
        emitted: tokens that can follow something.
        name: what the model is called in tables.
        discount: of ``kneser_ney``, see `truesource.lmtrain.architectures.ngram.smoothing.estimate`.

    Raises:
        InputError: counts and tokeniser are of two models.
    """

    objective: Objective = "causal"

    def __init__(
        self,
        trie: Trie,
        smoothing: Smoothing,
        tokenizer: PreTrainedTokenizerFast,
        encoder: Encoder,
        emitted: IntArray,
        name: str,
        *,
        discount: FloatArray | None = None,
    ) -> None:
        if len(encoder) != trie.n_tokens:
            raise InputError(
                f"the tokeniser has {len(encoder)} tokens, the counts {trie.n_tokens}; they are of two models"
            )
        self.tokenizer, self._encoder = tokenizer, encoder
        self.name = name
        self.estimate = estimate(trie, smoothing, emitted, discount=discount)
        self.reader = Reader(self.estimate, encoder.bos, encoder.eos)

    @property
    def longest(self) -> None:
        """The most words, or pieces, a sentence may have: any number."""
        return None

    @property
    def n_ngrams(self) -> int:
        """How many different n-grams of 1 to N tokens it has counts of."""
        return self.estimate.trie.n_ngrams

    @property
    @abstractmethod
    def alphabet(self) -> Alphabet:
        """Its tokens, for `truesource.lmtrain.decoding`."""

    def read(self, sentences: Sequence[Sequence[str]]) -> Stream:
        """The token numbers of sentences."""
        return read_stream(sentences, self._encoder)

    def stepper(self) -> NgramStepper:
        """Its next-token log probabilities, for one batch of text at a time."""
        return NgramStepper(self.reader)

    def sample(self, n: int, *, seed: int, max_tokens: int | None = None) -> Samples:
        """Draw sentences token by token from the model's own distribution (ancestral sampling).

        Args:
            n: how many.
            seed: equal seeds give equal sentences on every machine.
            max_tokens: a sentence not ended after so many tokens is returned as it is and flagged; None: every
                sentence ends by itself.

        Raises:
            InputError: ``n`` or ``max_tokens`` is too small.
        """
        if n < 0 or (max_tokens is not None and max_tokens < 1):
            raise InputError(f"cannot draw {n} sentences of at most {max_tokens} tokens")
        drawn = self.reader.draw(n, seed=seed, most=max_tokens)
        tokens, begins, spell = drawn.tokens.tolist(), [0, *drawn.ends.tolist()], self.alphabet.spell
        return Samples([spell(tokens[a:b]) for a, b in itertools.pairwise(begins)], drawn.finished)
