"""Tokenisers of whole words, and sentences as rows of token numbers.

Ours splits at white space, is built from the train split and is saved beside the model. `WholeWords` reads one that was
made elsewhere, a `WordLevel` model of the `tokenizers` library. `Encoder` is what batches, architectures and training
need to know of a tokeniser, of this kind or of subwords.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from tokenizers import Regex, Tokenizer, decoders
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from truesource.generator.columns import CodedSentences, Rows
from truesource.generator.objectives import Objective
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError

NO_TOKEN = -1  #: number of a special token that a tokeniser of others does not have
BLOCK = 20_000  #: sentences that are lists of words at once
PAD, UNK, BOS, EOS, MASK = SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>", "<mask>")


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
        """Token numbers of each sentence, nothing added."""


def count_words(sentences: Iterable[Sequence[str]]) -> Counter[str]:
    """Count the words.

    Raises:
        InputError: there are no words, or a word contains white space or the text of a special token.
    """
    coded = CodedSentences.of(sentences)
    counts = Counter(dict(zip(coded.words, coded.counts().tolist(), strict=True)))
    if not counts:
        raise InputError("the train split has no words; there is nothing to train on")
    for word in counts:
        if word.split() != [word]:
            raise InputError(f"the word {word!r} is empty or contains white space; a tokeniser cannot keep it")
        if any(special in word for special in SPECIALS):
            raise InputError(f"the word {word!r} contains a special token of the tokeniser; rename it in the corpus")
    return counts


def with_specials(backend: Tokenizer, objective: Objective) -> PreTrainedTokenizerFast:
    """A tokeniser for `transformers` whose tokens 0 to 4 are the special ones, with the marks of its objective."""
    backend.post_processor = TemplateProcessing(
        single=f"{BOS} $A" if objective == "causal" else f"{BOS} $A {EOS}",
        special_tokens=[(BOS, SPECIALS.index(BOS)), (EOS, SPECIALS.index(EOS))],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        unk_token=UNK,
        bos_token=BOS,
        eos_token=EOS,
        mask_token=MASK,
        padding_side="right",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )


def build_tokenizer(
    sentences: Iterable[Sequence[str]], *, min_count: int = 1, objective: Objective = "causal"
) -> PreTrainedTokenizerFast:
    """Make the tokeniser of a train split.

    Numbers 0 to 4 are ``<pad> <unk> <bos> <eos> <mask>``; words follow, frequent ones first, ties in
    code point order. Calling the tokeniser puts ``<bos>`` before a text, and ``<eos>`` after it for a
    masked model. What it decodes has a space before every word, so that it can follow a prompt.

    Args:
        sentences: the tokens of each sentence.
        min_count: rarer words become ``<unk>``.
        objective: of the model it is for.

    Raises:
        InputError: there are no words, a word contains white space or the text of a special token, or
            ``min_count`` leaves none.
    """
    counts = count_words(sentences)
    words = sorted((w for w, count in counts.items() if count >= min_count), key=lambda w: (-counts[w], w))
    if not words:
        raise InputError(f"no word occurs {min_count} times in the train split; lower min_count")
    ids = {word: i for i, word in enumerate((*SPECIALS, *words))}
    backend = Tokenizer(WordLevel(ids, unk_token=UNK))
    backend.pre_tokenizer = WhitespaceSplit()
    # a space before every word, the first one too: what is generated follows its prompt without a gap
    backend.decoder = decoders.Sequence([decoders.Replace(Regex(f"^(?!{BOS}$)"), " "), decoders.Fuse()])
    return with_specials(backend, objective)


def digest_tokenizer(tokenizer: PreTrainedTokenizerFast) -> str:
    """SHA-256 of all that it does with text, hexadecimal."""
    return hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()


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
        """The words that are unknown where there is no token for unknown ones."""
        return [] if self.unk != NO_TOKEN else [word for word in sentence if word not in self.ids]

    def encode(self, sentences: Iterable[Sequence[str]]) -> list[IntArray]:
        """Numbers of the words of each sentence, unknown ones as ``<unk>``, nothing added."""
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
    vocabulary = WholeWords(tokenizer, int(before), int(after))
    kept = vocabulary.words and all(parts_of(backend, word) == [word] for word in vocabulary.words)
    return vocabulary if kept else None


def parts_of(backend: object, word: str) -> list[str]:
    """The parts of a word that a tokeniser looks up: itself alone, unless it rewrites or cuts words."""
    normalizer, splitter = backend.normalizer, backend.pre_tokenizer  # type: ignore[attr-defined]
    text = word if normalizer is None else normalizer.normalize_str(word)
    return [text] if splitter is None else [part for part, _ in splitter.pre_tokenize_str(text)]
