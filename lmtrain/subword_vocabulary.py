"""The pieces of subword tokenisers made here, and how such tokenisers are recognised."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from tokenizers import decoders
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from truesource.grammar.support.arrays import BoolArray, IntArray
from truesource.lmtrain.pieces.marking import MARKER
from truesource.lmtrain.pieces.words import Marks, Pieces
from truesource.lmtrain.tokenizer import SPECIALS
from truesource.lmtrain.word_vocabulary import WordVocabulary


def encoder_of(tokenizer: PreTrainedTokenizerFast) -> WordVocabulary | SubwordVocabulary:
    """Return a tokeniser made here, as training and scoring use it."""
    return SubwordVocabulary(tokenizer) if is_subword(tokenizer) else WordVocabulary(tokenizer)


def is_ours(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Return True if a tokeniser was made here, or looks as if it was."""
    named = (
        tokenizer.pad_token,
        tokenizer.unk_token,
        tokenizer.bos_token,
        tokenizer.eos_token,
        tokenizer.mask_token,
    )
    numbers = [tokenizer.convert_tokens_to_ids(special) for special in SPECIALS]
    if named != SPECIALS or numbers != [*range(len(SPECIALS))]:
        return False
    backend = tokenizer.backend_tokenizer
    words = isinstance(backend.model, WordLevel) and isinstance(backend.pre_tokenizer, WhitespaceSplit)
    subwords = is_subword(tokenizer) and isinstance(backend.decoder, decoders.Sequence)
    return words or (subwords and MARKER in tokenizer.get_vocab())


def is_subword(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Return True if a tokeniser cuts words."""
    return not isinstance(tokenizer.backend_tokenizer.model, WordLevel)


class SubwordVocabulary:
    """The pieces of a tokeniser made by `build_subword_tokenizer`; an `Encoder` and a `WordAligner`.

    Words are cut one by one, each different word once. A word with white space, with the marker, or with a
    character that training did not show holds ``<unk>``, and is flagged as unreadable.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._model = tokenizer.backend_tokenizer.model
        numbers = tokenizer.get_vocab()
        by_number = sorted(numbers.items(), key=lambda item: item[1])
        self.tokens = {number: piece for piece, number in by_number}
        self.unk, self.bos, self.eos = (
            int(tokenizer.unk_token_id),
            int(tokenizer.bos_token_id),
            int(tokenizer.eos_token_id),
        )
        self.pad, self.mask = int(tokenizer.pad_token_id), int(tokenizer.mask_token_id)
        self.marks = Marks((self.bos,), (self.eos,), self.mask, self.pad)
        self.begins: BoolArray = np.array([piece.startswith(MARKER) for piece, _ in by_number])
        self.begins[self.eos] = True
        self._unknown = np.array([numbers[MARKER], self.unk])
        self._cuts: dict[str, tuple[IntArray, bool]] = {}

    def __len__(self) -> int:
        return len(self.tokens)

    def align(self, sentences: Iterable[Sequence[str]]) -> Pieces:
        """Return the pieces of the words of each sentence."""
        sentences = [*sentences]
        cuts = [self._cuts.get(word) or self._cut(word) for sentence in sentences for word in sentence]
        return Pieces(
            ids=np.concatenate([ids for ids, _ in cuts]) if cuts else np.zeros(0, dtype=np.int64),
            counts=np.array([len(ids) for ids, _ in cuts], dtype=np.int64),
            words=np.array([len(sentence) for sentence in sentences], dtype=np.int64),
            unreadable=np.array([bad for _, bad in cuts], dtype=bool),
        )

    def _cut(self, word: str) -> tuple[IntArray, bool]:
        ids = self._unknown
        if word.split() == [word] and MARKER not in word:
            ids = np.array([piece.id for piece in self._model.tokenize(MARKER + word)], dtype=np.int64)
        special = ids < len(SPECIALS)
        self._cuts[word] = np.where(special, self.unk, ids), bool(special.any())
        return self._cuts[word]

    def encode(self, sentences: Iterable[Sequence[str]]) -> list[IntArray]:
        """Return the numbers of the pieces of each sentence, nothing added."""
        return self.align(sentences).rows()

    def join(self, ids: Iterable[int]) -> list[str]:
        """Return the words that pieces spell; special tokens appear as they are written, for example ``<unk>``."""
        return [word for word in "".join(self.tokens[int(i)] for i in ids).split(MARKER) if word]
