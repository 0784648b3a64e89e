"""All n-grams of a corpus up to some length as a trie in flat arrays: their counts, probabilities and file.

The probabilities are relative frequencies or interpolated Kneser-Ney estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from truesource.generator.columns import CodedSentences, Rows
from truesource.grammar.support.archives import ArrayKind, integers, read_arrays
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.atomic_files import atomic_path
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.lmtrain.architectures.ngram._kernels import counts as kernels
from truesource.lmtrain.word_vocabulary import Encoder, encode_rows

MOST_TOKENS = 2**31 - 1  #: places in a stream are 32-bit numbers
MOST_NODES = 2**31 - 1  #: n-grams are 32-bit numbers
FILE = "ngram.npz"
FALLBACK = 0.5  #: discount of a length whose counts give none
Smoothing = Literal["mle", "kneser_ney"]
Estimated = Literal["mle", "kneser_ney", "arpa"]  #: source of the log probabilities; ARPA files contain them


class Stream(NamedTuple):
    """``<bos> w1 .. wn <eos>``, sentence by sentence."""

    tokens: Int32Array  #: (T,)
    ends: IntArray  #: (S,) where each sentence ends
    lengths: IntArray  #: (S,) words, or pieces of words, of each sentence

    @property
    def begins(self) -> IntArray:
        """Place of the first token of each sentence, (S,)."""
        return self.ends - self.lengths - 2

    @property
    def n_events(self) -> int:
        """Words, or pieces, and sentence ends."""
        return len(self.tokens) - len(self.ends)


def read_stream(sentences: Sequence[Sequence[str]], vocabulary: Encoder) -> Stream:
    """Number the words, or pieces, of sentences, unknown ones as ``<unk>``.

    Raises:
        InputError: there are more than 2^31 - 1 tokens.
    """
    return as_stream(encode_rows(vocabulary, CodedSentences.of(sentences)), vocabulary)


def as_stream(rows: Rows, vocabulary: Encoder) -> Stream:
    """Put the marks around rows of token numbers.

    Raises:
        InputError: there are more than 2^31 - 1 tokens.
    """
    lengths = rows.lengths
    total = len(rows.flat) + 2 * len(rows)
    if total > MOST_TOKENS:
        raise InputError(f"n-gram counts take {MOST_TOKENS} tokens, these are {total}; use fewer sentences")
    stream = Stream(np.empty(total, dtype=np.int32), np.cumsum(lengths + 2), lengths)
    is_word = np.ones(total, dtype=bool)
    for places, mark in ((stream.begins, vocabulary.bos), (stream.ends - 1, vocabulary.eos)):
        stream.tokens[places] = mark
        is_word[places] = False
    stream.tokens[is_word] = rows.flat
    return stream


@dataclass(frozen=True)
class Trie:
    """n-grams of length 0 to N, numbered by length, then by context, then by last token.

    Number 0 is the empty n-gram; 1 to K are the tokens of the vocabulary in their order, whether they occur or not.
    The continuations of an n-gram are adjacent and sorted, so that bisection finds them.
    """

    level: Int32Array  #: (N + 1,) number of the first n-gram of each length 0 to N
    start: Int32Array  #: (C + 1,) number of the first continuation of each of the C n-grams shorter than N; then G
    word: Int32Array  #: (G,) last token of each n-gram; -1 for the empty one
    suffix: Int32Array  #: (G,) number of the n-gram that is left without the first token; -1 for the empty one
    count: Int32Array  #: (G,) how often each occurs, or as `adjust` counts; 0 for the empty one and ``<bos>`` alone

    @property
    def order(self) -> int:
        """N, the greatest length."""
        return len(self.level) - 1

    @property
    def n_tokens(self) -> int:
        """K, size of the vocabulary with its special tokens."""
        return int(self.start[1]) - 1

    @property
    def n_ngrams(self) -> int:
        """Number of different n-grams of all lengths that occur."""
        return int(np.count_nonzero(self.count))

    def bounds(self, length: int) -> tuple[int, int]:
        """Return the numbers of the first n-gram of a length, and of the one after the last."""
        end = len(self.word) if length == self.order else int(self.level[length + 1])
        return int(self.level[length]), end

    def check(self) -> None:
        """Check that every number points to a valid n-gram.

        Raises:
            ValueError: one does not.
        """
        rows = (self.level, self.start, self.word, self.suffix, self.count)
        if any(row.dtype != np.int32 or row.ndim != 1 for row in rows) or len(self.level) < 2:
            raise ValueError("a trie is made of rows of 32-bit numbers")
        n_nodes, n_contexts = len(self.word), int(self.level[-1])
        if [len(row) for row in rows[1:]] != [n_contexts + 1, n_nodes, n_nodes, n_nodes] or n_nodes < 2:
            raise ValueError("the rows of a trie do not fit each other")
        if self.level[:2].tolist() != [0, 1] or (np.diff(self.level) < 0).any():
            raise ValueError("the lengths of a trie are out of order")
        ends = [self.bounds(length)[1] for length in range(self.order + 1)]
        if (
            self.start[self.level].tolist() != ends
            or (np.diff(self.start) < 0).any()
            or self.count.min() < 0
            or self.word[1:].min() < 0
            or self.word.max() >= self.n_tokens
            or (self.word[1 : 1 + self.n_tokens] != np.arange(self.n_tokens)).any()
        ):
            raise ValueError("the numbers of a trie are out of order")
        for length in range(1, self.order + 1):
            (low, high), (first, end) = self.bounds(length - 1), self.bounds(length)
            if end > first and (self.suffix[first:end].min() < low or self.suffix[first:end].max() >= high):
                raise ValueError("an n-gram is linked to one that is not shorter by a token")


def count_ngrams(stream: Stream, order: int, *, n_tokens: int, bos: int, eos: int) -> Trie:
    """Count all n-grams of 1 to ``order`` tokens that a stream contains within its sentences.

    ``<bos>`` precedes a sentence once and is never counted as an event; at the beginning of a sentence contexts
    are shorter (as in SRILM and KenLM). Time grows with tokens times ``order``; memory in bytes is about 12 a token
    and 16 a stored n-gram.

    Args:
        stream: the corpus.
        order: greatest length, 1 or more.
        n_tokens: size of the vocabulary with its special tokens.
        bos: number of ``<bos>``.
        eos: number of ``<eos>``.

    Raises:
        InputError: there are 2^31 different n-grams or more.
    """
    tokens = stream.tokens
    words = [np.full(1, -1, np.int32), np.arange(n_tokens, dtype=np.int32)]
    suffixes = [np.full(1, -1, np.int32), np.zeros(n_tokens, np.int32)]
    starts = [np.ones(1, np.int32)]
    level = [0, 1]
    with meter(f"count n-grams of up to {order} tokens", order) as bar:
        places, counts = kernels.by_token(tokens, n_tokens)
        numbers = [np.zeros(1, np.int32), counts]
        node = tokens + np.int32(1)
        bar.advance()
        for length in range(1, order):
            last, counts = words[-1], numbers[-1]
            n_places, n_longer = kernels.refine(tokens, places, counts, last, length, eos, n_tokens)
            first = level[-1] + len(last)
            if first + n_longer > MOST_NODES:
                raise InputError(f"more than {MOST_NODES} different n-grams; lower the order or use fewer sentences")
            start = np.empty(len(last), np.int32)
            longer = [np.empty(n_longer, np.int32) for _ in range(3)]
            kernels.extend(tokens, places[:n_places], counts, last, length, eos, first, node, start, *longer)
            for table, row in zip((words, numbers, suffixes), longer, strict=True):
                table.append(row)
            starts.append(start)
            level.append(first)
            bar.advance()
    del places, node
    numbers[1][bos] = 0
    starts.append(np.full(1, level[-1] + len(words[-1]), np.int32))
    return Trie(np.array(level, np.int32), *(_joined(table) for table in (starts, words, suffixes, numbers)))


def _joined(table: list[Int32Array]) -> Int32Array:
    """Join the parts to one array and let them go."""
    array = np.concatenate(table)
    table.clear()
    return array


@dataclass(frozen=True)
class NgramEstimate:
    """Log probabilities of the n-grams of a trie, nats; made by `estimate`."""

    trie: Trie  #: result of `adjust`
    smoothing: Estimated
    discount: FloatArray  #: (N, 3) taken from a count of 1, 2, and 3 or more, by length
    emitted: IntArray  #: (E,) tokens that can follow something: words, ``<unk>``, ``<eos>``
    log_prob: FloatArray  #: (G,) of the last token given those before it
    backoff: FloatArray  #: (C,) mass of a context that goes to the shorter one


def adjust(trie: Trie, smoothing: Smoothing) -> Trie:
    """Return the counts that an estimate is made from, in place of numbers of occurrences.

    ``mle`` takes them as they are. Under ``kneser_ney`` an n-gram of the greatest length counts as often as it occurs,
    a shorter one once for each different token before it; at the beginning of a sentence, which no token precedes, as
    often as it occurs (as in KenLM).
    """
    if smoothing == "mle":
        return trie
    return replace(trie, count=kernels.continuation_counts(trie.count, trie.suffix, int(trie.level[-1])))


def estimate(
    trie: Trie,
    smoothing: Smoothing,
    emitted: IntArray,
    *,
    discount: FloatArray | None = None,
) -> NgramEstimate:
    """Return the probabilities of all n-grams.

    ``mle``: relative frequencies, p(w | h) = c(hw) / c(h.), without any smoothing. What was never seen after a context
    has probability zero; after a context that was never seen nothing is defined.

    ``kneser_ney``: interpolated modified Kneser-Ney (Chen & Goodman 1999, section 4.1; Kneser & Ney 1995). Each length
    is interpolated with the next shorter one, single tokens with the uniform distribution over ``emitted``.

    Args:
        trie: result of `adjust`.
        smoothing: one of the two.
        emitted: tokens that can follow something.
        discount: (N, 3) of ``kneser_ney``, at most 1, 2 and 3; None: `discounts` of the counts.
    """
    if smoothing == "mle":
        discount = np.zeros((trie.order, 3))
    elif discount is None:
        counts = (trie.count[slice(*trie.bounds(length))] for length in range(1, trie.order + 1))
        discount = np.array([discounts(some) for some in counts])
    log_prob, backoff = np.empty(len(trie.word)), np.empty(int(trie.level[-1]))
    can_follow = np.zeros(trie.n_tokens, dtype=bool)
    can_follow[emitted] = True
    nothing = -np.inf if smoothing == "mle" else 0.0
    kernels.estimate(trie.start, trie.suffix, trie.count, trie.level, discount, can_follow, nothing, log_prob, backoff)
    return NgramEstimate(trie, smoothing, discount, emitted, log_prob, backoff)


def discounts(counts: Int32Array) -> tuple[float, float, float]:
    """Return the discounts of the n-grams of one length from how many of them count 1, 2, 3 and 4.

    With n_i of them counting i and Y = n_1 / (n_1 + 2 n_2), a count of i = 1, 2, and 3 or more loses
    i - (i + 1) Y n_{i+1} / n_i (Chen & Goodman 1999, equation 26). When one of n_1 to n_4 is 0 or a discount is not
    positive, as in very small or very repetitive corpora, all counts lose Y (the single discount of Kneser-Ney and of
    Ney, Essen & Kneser 1994); when n_1 or n_2 is 0 too, all lose 0.5.
    """
    n = kernels.counts_of_counts(counts).astype(float)
    if n[0] == 0 or n[1] == 0:
        return FALLBACK, FALLBACK, FALLBACK
    y = float(n[0] / (n[0] + 2 * n[1]))
    if n.all():
        one, two, three = (float(i - (i + 1) * y * n[i] / n[i - 1]) for i in (1, 2, 3))
        if min(one, two, three) > 0.0:
            return one, two, three
    return y, y, y


_ARRAYS = tuple(field.name for field in fields(Trie))


def save_counts(estimate: NgramEstimate, folder: Path) -> None:
    """Write ``ngram.npz``: the arrays of the trie and the discounts (N, 3); equal ones give equal bytes."""
    arrays = {name: getattr(estimate.trie, name) for name in _ARRAYS}
    with atomic_path(folder / FILE) as temporary, temporary.open("wb") as stream:
        np.savez(stream, discount=estimate.discount, **arrays)


def load_counts(folder: Path) -> tuple[Trie, FloatArray]:
    """Read what `save_counts` wrote: the trie and the discounts.

    Raises:
        InputError: the file is missing or damaged, or lacks an array or holds another (the message names it).
    """
    path = folder / FILE
    what, remedy = "the file of counts of this n-gram model", "train the model again"
    kinds = {**dict.fromkeys(_ARRAYS, integers()), "discount": ArrayKind("f", (None, 3))}
    arrays = read_arrays(path, kinds, what=what, remedy=remedy, others=False)
    discount = arrays.pop("discount")
    trie = Trie(**arrays)
    try:
        trie.check()
        if discount.shape != (trie.order, 3) or not ((discount >= 0.0) & (discount <= [1.0, 2.0, 3.0])).all():
            raise ValueError("the discounts do not fit")
    except (ValueError, IndexError) as error:
        raise InputError(f"{what} is damaged: {error}; {remedy}", path) from error
    return trie, discount.astype(np.float64)
