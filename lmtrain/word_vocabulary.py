"""Vocabularies of whole words, and sentences as rows of token numbers.

`WordVocabulary` belongs to a tokeniser made here; `WholeWords` reads a tokeniser made elsewhere, a `WordLevel` model of
the `tokenizers` library. `Encoder` is the part of a tokeniser of words or subwords that batches, architectures and
training use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from truesource.generator.columns import CodedSentences, Rows
from truesource.generator.objectives import Objective
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError

NO_TOKEN = -1  #: number of a special token that a foreign tokeniser does not have
BLOCK = 20_000  #: sentences that are lists of words at once


class Encoder(Protocol):
    """Numbers of the tokens of sentences, and of the special tokens; ``len`` is how many tokens there are."""

    @property
    def unk(self) -> int:
        """Number of ``<unk>``."""

    @property
    def bos(self) -> int:
        """Number of ``<bos>``."""

    @property
    def eos(self) -> int:
        """Number of ``<eos>``."""

    @property
    def pad(self) -> int:
        """Number of ``<pad>``."""

    @property
    def mask(self) -> int:
        """Number of ``<mask>``."""

    def __len__(self) -> int: ...

    def encode(self, sentences: Iterable[Sequence[str]]) -> list[IntArray]:
        """Return the token numbers of each sentence, nothing added."""


class WordVocabulary:
    """The words of a tokeniser and the numbers of its special tokens.

    Sentences come as lists of words, so they are looked up here and not cut by the tokeniser: the
    result is the same, and a word that spells a special token is an unknown word, not that token.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        specials = set(tokenizer.all_special_tokens)
        by_number = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        self.words: tuple[str, ...] = tuple(word for word, _ in by_number if word not in specials)
        self.ids = {word: number for word, number in by_number if word not in specials}
        self.word_ids: IntArray = np.array([self.ids[word] for word in self.words], dtype=np.int64)
        self.tokens = {number: word for word, number in by_number}
        self.unk, self.bos, self.eos = (
            int(tokenizer.unk_token_id),
            int(tokenizer.bos_token_id),
            int(tokenizer.eos_token_id),
        )
        self.pad, self.mask = int(tokenizer.pad_token_id), int(tokenizer.mask_token_id)

    def __len__(self) -> int:
        return len(self.tokens)

    def unreadable(self, sentence: Sequence[str]) -> list[str]:
        """Return the unknown words if the tokeniser has no token for them."""
        return [] if self.unk != NO_TOKEN else [word for word in sentence if word not in self.ids]

    def encode(self, sentences: Iterable[Sequence[str]]) -> list[IntArray]:
        """Return the numbers of the words of each sentence, unknown ones as ``<unk>``, nothing added."""
        ids, unk = self.ids, self.unk
        return [np.array([ids.get(word, unk) for word in sentence], dtype=np.int64) for sentence in sentences]


def encode_rows(encoder: Encoder, sentences: CodedSentences) -> Rows:
    """Encode sentences as ``encoder.encode`` does, into one array."""
    if isinstance(encoder, WordVocabulary):  # a token a word: translate the numbers
        numbers = np.array([encoder.ids.get(word, encoder.unk) for word in sentences.words], dtype=np.int32)
        flat, lengths = numbers[sentences.rows.flat], sentences.lengths
    else:
        parts, sizes = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
        for start in range(0, len(sentences), BLOCK):
            block = Rows.of(encoder.encode(sentences[start : start + BLOCK]))
            parts.append(block.flat)
            sizes.append(block.lengths)
        flat, lengths = np.concatenate(parts), np.concatenate(sizes)
    return Rows(flat, lengths)


class WholeWords(WordVocabulary):
    """A `WordVocabulary` of a foreign tokeniser.

    Text begins with its ``bos`` (else ``cls``) token and ends with its ``eos`` (else ``sep``). Its unknown token is the
    one of the `WordLevel` model; if that is also one of these two, ``unk`` is `NO_TOKEN`.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, before: int, after: int) -> None:
        """Read a tokeniser whose vocabulary is of whole words; see `whole_words`."""
        self._backend = tokenizer.backend_tokenizer
        by_number = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        unk = self._backend.token_to_id(self._backend.model.unk_token)
        self.bos, self.eos = before, after
        self.unk = NO_TOKEN if unk is None or unk in (before, after, tokenizer.pad_token_id) else int(unk)
        self.pad = after if tokenizer.pad_token_id is None else int(tokenizer.pad_token_id)
        self.mask = NO_TOKEN if tokenizer.mask_token_id is None else int(tokenizer.mask_token_id)
        special = {*tokenizer.all_special_ids, self.unk, before, after}
        self.ids = {word: number for word, number in by_number if number not in special}
        self.words = tuple(self.ids)
        self.word_ids: IntArray = np.array([*self.ids.values()], dtype=np.int64)
        self.tokens = {number: word for word, number in by_number}

    def encode(self, sentences: Iterable[Sequence[str]]) -> list[IntArray]:
        """Return the numbers of the words of each sentence, unknown ones as ``unk``, nothing added.

        Raises:
            InputError: the tokeniser rewrites a word or cuts it, so that it is not one token.
        """
        sentences = [*sentences]
        for word in {word for sentence in sentences for word in sentence} - self.ids.keys():
            self._check_unknown(word)
        return super().encode(sentences)

    def _check_unknown(self, word: str) -> None:
        read = parts_of(self._backend, word)
        if read != [word]:
            raise InputError(
                f"the tokeniser reads the word {word!r} as {' '.join(read)!r}, so it has no probability as one word;"
                " write the corpus as the tokeniser reads it"
            )


def whole_words(tokenizer: PreTrainedTokenizerFast, objective: Objective) -> WholeWords | None:
    """Return the vocabulary of a tokeniser of whole words.

    None: the tokeniser is of another kind, would rewrite or cut a word of its own list, or lacks a token for the
    beginning or the end of a text (a masked model's: for a mask), so that it must be used as a tokeniser of pieces.
    """
    backend = tokenizer.backend_tokenizer
    if not isinstance(backend.model, WordLevel):
        return None
    before = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.cls_token_id
    after = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id
    if before is None or after is None or (objective == "masked" and tokenizer.mask_token_id is None):
        return None
    vocabulary = WholeWords(tokenizer, int(before), int(after))
    is_whole = vocabulary.words and all(parts_of(backend, word) == [word] for word in vocabulary.words)
    return vocabulary if is_whole else None


def parts_of(backend: object, word: str) -> list[str]:
    """Return the parts of a word that a tokeniser looks up: itself alone, unless it rewrites or cuts words."""
    normalizer, splitter = backend.normalizer, backend.pre_tokenizer  # type: ignore[attr-defined]
    text = word if normalizer is None else normalizer.normalize_str(word)
    return [text] if splitter is None else [part for part, _ in splitter.pre_tokenize_str(text)]
