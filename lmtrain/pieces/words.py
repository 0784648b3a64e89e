"""Words and the pieces that they are cut into; see `truesource.lmtrain.pieces.scoring` for the formulas.

`WordAligner` is the part of a tokeniser that word-level scoring uses, and `Slots` lead from log probabilities of pieces
to log probabilities of words. `OpenVocabulary` is a model of words without a list of words: pieces spell any.

`OffsetAligner` is a fast tokeniser as scoring sees it, whoever made it. The text of a sentence is its words joined by
single spaces. The decoder of the tokeniser shows how it marks words: a piece begins a word if, decoded after another
piece, it starts with white space. So ``Ġ`` of byte-level BPE, ``▁`` of SentencePiece and the missing ``##`` of
WordPiece need no rules of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.decoders import WordPiece
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from truesource.generator.language_model import LogDistributions, ScoringFrame, TokenScores, assemble_scores
from truesource.generator.objectives import Objective
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.pieces.marking import MARKER
from truesource.lmtrain.word_vocabulary import parts_of


class CutError(InputError):
    """A word that a tokeniser does not cut into pieces of its own.

    Args:
        word: the message up to the word.
        number: number of the word's sentence, from 0.
        problem: the rest of the message.
    """

    def __init__(self, word: str, number: int, problem: str) -> None:
        super().__init__(f"{word} of sentence {number + 1}{problem}")
        self.in_any_sentence = f"{word}{problem}"  #: the message for a list of words, whose numbers mean nothing


@dataclass(frozen=True)
class Pieces:
    """Sentences as pieces: T pieces of W words of S sentences, in order."""

    ids: IntArray  #: (T,) numbers of the pieces
    counts: IntArray  #: (W,) pieces of each word, at least 1
    words: IntArray  #: (S,) words of each sentence
    #: (W,) true for words that the pieces do not spell: one is ``<unk>`` or another special token
    unreadable: BoolArray

    @property
    def starts(self) -> IntArray:
        """(W+1,) where the pieces of each word start; the last entry is T."""
        return np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)

    @property
    def sentence(self) -> IntArray:
        """(W,) number of the sentence of each word."""
        return np.repeat(np.arange(len(self.words)), self.words)

    @property
    def bounds(self) -> IntArray:
        """(S+1,) where the pieces of each sentence start; the last entry is T."""
        bounds: IntArray = self.starts[np.concatenate([[0], np.cumsum(self.words)])]
        return bounds

    def rows(self) -> list[IntArray]:
        """Return the pieces of each sentence."""
        bounds = self.bounds
        return [self.ids[a:b] for a, b in itertools.pairwise(bounds.tolist())]


class Marks(NamedTuple):
    """The tokens that a tokeniser puts around a text."""

    before: tuple[int, ...]  #: a causal model reads at most one; none: nothing predicts the first piece
    after: tuple[int, ...]  #: a causal model predicts it (at most one) as the end of the sentence
    mask: int | None  #: None: the tokeniser has none
    pad: int  #: fills shorter rows on the right


class WordAligner(Protocol):
    """A tokeniser as scoring sees it."""

    @property
    def marks(self) -> Marks:
        """The tokens around a text."""

    @property
    def begins(self) -> BoolArray | None:
        """(V,) tokens that can only follow a finished word: beginnings of words, and the end of the text.

        None: the marks are at the ends of words, so a word's own pieces show that it is over.
        """

    def __len__(self) -> int: ...

    def align(self, sentences: Sequence[Sequence[str]]) -> Pieces:
        """Return the pieces of the words of each sentence.

        Raises:
            InputError: a word has no pieces of its own.
        """


class Slots(NamedTuple):
    """Places of predictions: the pieces of each sentence, then its end, sentence after sentence."""

    n: int
    first: IntArray  #: (S+1,) first slot of each sentence; the last entry is ``n``
    segments: IntArray  #: (W+S,) first slot of each word and of each end, in order
    words: IntArray  #: (W,) which segments are words; the others are ends
    opens: BoolArray  #: (n,) true where a word or an end follows a finished word, so that B is needed

    @classmethod
    def of(cls, pieces: Pieces) -> Slots:
        """Return the slots of some sentences."""
        sentences = np.arange(len(pieces.words) + 1)
        first = pieces.bounds + sentences
        words = np.arange(len(pieces.counts)) + pieces.sentence
        segments = np.empty(len(pieces.counts) + len(pieces.words), dtype=np.int64)
        segments[words] = pieces.starts[:-1] + pieces.sentence
        segments[np.cumsum(pieces.words) + sentences[:-1]] = first[1:] - 1
        opens = np.zeros(int(first[-1]), dtype=bool)
        opens[segments] = True
        opens[first[:-1]] = False
        return cls(int(first[-1]), first, segments, words, opens)


def align_words(
    aligner: WordAligner, sentences: Sequence[Sequence[str]], frame: ScoringFrame, *, longest: int | None = None
) -> Pieces:
    """Return the pieces of sentences whose words a causal model of pieces can score.

    Raises:
        InputError: the frame counts something that the tokeniser has no token for, a sentence has more than
            ``longest`` tokens, or a word's pieces do not show its beginning.
    """
    before, after, _, _ = aligner.marks
    if frame.first and not before:
        raise InputError(
            "the tokeniser has no token for the beginning of a text, so nothing predicts the first word;"
            " say what comes before a text (score --before eos), or use a frame that excludes the first word, such as"
            " paper"
        )
    if frame.eos and not after:
        raise InputError("the tokeniser has no token for the end of a text; use a frame without it, such as paper")
    pieces = aligner.align(sentences)
    check_piece_counts(pieces, len(before), longest)
    if aligner.begins is not None:
        _check_marks(pieces, aligner.begins, sentences)
    return pieces


def assemble_words(
    pieces: Pieces, slots: Slots, values: FloatArray, boundary: FloatArray, frame: ScoringFrame, *, ends: bool
) -> TokenScores:
    """Return the log probabilities of words and ends from log probabilities of pieces.

    Args:
        pieces: of the sentences.
        slots: `Slots.of` them.
        values: (n,) log probability of the token at each slot, nats.
        boundary: (n,) log B where ``slots.opens``, else 0.
        frame: positions that count. If it does not skip unknown words, a sentence with a word that the pieces do not
            spell has no score.
        ends: whether the model predicts the end of a text.
    """
    sums = np.add.reduceat(values, slots.segments) if len(slots.segments) else values
    opening = boundary[slots.segments]
    sums -= opening
    sums[slots.words] += opening[slots.words + 1]
    sums[np.isnan(sums)] = -np.inf  # both terms of a difference are impossible
    if frame.unk == "token":
        sums[slots.words[pieces.unreadable]] = -np.inf  # the whole sentence has no score
    stops = np.cumsum(pieces.words + 1)
    result = [sums[b - n - 1 : b if ends else b - 1] for b, n in zip(stops, pieces.words, strict=True)]
    return assemble_scores(result, by_sentence(pieces.unreadable, pieces), frame)


def check_piece_counts(pieces: Pieces, marks: int, longest: int | None) -> None:
    """Refuse a sentence that the model has no positions for.

    Raises:
        InputError: a sentence has more than ``longest`` tokens, ``marks`` included (the message says which).
    """
    if longest is None:
        return
    sizes = np.diff(pieces.bounds)
    over = np.flatnonzero(sizes + marks > longest)
    if len(over):
        raise InputError(
            f"sentence {over[0] + 1} has {sizes[over[0]]} pieces, but the model takes at most {longest - marks};"
            " leave it out or use a model with more positions"
        )


def _check_marks(pieces: Pieces, begins: BoolArray, sentences: Sequence[Sequence[str]]) -> None:
    """Refuse pieces that do not show where words begin: every word but a sentence's first must begin with a mark.

    Raises:
        InputError: a word has no mark, or one within it, so that its pieces may also spell other words.
    """
    marked = begins[pieces.ids]
    first = np.zeros(len(pieces.ids), dtype=bool)
    first[pieces.starts[:-1]] = True
    opening = first_words(pieces)
    word = np.repeat(np.arange(len(pieces.counts)), pieces.counts)
    wrong = np.flatnonzero((marked != first) & ~(first & opening[word]))
    if len(wrong):
        at = word[wrong[0]]
        number = int(pieces.sentence[at])
        place = int(at - pieces.words[:number].sum())
        raise CutError(
            f"the tokeniser cuts the word {sentences[number][place]!r}",
            number,
            " into pieces that do not show its beginning and end, so it has no probability as one word",
        )


def first_words(pieces: Pieces) -> BoolArray:
    """Mark the first word of each sentence, (W,)."""
    return np.diff(pieces.sentence, prepend=-1) > 0


def by_sentence(values: NDArray[Any], pieces: Pieces) -> list[NDArray[Any]]:
    """Return the values of the words (W,), sentence by sentence."""
    return np.split(values, np.cumsum(pieces.words)[:-1]) if len(pieces.words) else []


class OpenVocabulary:
    """The methods of models of words that a model of pieces refuses."""

    name: str
    has_distributions = False  #: see `truesource.generator.interface.abilities`

    @property
    def vocabulary(self) -> None:
        """None: pieces spell any word of the language."""
        return None

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Refuse: there is no list of words to have distributions over.

        Raises:
            InputError: always.
        """
        self._refuse()

    def next_token(self, prefix: Sequence[str]) -> NoReturn:
        """Refuse, like `distributions`.

        Raises:
            InputError: always.
        """
        self._refuse()

    @property
    def _why(self) -> str:
        """Reason why there is no distribution over words."""
        return "cuts words into pieces and has no list of words, so it has no distribution over words"

    def _refuse(self) -> NoReturn:
        raise InputError(f"{self.name} {self._why}; it can be scored")


def reading_of(aligner: WordAligner) -> str:
    """Return how a causal model of pieces scores words: the correction, and the tokens around a text, by number."""
    before, after, _, _ = aligner.marks
    corrected = "pieces" if aligner.begins is None else "pieces/bow"
    return f"{corrected}/bos={numbers(before)}/eos={numbers(after)}"


def numbers(tokens: tuple[int, ...]) -> str:
    """Return the tokens around a text as a part of signatures."""
    return "+".join(map(str, tokens)) or "none"


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
        if not (numbers := tokenizer.get_vocab().values()):
            raise InputError("the tokeniser has no tokens; train it, and save it again")
        self._size = int(max(numbers)) + 1
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
        """Return the pieces of the words of each sentence.

        Raises:
            InputError: a word is empty, is rewritten or dropped by the tokeniser, shares a piece with the next, or is
                unknown to a tokeniser without an unknown token.
        """
        for number, sentence in enumerate(sentences):
            self._check(sentence, number)
            self._check_known(sentence, number)
        texts = [" ".join(sentence) for sentence in sentences]
        encoded: Any = {"input_ids": [], "offset_mapping": []}
        if texts:
            encoded = self._tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        ids = np.array([*itertools.chain.from_iterable(encoded["input_ids"])], dtype=np.int64)
        spans = np.array([*itertools.chain.from_iterable(encoded["offset_mapping"])], dtype=np.int64).reshape(-1, 2)
        sizes = np.array([*map(len, encoded["input_ids"])], dtype=np.int64)
        words = [*itertools.chain.from_iterable(sentences)]
        word = self._words_of(spans, sizes, words, np.array([*map(len, sentences)], dtype=np.int64))
        unreadable = np.array([w.split() != [w] or (self._marker and MARKER in w) for w in words], dtype=bool)
        unreadable[word[self._special[ids]]] = True
        return Pieces(
            ids=ids,
            counts=np.bincount(word, minlength=len(words)),
            words=np.array([len(sentence) for sentence in sentences], dtype=np.int64),
            unreadable=unreadable,
        )

    def _check(self, sentence: Sequence[str], number: int) -> None:
        """Refuse words that the tokeniser rewrites, which have the probability of several words."""
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
                raise CutError(
                    f"the tokeniser reads the word {word!r}",
                    number,
                    f" as {seen!r}, so it has no probability of its own; write the corpus as the tokeniser reads it",
                )
        raise InputError(f"the tokeniser rewrites sentence {number + 1}, so its words have no probabilities")

    def _check_known(self, sentence: Sequence[str], number: int) -> None:
        """Refuse words that a tokeniser of whole words without an unknown token cannot read."""
        if self._known is None:
            return
        for word in sentence:
            if not self._known.issuperset(parts_of(self._tokenizer.backend_tokenizer, word)):
                raise CutError(
                    f"the tokeniser has no token for the word {word!r}",
                    number,
                    " and none for unknown words; leave such sentences out, or give it an unknown token",
                )

    def _words_of(self, spans: IntArray, sizes: IntArray, words: Sequence[str], n_words: IntArray) -> IntArray:
        """Return the number of the word of each piece, among all words; a space belongs to the word after it.

        Args:
            spans: (N, 2) start and end of each piece in the text of its sentence.
            sizes: (S,) number of pieces of each sentence.
            words: of all sentences.
            n_words: (S,) number of words of each sentence.
        """
        until = np.cumsum(n_words)  # number of words up to the end of each sentence
        ends = np.cumsum(np.array([len(word) + 1 for word in words], dtype=np.int64)) - 1  # in all texts, in a row
        spans = spans + np.repeat(np.append(0, ends + 1)[until - n_words], sizes)[:, None]
        last = np.maximum(spans[:, 0], spans[:, 1] - 1)
        begin, end = (
            np.minimum(np.searchsorted(ends, x, side="right"), np.repeat(until - 1, sizes)) for x in (spans[:, 0], last)
        )
        covered = np.cumsum(np.subtract(*(np.bincount(x, minlength=len(ends) and int(ends[-1]) + 2) for x in spans.T)))
        covered[ends] = 1  # the spaces between words
        gone = np.bincount(end, minlength=len(words)) == 0
        for what, why, wrong in (
            ("joins", " with the next in one piece, so it has no probability of its own", begin[begin != end]),
            ("drops", "", np.flatnonzero(gone)),
            (
                "drops a part of",
                ", so it has no probability of its own; use a tokeniser with a token for every character or byte",
                np.searchsorted(ends, np.flatnonzero(covered[:-1] <= 0)),
            ),
        ):
            if len(wrong):
                word = int(wrong[0])
                number = int(np.searchsorted(until, word, side="right"))
                raise CutError(f"the tokeniser {what} the word {words[word]!r}", number, why)
        return np.asarray(end, dtype=np.int64)


def _after(decoder: Any, piece: str) -> str:
    """Return the text that a piece adds to another."""
    before: str = decoder.decode(["a"])
    both: str = decoder.decode(["a", piece])
    return both[len(before) :]


def _begins(backend: Tokenizer, size: int) -> BoolArray:
    """Mark the tokens, (V,), that begin with white space when they follow another piece."""
    decoder = backend.decoder
    if isinstance(decoder, WordPiece):
        decoder = WordPiece(decoder.prefix, cleanup=False)  # clean-up would join punctuation to the word before it
    begins = np.zeros(size, dtype=bool)
    for piece, number in backend.get_vocab(with_added_tokens=True).items():
        begins[number] = decoder is None or _after(decoder, piece)[:1].isspace()
    return begins


def _template(tokenizer: PreTrainedTokenizerFast) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the tokens that the tokeniser itself puts before and after a text."""
    bare, whole = (tokenizer("a", add_special_tokens=add)["input_ids"] for add in (False, True))
    for start in range(len(whole) - len(bare) + 1):
        if bare and whole[start : start + len(bare)] == bare:
            return tuple(whole[:start]), tuple(whole[start + len(bare) :])
    raise InputError("the tokeniser changes a text when it adds its special tokens, so the model cannot be scored")


def _plain(text: str) -> str:
    """Return a text without the traces of a tokeniser's marker."""
    return text.replace(MARKER, " ").strip()
