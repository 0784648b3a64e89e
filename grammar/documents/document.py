"""Documents as sentences: strings of one unknown language with a separator between them, as one process.

The reader of a document does not know its language and infers it from the words so far. The vocabulary is the union of
the vocabularies of all languages of a family, and the separator.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy  # it imports `scipy.fft` when that is first used
from typing_extensions import override

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.process import Process, no_length
from truesource.grammar.sentences import takes_sentences
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

SEPARATOR = "<sep>"  #: between the strings of a document


class WordPredictor(ABC):
    """The state of a reader of documents: distributions of the next word of a string, and of its end.

    All methods process n documents at once. A state is a `NamedTuple` whose first part, ``rows`` (n,), says which rows
    of its buffers are used; a state must not be used again after `read`.

    Args:
        words: (V,) of all languages.
        end: P(a string ends | it has one word or more), if that is always the same; None otherwise.
        size: bytes of one document.
        languages: names of the K languages, if they are finitely many.
    """

    prior: FloatArray  #: (K,) P(language), if the languages are finitely many
    log_prior: FloatArray  #: logarithm of `prior`, nats
    switch: float = 0.0  #: P(the language is drawn again) before each string but the first

    def __init__(
        self, words: Sequence[str], end: float | None, size: int, languages: Sequence[str] | None = None
    ) -> None:
        self.words, self.end, self.size = tuple(words), end, size
        self.languages = None if languages is None else tuple(languages)

    @abstractmethod
    def begin(self, n: int) -> Any:
        """Return the state before the first word."""

    @abstractmethod
    def law(self, state: Any) -> tuple[FloatArray, FloatArray]:
        """Return (n, V) probabilities of the next word, and (n,) of the end of the string; together they sum to one."""

    @abstractmethod
    def log_probability(self, state: Any, words: IntArray) -> FloatArray:
        """Return ln P(word), or of the end of the string for word V, (n,) nats; -inf for word -1."""

    @abstractmethod
    def read(self, state: Any, words: IntArray) -> Any:
        """Return the state after a word of each document, or after the end of its string, V; each must be possible."""

    def prepare(self, strings: Sequence[tuple[int, ...]], *, full: bool) -> None:  # noqa: B027 - most need none
        """Precompute what some strings, as numbers of words, will need; see `Process.prepare`."""

    def draw(self, state: Any, uniform: FloatArray) -> IntArray:
        """Draw a word of each document, given that its string continues, (n,), by ``uniform`` (n,) in [0, 1)."""
        sums = np.cumsum(self.law(state)[0], axis=1)
        return np.asarray((sums <= (uniform * sums[:, -1])[:, None]).sum(axis=1), dtype=np.int64)

    def posterior(self, state: Any) -> FloatArray:
        """Return P(language | words so far), (n, K), if the languages are finitely many."""
        raise NotImplementedError

    def knowing(self, language: int) -> WordPredictor:
        """Return the predictor of a reader who knows the language, given by its number."""
        raise InputError("these documents have infinitely many languages, which have no numbers")

    def string_lengths(self, high: int) -> tuple[FloatArray, FloatArray, float]:
        """Return P(m words | language), (K, high+1); P(language), (K,); P(the language is redrawn before a string).

        Used only without a constant ``end``.
        """
        raise NotImplementedError

    @abstractmethod
    def expected_words(self) -> FloatArray:
        """Return the expected number of each word in one string, (V,)."""

    @abstractmethod
    def words_by_place(self, high: int) -> FloatArray:
        """Return P(word i of a string is w | it has i words or more), (high, V)."""


Predictor = TypeVar("Predictor", bound=WordPredictor)


def with_language(pool: Predictor, language: int) -> Predictor:
    """Return a pool whose prior is one of its languages alone.

    Raises:
        InputError: there is no language of this number, or the language changes within a document.
    """
    if pool.switch > 0.0:
        raise InputError("the language may change within these documents, so no document has a single language")
    assert pool.languages is not None
    if not 0 <= language < len(pool.languages):
        raise InputError(f"this pool has languages 0 to {len(pool.languages) - 1}; got {language}")
    result = copy.copy(pool)
    result.prior = (np.arange(len(pool.languages)) == language).astype(np.float64)
    with np.errstate(divide="ignore"):
        result.log_prior = np.log(result.prior)
    return result


def check_pool(languages: Sequence[str], in_common: bool) -> None:
    """Refuse pools in which the first word reveals the language.

    Raises:
        InputError: there are two languages or more, and no two of them share a word.
    """
    if len(languages) > 1 and not in_common:
        raise InputError(
            f"the languages of this pool, {languages[0]}, {languages[1]} and so on, share no word, so the first word"
            " reveals the language; choose languages that share words"
        )


@dataclass(frozen=True)
class StringCount:
    """Number of strings in a document: always ``mean``, or geometrically distributed on 1, 2, ... with this mean."""

    mean: int
    geometric: bool = False

    @property
    def columns(self) -> int:
        """Number of counts of finished strings to tell apart."""
        return 1 if self.geometric else self.mean

    def last(self, strings: IntArray) -> FloatArray:
        """Return P(a string is the last | the number of strings before it)."""
        return np.full(len(strings), 1.0 / self.mean) if self.geometric else (strings == self.mean - 1).astype(float)


class DocumentState(NamedTuple):
    """W documents after t words."""

    inner: Any  #: state of the predictor
    strings: IntArray  #: (W,) finished strings
    begun: BoolArray  #: (W,) whether the current string has a word
    words: IntArray  #: (W,) number t of words


class DocumentProcess(Process):
    """Documents of an unknown language, see the module.

    Args:
        name: name in signatures.
        predictor: predictor of the words within strings.
        count: number of strings of a document.
        lengths: range of lengths to condition on, in words, separators included.

    Raises:
        InputError: a language has the separator as a word, or no document has such a length.
    """

    def __init__(
        self, name: str, predictor: WordPredictor, count: StringCount, lengths: LengthRange | None = None
    ) -> None:
        if SEPARATOR in predictor.words:
            raise InputError(f"a language of {name} has the word {SEPARATOR}, the separator; rename that word")
        super().__init__(name, (*predictor.words, SEPARATOR))
        self.predictor, self.count, self.lengths = predictor, count, lengths
        self._reaching = None if lengths is None else self._reach(lengths)
        self.at_once = int(np.clip(2**22 // max(predictor.size, 1), 16, Process.at_once))

    # -- the process ------------------------------------------------------------------------------------

    @override
    def begin(self, n: int) -> DocumentState:
        none = np.zeros(n, dtype=np.int64)
        return DocumentState(self.predictor.begin(n), none, np.zeros(n, dtype=np.bool_), none)

    @override
    def law(self, state: DocumentState) -> FloatArray:
        word, separator, end = self._factors(state)
        law, stop = self.predictor.law(state.inner)
        return np.concatenate([law * word[:, None], (stop * separator)[:, None], (stop * end)[:, None]], axis=1)

    @override
    def probability(self, state: DocumentState, words: IntArray) -> FloatArray:
        v = len(self.predictor.words)
        word, separator, end = self._factors(state)
        inner = np.exp(self.predictor.log_probability(state.inner, np.minimum(words, v)))
        return np.asarray(inner * np.where(words < v, word, np.where(words == v, separator, end)))

    @override
    def draw(self, state: DocumentState, uniform: FloatArray) -> IntArray:
        # first whether the string continues, then the word
        v = len(self.predictor.words)
        word, separator, end = self._factors(state)
        if self.predictor.end is None:
            stop = np.exp(self.predictor.log_probability(state.inner, np.full(len(uniform), v)))
        else:
            stop = np.where(state.begun, self.predictor.end, 0.0)
        on, off = (1.0 - stop) * word, stop * separator
        place = uniform * (on + off + stop * end)
        result = np.where(place < on + off, v, v + 1)
        result[(place >= on + off) & (stop * end == 0.0)] = v  # by rounding
        goes_on = np.flatnonzero((place < on) | (stop == 0.0))
        rest = np.minimum(place[goes_on] / on[goes_on], 1.0 - 2.0**-53)
        result[goes_on] = self.predictor.draw(_taken(state.inner, goes_on), rest)
        return result

    @override
    def read(self, state: DocumentState, words: IntArray) -> DocumentState:
        ends = words == len(self.predictor.words)
        return DocumentState(self.predictor.read(state.inner, words), state.strings + ends, ~ends, state.words + 1)

    @override
    def prepare(self, strings: Sequence[IntArray | Int32Array], *, full: bool) -> None:
        # strings of documents
        inner: list[tuple[int, ...]] = []
        for document in strings:
            parts = np.split(document, np.flatnonzero(document == len(self.predictor.words)))
            inner += [tuple(part.tolist()[min(i, 1) :]) for i, part in enumerate(parts)]
        self.predictor.prepare(inner, full=full)

    @staticmethod
    @override
    def take(state: DocumentState, rows: IntArray | BoolArray) -> DocumentState:
        # the buffers are shared
        return DocumentState(_taken(state.inner, rows), state.strings[rows], state.begun[rows], state.words[rows])

    # -- the language ------------------------------------------------------------------------------------

    @property
    def languages(self) -> tuple[str, ...] | None:
        """Names of the languages, if they are finitely many."""
        return self.predictor.languages

    def sizes(self) -> dict[str, int]:
        """Return the numbers of words and, if they are finitely many, of languages."""
        return {**super().sizes(), **({} if self.languages is None else {"languages": len(self.languages)})}

    def draw_language(self, state: DocumentState, uniform: FloatArray) -> IntArray:
        """Draw the language of documents that end here, (W,), from its exact distribution given all words."""
        inner = self.predictor.read(state.inner, np.full(len(uniform), len(self.predictor.words)))
        sums = np.cumsum(self.predictor.posterior(inner), axis=1)
        return np.asarray((sums[:, :-1] <= (uniform * sums[:, -1])[:, None]).sum(axis=1))

    @takes_sentences
    def posterior(self, documents: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return P(language | the words before) at every position of each document, (n+1, K).

        Raises:
            InputError: the languages are not finitely many, or a document has probability 0.
        """
        if self.languages is None:
            raise InputError(
                f"{self.name} has infinitely many languages, so none has a posterior probability; use documents of a"
                " pool of languages"
            )
        result: list[FloatArray] = []
        for at in range(0, len(documents), self.at_once):
            result += self._weights(documents[at : at + self.at_once])
        return result

    def knowing(self, language: int) -> DocumentProcess:
        """Return documents of one of the languages, by its number: the process of a reader who knows the language.

        Raises:
            InputError: the languages are not finitely many, have no such number, or change within a document.
        """
        return self._copy(predictor=self.predictor.knowing(language))

    def _copy(self, **changed: Any) -> DocumentProcess:
        """Return a copy with other attributes, and no cached properties."""
        result = copy.copy(self)
        for cached in ("exact", "_occupied"):
            result.__dict__.pop(cached, None)
        result.__dict__.update(changed)
        return result

    def _weights(self, documents: Sequence[Sequence[str]]) -> list[FloatArray]:
        # weights of documents that are read together
        encoded = [self.encode(document) for document in documents]
        self.prepare(encoded, full=False)
        sizes = np.array([len(document) for document in encoded])
        result = [np.empty((size + 1, len(self.languages or ()))) for size in sizes]
        state, alive = self.begin(len(documents)), np.arange(len(documents))
        for j in range(int(sizes.max()) + 1):
            for i, row in zip(alive.tolist(), self.predictor.posterior(state.inner), strict=True):
                result[i][j] = row
            goes_on = sizes[alive] > j
            state, alive = self.take(state, goes_on), alive[goes_on]
            words = np.array([encoded[i][j] for i in alive.tolist()], dtype=np.int64)
            impossible = np.flatnonzero(~(self.probability(state, words) > 0.0))
            if impossible.size:
                word = documents[alive[impossible[0]]][j]
                raise InputError(f"word {j + 1} of a document, {word!r}, is impossible there in {self.name}")
            state = self.read(state, words)
        return result

    # -- lengths ------------------------------------------------------------------------------------------

    def given(self, lengths: LengthRange) -> DocumentProcess:
        """Condition on a range of lengths, see `Process.given`.

        Raises:
            InputError: also if the end of a string is evidence of the language, which a table of lengths lacks.
        """
        if self.predictor.end is None:
            raise InputError(
                f"documents of {self.name} cannot have a range of lengths: the probability that a string ends depends"
                " on its words; remove the range",
                code="missing-ability",
            )
        return self._copy(lengths=lengths, _reaching=self._reach(lengths))

    def _reach(self, lengths: LengthRange) -> FloatArray:
        """Return ln P(a length in the range | words read, finished strings, one begun), (high+2, J, 2) nats."""
        assert self.predictor.end is not None
        columns = self.count.columns
        with np.errstate(divide="ignore"):
            end, on = np.log(self.predictor.end), np.log1p(-self.predictor.end)
            last = self.count.last(np.arange(columns))
            is_last, more = np.log(last), np.log1p(-last)
        table = np.full((lengths.high + 2, columns, 2), -np.inf)
        for t in range(lengths.high, -1, -1):
            after = table[t + 1, :, 0] if self.count.geometric else np.append(table[t + 1, 1:, 0], -np.inf)
            ends = np.logaddexp(more + after, is_last if t in lengths else np.full(columns, -np.inf))
            table[t, :, 0] = table[t + 1, :, 1]
            table[t, :, 1] = np.logaddexp(on + table[t + 1, :, 1], end + ends)
        if not np.isfinite(table[0, 0, 0]):
            raise no_length(self.name, lengths)
        return table

    def _factors(self, state: DocumentState) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the factors on the probabilities of a word, a separator and the end of the document, (W,) each."""
        last = self.count.last(state.strings)
        if self._reaching is None or self.lengths is None:
            return np.ones(len(last)), 1.0 - last, last
        table, t = self._reaching, state.words
        column = np.minimum(state.strings, self.count.columns - 1)
        here = table[t, column, state.begun.astype(np.int64)]
        word = np.exp(table[t + 1, column, 1] - here)
        separator = (1.0 - last) * np.exp(table[t + 1, np.minimum(column + 1, self.count.columns - 1), 0] - here)
        inside = (t >= self.lengths.low) & (t <= self.lengths.high)
        return word, separator, last * np.where(inside, np.exp(-here), 0.0)

    @override
    def length_pmf(self, high: int) -> FloatArray:
        # strings, with separators between them
        if self.lengths is not None:
            top = min(high, self.lengths.high)
            result = np.zeros(high + 1)
            pmf = self._copy(lengths=None).length_pmf(top)[self.lengths.low :]
            assert self._reaching is not None
            result[self.lengths.low : top + 1] = pmf / np.exp(self._reaching[0, 0, 0])
            return result
        if self.predictor.end is not None:
            _, inside = self._walk(high)
            return np.asarray(inside @ self.count.last(np.arange(self.count.columns)) * self.predictor.end)
        per_string, prior, switch = self.predictor.string_lengths(high)
        begun = np.zeros(per_string.shape)  # P(language, words up to the beginning of a string)
        begun[:, 0] = prior
        result = np.zeros(high + 1)
        for strings in range(self.count.mean if not self.count.geometric else high // 2 + 1):
            ended = np.maximum(_convolve(begun, per_string)[:, : high + 1], 0.0)
            last = float(self.count.last(np.array([strings]))[0])
            result += last * ended.sum(axis=0)
            goes_on = np.pad(ended, ((0, 0), (1, 0)))[:, :-1] * (1.0 - last)
            begun = (1.0 - switch) * goes_on + switch * prior[:, None] * goes_on.sum(axis=0)
        return result

    @override
    def expected_words(self) -> FloatArray:
        if self.lengths is None:
            return np.append(self.count.mean * self.predictor.expected_words(), self.count.mean - 1.0)
        places, separators = self._occupied
        return np.append(places @ self.predictor.words_by_place(len(places)), separators)

    @property
    def mean_length(self) -> float:
        """Mean number of words; it does not depend on the words, see `Process.mean_length`."""
        if self.lengths is not None:
            places, separators = self._occupied
            return float(places.sum() + separators)
        if self.predictor.end is not None:
            return self.count.mean / self.predictor.end + self.count.mean - 1.0
        return float(self.expected_words().sum())

    @cached_property
    def _occupied(self) -> tuple[FloatArray, float]:
        """Expected number of words at each position of a string, (high,), and of separators, under ``lengths``."""
        table, end = self._reaching, self.predictor.end
        assert table is not None and end is not None
        high = len(table) - 2
        begin, _ = self._walk(high)
        reach = np.exp(table - table[0, 0, 0])
        on = (1.0 - end) ** np.arange(high)
        places = np.array([(begin[: high - i] * reach[i + 1 : high + 1, :, 1]).sum() * on[i] for i in range(high)])
        return places, float((begin[1:] * reach[1 : high + 1, :, 0]).sum())

    def _walk(self, high: int) -> tuple[FloatArray, FloatArray]:
        """Return P(t words, number of finished strings) at the start of a string and inside one, (high+1, J) each."""
        assert self.predictor.end is not None
        end, last = self.predictor.end, self.count.last(np.arange(self.count.columns))
        begin, inside = np.zeros((2, high + 1, self.count.columns))
        begin[0, 0] = 1.0
        for t in range(high):
            inside[t + 1] = begin[t] + inside[t] * (1.0 - end)
            after = inside[t] * end * (1.0 - last)
            begin[t + 1] = after if self.count.geometric else np.append(0.0, after[:-1])
        return begin, inside


def _taken(state: Any, selected: IntArray | BoolArray) -> Any:
    """Return some of the documents of a predictor's state; the buffers are shared."""
    return state._replace(rows=state.rows[selected])


def _convolve(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the convolution of the rows of two arrays, (K, A) and (K, B), as (K, A + B - 1)."""
    size = left.shape[1] + right.shape[1] - 1
    fast = scipy.fft.next_fast_len(size, real=True)
    result: FloatArray = scipy.fft.irfft(scipy.fft.rfft(left, fast) * scipy.fft.rfft(right, fast), fast)[:, :size]
    return result
