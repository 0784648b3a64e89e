"""Subword tokenisers, BPE and Unigram, trained on the train split and saved with the model.

White space separates words, and nothing is normalised. Every word, the first one too, starts with
the marker ``▁`` (U+2581), which no other place of a word can hold, so pieces joined again are the text.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Literal

from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE, Unigram
from tokenizers.pre_tokenizers import Metaspace, WhitespaceSplit
from tokenizers.pre_tokenizers import Sequence as InOrder
from tokenizers.trainers import BpeTrainer, Trainer, UnigramTrainer
from transformers import PreTrainedTokenizerFast

from truesource.generator.objectives import Objective
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import approximate
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.pieces.marking import MARKER
from truesource.lmtrain.tokenizer import SPECIALS, UNK, build_tokenizer, count_words, with_specials

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
    """Return a trained unigram model whose scores do not depend on the order in which the trainer met the words.

    The trainer keeps words in a hash table that is seeded anew in every process. The last digits of its scores
    vary, and characters that it would have dropped get scores in steps of 1e-4 above the lowest, in random
    order. Here scores are rounded to 1e-6, those characters share the lowest one, and ties are in code point order.
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
    """Return the tokeniser that a model's settings ask for.

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
