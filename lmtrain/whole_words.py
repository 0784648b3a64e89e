"""Tokenisers of whole words that were made elsewhere: a `WordLevel` model of the `tokenizers` library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from truesource.generator.language_model import Objective
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.tokenizer import NO_TOKEN, WordVocabulary


class WholeWords(WordVocabulary):
    """A `WordVocabulary` of another tokeniser.

    Text begins with its ``bos`` (else ``cls``) token and ends with its ``eos`` (else ``sep``). Its unknown token is
    that of the `WordLevel` model, unless it is one of these: then there is none, and ``unk`` is `NO_TOKEN`.
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
        """Numbers of the words of each sentence, unknown ones as ``unk``, nothing added.

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
    """The vocabulary of a tokeniser of whole words.

    None: it is of another kind, it would rewrite or cut a word of its own list, or it lacks a token for the beginning
    or the end of a text (a masked model's: for a mask), so that it must be used as a tokeniser of pieces.
    """
    backend = tokenizer.backend_tokenizer
    if not isinstance(backend.model, WordLevel):
        return None
    before = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.cls_token_id
    after = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id
    if before is None or after is None or (objective == "masked" and tokenizer.mask_token_id is None):
        return None
    found = WholeWords(tokenizer, int(before), int(after))
    return found if found.words and all(parts_of(backend, word) == [word] for word in found.words) else None


def parts_of(backend: object, word: str) -> list[str]:
    """What a tokeniser looks up of a word: itself alone, unless it rewrites or cuts words."""
    normalizer, splitter = backend.normalizer, backend.pre_tokenizer  # type: ignore[attr-defined]
    text = word if normalizer is None else normalizer.normalize_str(word)
    return [text] if splitter is None else [part for part, _ in splitter.pre_tokenize_str(text)]
