"""Subword tokenisers, BPE and Unigram, trained on the train split and saved beside the model.

Words are what white space separates, and nothing is normalised. Every word, the first one too, starts with
the marker ``▁`` (U+2581), which no other place of a word can hold, so pieces joined again are the text.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE, Unigram, WordLevel
from tokenizers.pre_tokenizers import Metaspace, WhitespaceSplit
from tokenizers.pre_tokenizers import Sequence as InOrder
from tokenizers.trainers import BpeTrainer, Trainer, UnigramTrainer
from transformers import PreTrainedTokenizerFast

from truesource.generator.objectives import Objective
from truesource.grammar.support.arrays import BoolArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import approximate
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.pieces.marking import MARKER
from truesource.lmtrain.pieces.words import Marks, Pieces
from truesource.lmtrain.tokenizer import SPECIALS, UNK, WordVocabulary, build_tokenizer, count_words, with_specials

log = logging.getLogger("truesource")
SubwordKind = Literal["bpe", "unigram"]


def build_subword_tokenizer(
    sentences: Sequence[Sequence[str]], kind: SubwordKind, vocab_size: int, *, objective: Objective = "causal"
) -> PreTrainedTokenizerFast:
    """Train a subword tokeniser; equal sentences give equal tokenisers.

    Numbers 0 to 4 are ``<pad> <unk> <bos> <eos> <mask>``, as in the word-level tokeniser.

    Args:
        sentences: the words of each sentence.
        kind: byte-pair encoding (Sennrich et al. 2016) or the unigram model (Kudo 2018).
        vocab_size: tokens in all, special ones included; a small corpus may fill fewer.
        objective: of the model it is for.

    Raises:
        InputError: there are no words, a word contains white space, the marker ``▁`` or the text of a
            special token, or ``vocab_size`` has no room for every character.
    """
    words = count_words(sentences)
    for word in words:
        if MARKER in word:
            raise InputError(f"the word {word!r} contains {MARKER} (U+2581), which subword tokenisers use as a marker")
    characters = set().union(*words)
    least = len(SPECIALS) + len(characters) + 2  # the marker, and one piece that is no character
    if vocab_size < least:
        raise InputError(
            f"vocab_size {vocab_size} is too small: the train split has {len(characters)} different characters,"
            f" which need at least {least}"
        )
    pieces = sum((len(word) + 1) * (len(word) + 2) // 2 for word in words)  # substrings, with the marker
    vocab_size = min(vocab_size, least + pieces)  # the library makes room for all that it is told of
    backend = Tokenizer(BPE(unk_token=UNK) if kind == "bpe" else Unigram())
    backend.pre_tokenizer = InOrder([WhitespaceSplit(), Metaspace(MARKER, prepend_scheme="always", split=False)])
    # a space before every word, the first one too: what is generated follows its prompt, within a word or after it
    backend.decoder = decoders.Sequence([decoders.Replace(MARKER, " "), decoders.Fuse()])
    if kind == "bpe":
        trainer: Trainer = BpeTrainer(vocab_size=vocab_size, special_tokens=list(SPECIALS), show_progress=False)
    else:
        trainer = UnigramTrainer(
            vocab_size=vocab_size, special_tokens=list(SPECIALS), unk_token=UNK, show_progress=False
        )
    backend.train_from_iterator((" ".join(sentence) for sentence in sentences), trainer)
    if kind == "unigram":
        backend.model = _settled(backend)
    return with_specials(backend, objective)


def _settled(backend: Tokenizer) -> Unigram:
    """A trained unigram model whose scores do not depend on the order in which the trainer met the words.

    The trainer keeps words in a hash table that is seeded anew in every process. The last digits of its scores
    vary, and characters that it would have dropped get scores in steps of 1e-4 above the lowest, in random
    order. Here scores are rounded to 1e-6, those characters share the lowest one, and ties stand in code
    point order.
    """
    pieces = [
        (piece, score) for piece, score in json.loads(backend.to_str())["model"]["vocab"] if piece not in SPECIALS
    ]
    lowest = min(score for _, score in pieces)
    reach = lowest + 1e-4 * (1 + sum(len(piece) == 1 for piece, _ in pieces))
    scores = {piece: round(lowest if len(piece) == 1 and score <= reach else score, 6) for piece, score in pieces}
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return Unigram([*((special, 0.0) for special in SPECIALS), *ordered], SPECIALS.index(UNK))


def make_tokenizer(
    config: ModelConfig, sentences: Sequence[Sequence[str]], objective: Objective
) -> PreTrainedTokenizerFast:
    """The tokeniser that a model's settings ask for.

    Raises:
        InputError: see `build_tokenizer` and `build_subword_tokenizer`.
    """
    if config.tokenizer == "word":
        return build_tokenizer(sentences, min_count=config.min_count, objective=objective)
    assert config.vocab_size is not None
    tokenizer = build_subword_tokenizer(sentences, config.tokenizer, config.vocab_size, objective=objective)
    if len(tokenizer) < config.vocab_size:
        log.warning(
            "the text gives only %s pieces (%s), fewer than vocab_size %s",
            f"{len(tokenizer):,}",
            config.tokenizer,
            approximate(config.vocab_size),
        )
    return tokenizer


def encoder_of(tokenizer: PreTrainedTokenizerFast) -> WordVocabulary | SubwordVocabulary:
    """A tokeniser made here, as training and scoring use it."""
    return SubwordVocabulary(tokenizer) if is_subword(tokenizer) else WordVocabulary(tokenizer)


def is_ours(tokenizer: PreTrainedTokenizerFast) -> bool:
    """True if a tokeniser was made here, or looks as if it was."""
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
    """True if a tokeniser cuts words."""
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
        """The pieces of the words of each sentence."""
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
        """Numbers of the pieces of each sentence, nothing added."""
        return self.align(sentences).rows()

    def join(self, ids: Iterable[int]) -> list[str]:
        """The words that pieces spell; special tokens stand as they are written, for example ``<unk>``."""
        return [word for word in "".join(self.tokens[int(i)] for i in ids).split(MARKER) if word]
