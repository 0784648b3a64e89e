"""A fast tokeniser as scoring sees it, whoever made it.

The text of a sentence is its words joined by single spaces. Where the tokeniser marks words is read off its own
decoder: a piece begins a word if, decoded after another piece, it starts with white space. So ``Ġ`` of byte-level
BPE, ``▁`` of SentencePiece and the missing ``##`` of WordPiece need no rules of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from tokenizers.decoders import WordPiece
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from truesource.generator.language_model import Objective
from truesource.grammar.support.arrays import BoolArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.pieces.marking import MARKER
from truesource.lmtrain.pieces.word_aligner import Marks, Pieces
from truesource.lmtrain.whole_words import parts_of


class OffsetAligner:
    """A fast tokeniser as a `WordAligner`: it segments whole sentences and assigns pieces to words by their offsets."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, objective: Objective) -> None:
        self._tokenizer = tokenizer
        backend = tokenizer.backend_tokenizer
        self._normalizer = backend.normalizer
        self._marker = backend.decoder is not None and _after(backend.decoder, MARKER).isspace()
        model = backend.model
        bare = isinstance(model, WordLevel) and backend.token_to_id(model.unk_token) is None
        self._known = {*backend.get_vocab(with_added_tokens=True)} if bare else None
        self._size = int(max(tokenizer.get_vocab().values())) + 1
        self._special = np.zeros(self._size, dtype=bool)
        self._special[tokenizer.all_special_ids] = True
        unk = tokenizer.unk_token_id
        ends = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id
        starts = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.cls_token_id
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        if objective == "causal":
            before, after = (tuple(int(i) for i in (token,) if i is not None) for token in (starts, ends))
        else:
            before, after = _template(tokenizer)
        self.marks = Marks(before, after, tokenizer.mask_token_id, int(pad))
        self.begins: BoolArray | None = None
        if not getattr(backend.model, "end_of_word_suffix", None):
            self.begins = _begins(backend, self._size)
            self.begins[[i for i in tokenizer.all_special_ids if i != unk]] = False
            if ends is not None:
                self.begins[ends] = True

    def __len__(self) -> int:
        return self._size

    def align(self, sentences: Sequence[Sequence[str]]) -> Pieces:
        """The pieces of the words of each sentence.

        Raises:
            InputError: a word is empty, is rewritten or dropped by the tokeniser, shares a piece with the next, or is
                unknown and there is no token for these.
        """
        for number, sentence in enumerate(sentences):
            self._check(sentence, number)
            self._check_known(sentence, number)
        texts = [" ".join(sentence) for sentence in sentences]
        found: Any = {"input_ids": [], "offset_mapping": []}
        if texts:
            found = self._tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        ids, counts, unreadable = [], [], []
        for number, sentence in enumerate(sentences):
            row = np.array(found["input_ids"][number], dtype=np.int64)
            spans = np.array(found["offset_mapping"][number], dtype=np.int64).reshape(-1, 2)
            word = self._words_of(spans, sentence, number)
            ids.append(row)
            counts.append(np.bincount(word, minlength=len(sentence)))
            bad = np.array([w.split() != [w] or (self._marker and MARKER in w) for w in sentence], dtype=bool)
            bad[word[self._special[row]]] = True
            unreadable.append(bad)
        none = np.zeros(0, dtype=np.int64)
        return Pieces(
            ids=np.concatenate([none, *ids]),
            counts=np.concatenate([none, *counts]),
            words=np.array([len(sentence) for sentence in sentences], dtype=np.int64),
            unreadable=np.concatenate([none.astype(bool), *unreadable]),
        )

    def _check(self, sentence: Sequence[str], number: int) -> None:
        """The tokeniser must see the words as they are: what it rewrites has the probability of several words."""
        if "" in sentence:
            raise InputError(f"sentence {number + 1} has an empty word, which no tokeniser keeps")
        if self._normalizer is None:
            return
        text = " ".join(sentence)
        if _plain(self._normalizer.normalize_str(text)) == _plain(text):
            return
        for word in sentence:
            seen = _plain(self._normalizer.normalize_str(word))
            if seen != _plain(word):
                raise InputError(
                    f"the tokeniser reads the word {word!r} of sentence {number + 1} as {seen!r}, so it has no"
                    " probability of its own; write the corpus as the tokeniser reads it"
                )
        raise InputError(f"the tokeniser rewrites sentence {number + 1}, so its words have no probabilities")

    def _check_known(self, sentence: Sequence[str], number: int) -> None:
        """A tokeniser of whole words without an unknown token cannot read others at all."""
        if self._known is None:
            return
        for word in sentence:
            if not self._known.issuperset(parts_of(self._tokenizer.backend_tokenizer, word)):
                raise InputError(
                    f"the tokeniser has no token for the word {word!r} of sentence {number + 1} and none for unknown"
                    " words; leave such sentences out, or give it an unknown token"
                )

    def _words_of(self, spans: IntArray, sentence: Sequence[str], number: int) -> IntArray:
        """Number of the word of each piece; a space belongs to the word after it."""
        lengths = np.array([len(word) + 1 for word in sentence], dtype=np.int64)
        ends = np.cumsum(lengths) - 1  # of each word, in the text
        first, last = spans[:, 0], np.maximum(spans[:, 0], spans[:, 1] - 1)
        begin, end = (np.minimum(np.searchsorted(ends, x, side="right"), len(ends) - 1) for x in (first, last))
        joined = np.flatnonzero(begin != end)
        if len(joined):
            raise InputError(
                f"the tokeniser joins the word {sentence[begin[joined[0]]]!r} of sentence {number + 1} with the next"
                " in one piece, so it has no probability of its own"
            )
        gone = np.flatnonzero(np.bincount(end, minlength=len(sentence)) == 0)
        if len(gone):
            raise InputError(f"the tokeniser drops the word {sentence[gone[0]]!r} of sentence {number + 1}")
        return end


def _after(decoder: Any, piece: str) -> str:
    """What a piece adds to a text."""
    before: str = decoder.decode(["a"])
    both: str = decoder.decode(["a", piece])
    return both[len(before) :]


def _begins(backend: Tokenizer, size: int) -> BoolArray:
    """(V,) tokens that begin with white space when they follow another piece."""
    decoder = backend.decoder
    if isinstance(decoder, WordPiece):
        decoder = WordPiece(decoder.prefix, cleanup=False)  # clean-up would join punctuation to the word before it
    begins = np.zeros(size, dtype=bool)
    for piece, number in backend.get_vocab(with_added_tokens=True).items():
        begins[number] = decoder is None or _after(decoder, piece)[:1].isspace()
    return begins


def _template(tokenizer: PreTrainedTokenizerFast) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What the tokeniser itself puts before and after a text."""
    bare, whole = (tokenizer("a", add_special_tokens=add)["input_ids"] for add in (False, True))
    for start in range(len(whole) - len(bare) + 1):
        if bare and whole[start : start + len(bare)] == bare:
            return tuple(whole[:start]), tuple(whole[start + len(bare) :])
    raise InputError("the tokeniser changes a text where it adds its special tokens, so the model cannot be scored")


def _plain(text: str) -> str:
    """A text without the traces of a tokeniser's marker."""
    return text.replace(MARKER, " ").strip()
