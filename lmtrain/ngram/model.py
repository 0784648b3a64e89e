"""An n-gram model as a `LanguageModel`: loading it, scores, full distributions, next words, samples."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from generator.frame import ScoringFrame
from generator.language_model import LogDistributions, Objective, TokenScores
from grammar.errors import InputError
from lmtrain.decoding.decode import Alphabet, Samples
from lmtrain.next_token import NextToken
from lmtrain.ngram.reading import Reader
from lmtrain.ngram.smoothing import Smoothing, estimate
from lmtrain.ngram.stepper import NgramStepper
from lmtrain.ngram.storage import load_counts
from lmtrain.ngram.stream import Stream, read_stream
from lmtrain.ngram.trie import Trie
from lmtrain.subwords import is_ours, is_subword
from lmtrain.tokenizer import Vocabulary

NGRAM = "ngram"  #: in ``config.json``


class NgramModel:
    """A model of each word given the N - 1 tokens before it; implements `DistributionModel` and `StepwiseModel`.

    Args:
        trie: counts, as `lmtrain.ngram.smoothing.adjust` left them.
        smoothing: ``mle`` or ``kneser_ney``.
        tokenizer: word by word, as `lmtrain.tokenizer.build_tokenizer` makes it.
        name: what the model is called in tables.
        discount: of ``kneser_ney``, see `lmtrain.ngram.smoothing.estimate`.

    Raises:
        InputError: counts and tokeniser are of two models.
    """

    objective: Objective = "causal"

    def __init__(
        self,
        trie: Trie,
        smoothing: Smoothing,
        tokenizer: PreTrainedTokenizerFast,
        name: str,
        *,
        discount: NDArray[np.float64] | None = None,
    ) -> None:
        self.tokenizer, self._name = tokenizer, name
        self._vocabulary = v = Vocabulary(tokenizer)
        if len(v) != trie.n_tokens:
            raise InputError(f"the tokeniser has {len(v)} tokens, the counts {trie.n_tokens}; they are of two models")
        self._columns: NDArray[np.int64] = np.append(v.word_ids, [v.unk, v.eos])
        self.estimate = estimate(trie, smoothing, self._columns, discount=discount)
        self.reader = Reader(self.estimate, v.bos, v.eos)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load a trained folder.

        Raises:
            InputError: the folder is absent, unfinished, damaged, or of another kind of model.
        """
        folder = Path(folder)
        config = _config(folder)
        if config.get("model_type") != NGRAM:
            raise InputError("there is no n-gram model here; train one", folder)
        trie, discount = load_counts(folder)
        if config.get("order") != trie.order or config.get("smoothing") not in get_args(Smoothing):
            raise InputError("config.json does not fit ngram.npz; train the model again", folder)
        try:
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # the library raises Exception itself
            raise InputError("the tokeniser of this n-gram model is damaged; train it again", folder) from error
        if not is_ours(tokenizer) or is_subword(tokenizer):
            raise InputError("the tokeniser is not the one of this n-gram model; train the model again", folder)
        return cls(trie, config["smoothing"], tokenizer, _name(folder), discount=discount)

    @property
    def name(self) -> str:
        """What the model is called in tables."""
        return self._name

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words it knows, frequent ones first; all others are ``<unk>`` to it."""
        return self._vocabulary.words

    @property
    def longest(self) -> None:
        """The most words a sentence may have: any number."""
        return None

    @property
    def n_ngrams(self) -> int:
        """How many different n-grams of 1 to N tokens it has counts of."""
        return self.estimate.trie.n_ngrams

    def read(self, sentences: Sequence[Sequence[str]]) -> Stream:
        """The token numbers of sentences."""
        return read_stream(sentences, self._vocabulary)

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Log probability of every word and sentence end that ``frame`` counts.

        Sentences with a token of probability zero, which only ``mle`` gives, are ``impossible`` as a whole.
        """
        stream = self.read(sentences)
        values = self.reader.score(stream)
        n = stream.lengths
        sentence = np.repeat(np.arange(len(n)), n + 1)
        position = np.arange(len(values)) - (np.cumsum(n + 1) - n - 1)[sentence]
        possible = np.ones(len(n), dtype=bool)
        possible[sentence[~np.isfinite(values)]] = False
        counted = possible[sentence]
        if not frame.eos:
            counted &= position < n[sentence]
        if not frame.first:
            counted &= position > 0
        if frame.unk == "skip":
            targets = np.delete(stream.tokens, stream.begins)
            counted &= targets != self._vocabulary.unk
        return TokenScores(
            log_prob=values[counted],
            sentence=sentence[counted].astype(np.int32),
            position=position[counted].astype(np.int32),
            impossible=np.flatnonzero(~possible).astype(np.int32),
            n_sentences=len(n),
            frame=frame,
        )

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Its expectation at positions 0 to n of sentences of one length n.

        Columns are the words of ``vocabulary``, ``<unk>``, the end; a row of ``mle`` after a context that was never
        seen is -inf throughout.

        Raises:
            InputError: the sentences differ in length.
        """
        stream = self.read(sentences)
        if len(set(stream.lengths.tolist())) > 1:
            raise InputError("distributions are of sentences of one length; group them by length")
        if not len(stream.lengths):
            return
        rows = stream.tokens.reshape(len(stream.lengths), -1)[:, 1:]
        state = self.reader.begin(len(rows))
        for position in range(rows.shape[1]):
            yield LogDistributions(position, self.reader.expect(state, self._columns))
            if position + 1 < rows.shape[1]:
                state = self.reader.advance(state, rows[:, position])

    def next_token(self, prefix: Sequence[str]) -> NextToken:
        """Probabilities of what follows ``prefix`` (words; may be empty); all 0 where ``mle`` never saw its end."""
        state = self.reader.begin(1)
        for token in self._vocabulary.encode([prefix])[0]:
            state = self.reader.advance(state, np.array([token]))
        p = np.exp(self.reader.expect(state, self._columns)[0])
        return NextToken(p[:-2], float(p[-2]), float(p[-1]), 0.0)

    @property
    def alphabet(self) -> Alphabet:
        """Its tokens, for `lmtrain.decoding`."""
        return Alphabet.of_words(self._vocabulary, self.longest)

    def stepper(self) -> NgramStepper:
        """Its next-token log probabilities, for one batch of text at a time."""
        return NgramStepper(self.reader)

    def sample(self, n: int, *, seed: int, max_tokens: int | None = None) -> Samples:
        """Draw sentences word by word from the model's own distribution (ancestral sampling).

        Args:
            n: how many.
            seed: equal seeds give equal sentences on every machine.
            max_tokens: a sentence not ended after so many words is returned as it is and flagged; None: every
                sentence ends by itself.

        Raises:
            InputError: ``n`` or ``max_tokens`` is too small.
        """
        if n < 0 or (max_tokens is not None and max_tokens < 1):
            raise InputError(f"cannot draw {n} sentences of at most {max_tokens} words")
        drawn = self.reader.draw(n, seed=seed, most=max_tokens)
        words = [self._vocabulary.tokens[i] for i in drawn.tokens.tolist()]
        begins = [0, *drawn.ends.tolist()]
        return Samples([words[a:b] for a, b in itertools.pairwise(begins)], drawn.finished)


def is_ngram(folder: Path) -> bool:
    """Whether a folder says that it holds an n-gram model."""
    return _config(folder).get("model_type") == NGRAM


def _config(folder: Path) -> dict[str, Any]:
    """Content of ``config.json``; nothing where it cannot be read."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def _name(folder: Path) -> str:
    try:
        return str(json.loads((folder / "training.json").read_text(encoding="utf-8"))["name"])
    except (OSError, ValueError, KeyError):
        return folder.name
