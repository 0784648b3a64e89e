"""Processes: languages without rules, whose next word has an exact distribution in O(1).

A process keeps a configuration, a function of the words so far that determines the distribution of the next word. So
the probability of each word given the previous ones is exact wherever the language is in the Chomsky hierarchy. Sums
over later words, such as the probability of a masked word or of a parse, need the rules of a
`truesource.grammar.pcfg.PCFG`.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Batch, Distributions, encoded_batches
from truesource.grammar.inference.causal import ExactCausal
from truesource.grammar.inference.next_token import NextToken
from truesource.grammar.sentences import takes_sentence
from truesource.grammar.support.archives import BYTES, read_arrays
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.atomic_files import atomic_path
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import refuse_device, refuse_existing
from truesource.grammar.support.printable import meter
from truesource.grammar.support.records import STRICT, decode_record
from truesource.grammar.word_numbers import decoded

if TYPE_CHECKING:
    from truesource.grammar.inference.next_words import NextWords

_WHAT, _REMEDY = "the file of this process", "regenerate it"


class Process(ABC):
    """A language whose next-word distribution follows from the words so far, with one step a word.

    All methods process W strings at once, which have read equally many words. A subclass defines the first
    configuration, the distribution, the change by a word, and expectations of lengths and words.

    Args:
        name: name in signatures; for a language of the gallery its reference, such as ``shuffle-dyck:k=64,depth=100``.
        vocabulary: (V,) the words.
        meta: JSON values on how it was made.
    """

    symbols: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    at_once: int = 4096  #: strings scored or drawn in one step; affects the bytes of a corpus

    def __init__(self, name: str, vocabulary: Sequence[str], meta: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.vocabulary = tuple(vocabulary)
        self.meta: Mapping[str, Any] = dict(meta or {})

    # -- defined by subclasses -----------------------------------------------------------------------

    @abstractmethod
    def begin(self, n: int) -> Any:
        """Return the configuration of ``n`` strings before their first word: a `NamedTuple` of arrays of n rows."""

    @abstractmethod
    def law(self, state: Any) -> FloatArray:
        """Return (W, V+1) probabilities of each word and of the end, which is the last column."""

    @abstractmethod
    def read(self, state: Any, words: IntArray) -> Any:
        """Return the configuration after one further word of each string, (W,) numbers; each must be possible.

        It may reuse the arrays of ``state``, which is not used again.
        """

    @abstractmethod
    def length_pmf(self, high: int) -> FloatArray:
        """Return P(a string has m words), m = 0..``high``, (high+1,)."""

    @abstractmethod
    def given(self, lengths: LengthRange) -> Process:
        """Return the process of the strings in a range of lengths: P(. | low <= length <= high).

        Raises:
            InputError: there are no such strings.
        """

    @abstractmethod
    def expected_words(self) -> FloatArray:
        """Return the expected number of each word in a string, (V,); they sum to the mean length."""

    @property
    def mean_length(self) -> float:
        """Expected number of words."""
        return float(self.expected_words().sum())

    # -- overridden for speed ---------------------------------------------------------------------

    def probability(self, state: Any, words: IntArray) -> FloatArray:
        """Return (W,) probabilities of each word, or of the end for V; 0 for -1, an unknown word."""
        probabilities = self.law(state)[np.arange(len(words)), words]
        return np.where(words < 0, 0.0, probabilities)

    def draw(self, state: Any, uniform: FloatArray) -> IntArray:
        """Draw (W,) words, or V for the end, by inverting the distribution function at ``uniform`` (W,) in [0, 1)."""
        sums = np.cumsum(self.law(state), axis=1)
        place = (uniform * sums[:, -1])[:, None]
        return np.asarray((sums <= place).sum(axis=1), dtype=np.int64)

    def prepare(self, strings: Sequence[IntArray | Int32Array], *, full: bool) -> None:  # noqa: B027 - most need none
        """Precompute what some strings will need: next-word distributions if ``full``, or only word probabilities."""

    @staticmethod
    def take(state: Any, rows: IntArray | BoolArray) -> Any:
        """Return the configurations of some of the strings."""
        return type(state)(*(part[rows] for part in state))

    # -- properties ---------------------------------------------------------------------------------

    @cached_property
    def exact(self) -> ProcessInference:
        """Exact inference of the process."""
        return ProcessInference(self)

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """Number of each word."""
        return {word: i for i, word in enumerate(self.vocabulary)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of name and words, hexadecimal."""
        return hashlib.sha256(json.dumps(["process", self.name, self.vocabulary]).encode()).hexdigest()

    @property
    def identity(self) -> str:
        """Name of the process and 8 digits of the digest."""
        return f"{self.name} {self.digest[:8]}"

    @takes_sentence
    def encode(self, sentence: Sequence[str]) -> Int32Array:
        """Return word numbers, (n,); -1 for an unknown word."""
        return np.array([self.word_ids.get(word, -1) for word in sentence], dtype=np.int32)

    def decode(self, ids: ArrayLike) -> list[str]:
        """Return the words of some numbers, (n,); the way back from `encode`.

        Raises:
            InputError: there is no such word.
        """
        return decoded(self.vocabulary, ids)

    def sizes(self) -> dict[str, int]:
        """Return the number of words, for reports."""
        return {"words": len(self.vocabulary)}

    def collapse(self, vocabulary: Iterable[str], unknown: str = "<unk>") -> Self:
        """Return the process itself, if all its words are in the vocabulary: ``unknown`` then never occurs.

        Raises:
            InputError: a word is not. The words after an unknown word depend on which word it was, and only rules allow
                the sum over them.
        """
        missing = sorted(set(self.vocabulary) - set(vocabulary))
        if missing:
            raise InputError(
                f"{self.name} is a process, whose words cannot be merged into {unknown}: the model lacks"
                f" {', '.join(missing[:3])}{' and others' if len(missing) > 3 else ''}; use every word (min_count"
                " 1, a larger corpus), or choose a language or smaller settings with a grammar",
                code="missing-ability",
            )
        return self

    @takes_sentence
    def log_prob(self, sentence: Sequence[str]) -> float:
        """Return the log probability of one string, nats; -inf if it is not in the language."""
        return float(self.exact.string_log_probs([sentence])[0])

    @takes_sentence
    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """Return the distribution of the next word and the end after ``prefix``.

        Raises:
            InputError: no string (in the range) starts with it.
        """
        return self.exact.next_token(prefix, lengths)

    def next_words(self, sentences: Any, lengths: LengthRange | None = None) -> NextWords:
        """Return the distribution of the next word at every position of some strings, as one array.

        Arguments and errors are as in `truesource.grammar.inference.next_words.next_words`.
        """
        from truesource.grammar.inference.next_words import next_words

        return next_words(self, sentences, lengths)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the reference of a language of the gallery, as ``.npz``, see `truesource.grammar.truth.load_truth`.

        Raises:
            InputError: a file exists and ``force`` is false, the name does not end in .npz, or the gallery has no such
                process.
        """
        if not self.has_file:
            raise InputError(f"{self.name} is a custom process, which cannot be saved; keep its code")
        if Path(path).suffix != ".npz":
            raise InputError("a process has no rules to write as text; use a name that ends in .npz", path)
        refuse_existing(path, force)
        save_process(self.name, self.digest, path)

    @property
    def has_file(self) -> bool:
        """True if `save` can write it: a language of the gallery, not a custom process."""
        return "language" in self.meta

    def __repr__(self) -> str:
        return f"Process({self.name}, {len(self.vocabulary):,} words)"


class ProcessInference(ExactCausal):
    """Exact inference of a process, with methods of grammars, see `truesource.grammar.inference.causal.ExactCausal`.

    Probabilities of words come from the process; a length condition needs another process, `Process.given`, which is
    cached.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self._given: dict[LengthRange, Process] = {}
        self._masses: dict[LengthRange, float] = {}

    @property
    def total_mass(self) -> float:
        """Total probability of all strings, 1: all strings end."""
        return 1.0

    @property
    def mean_length(self) -> float:
        """Expected number of words."""
        return self.process.mean_length

    def given(self, lengths: LengthRange | None) -> Process:
        """Return the process under a length condition.

        Raises:
            InputError: no string has such a length.
        """
        if lengths is None:
            return self.process
        if lengths not in self._given:
            self._given[lengths] = self.process.given(lengths)
        return self._given[lengths]

    def expected_words(self, lengths: LengthRange | None = None) -> FloatArray:
        """Return the expected number of each word in a string, (V,)."""
        return self.given(lengths).expected_words()

    def length_pmf(self, high: int, lengths: LengthRange | None = None) -> FloatArray:
        """Return P(a string has m words), m = 0..``high``, (high+1,)."""
        return self.given(lengths).length_pmf(high)

    def range_mass(self, lengths: LengthRange) -> float:
        """Return P(the number of words is in a range).

        Raises:
            InputError: it is zero.
        """
        if lengths not in self._masses:
            mass = float(self.process.length_pmf(lengths.high)[lengths.low :].sum())
            if mass <= 0.0:
                raise no_length(self.process.name, lengths)
            self._masses[lengths] = mass
        return self._masses[lengths]

    def causal_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[FloatArray]:
        """Return ln P(word | words before it) of each string, (n+1,) nats, the end last; -inf once impossible."""
        process = self.given(lengths)
        encoded = [process.encode(sentence) for sentence in sentences]
        order = sorted(range(len(encoded)), key=lambda i: -len(encoded[i]))
        rows: list[FloatArray] = [np.empty(0)] * len(encoded)
        with meter("exact next-word probabilities of strings", len(encoded)) as progress:
            for at in range(0, len(order), process.at_once):
                some = order[at : at + process.at_once]
                process.prepare([encoded[i] for i in some], full=False)
                sizes = np.array([len(encoded[i]) for i in some], dtype=np.int64)
                words = np.full((len(some), int(sizes[0]) + 1), len(process.vocabulary), dtype=np.int64)
                for row, i in enumerate(some):
                    words[row, : sizes[row]] = encoded[i]
                table = _steps(process, words, sizes)
                for row, i in enumerate(some):
                    rows[i] = table[row, : sizes[row] + 1].copy()
                progress.advance(len(some))
        return rows

    @takes_sentence
    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """Return the distribution of the next word or the end after ``prefix``.

        Raises:
            InputError: no string (in that length range) starts with it.
        """
        process = self.given(lengths)
        state = process.begin(1)
        for at, word in enumerate(process.encode(prefix)):
            number = np.array([word], dtype=np.int64)
            if not process.probability(state, number)[0] > 0.0:
                raise InputError(
                    f"no string starts with {' '.join(prefix[: at + 1])!r}: {prefix[at]!r} is impossible there"
                )
            state = process.read(state, number)
        law = process.law(state)[0]
        return NextToken(process.vocabulary, law[:-1], float(law[-1]), np.empty(0))

    def causal_batches(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[Batch]:
        """Return strings in batches for `next_token_blocks`; equal strings share a column.

        Raises:
            InputError: a string has no words.
        """
        width = 16 * (len(self.process.vocabulary) + 1)
        return encoded_batches(self.process.encode, sentences, lambda n: width)

    def next_token_blocks(
        self, batch: Batch, lengths: LengthRange | None = None, *, first: int = 0, dtype: DTypeLike = np.float64
    ) -> Iterator[Distributions]:
        """Yield the next-word distributions of one batch, positions ``first`` to n."""
        process = self.given(lengths)
        n, width = batch.words.shape
        end = len(process.vocabulary)
        words = np.concatenate([batch.words.T, np.full((width, 1), end)], axis=1).astype(np.int64)
        process.prepare(list(batch.words.T), full=True)
        logs = _steps(process, words, np.full(width, n))
        whole = np.isfinite(logs).all(axis=1)
        state, alive = process.begin(width), np.arange(width)
        for j in range(n + 1):
            if j >= first:
                table = np.zeros((width, end + 1))
                table[alive] = process.law(state)
                possible = np.zeros(width, dtype=np.bool_)
                possible[alive] = True
                yield Distributions(
                    j, batch.members, words[:, j], table, possible, np.asarray(whole), logs[:, j], np.empty((width, 0))
                )
            if j < n:
                goes_on = np.isfinite(logs[alive, j])
                state, alive = process.take(state, goes_on), alive[goes_on]
                state = process.read(state, words[alive, j])


def _steps(process: Process, words: IntArray, sizes: IntArray) -> FloatArray:
    """Return ln P of every word and of the end, (W, n+1) nats, -inf once impossible and beyond the end.

    Args:
        process: the process.
        words: (W, n+1) numbers; V, the end, from the end of each string on; -1 for an unknown word.
        sizes: (W,) number of words of each.
    """
    table = np.full(words.shape, -np.inf)
    state, alive = process.begin(len(words)), np.arange(len(words))
    for j in range(words.shape[1]):
        probability = process.probability(state, words[alive, j])
        with np.errstate(divide="ignore"):
            table[alive, j] = np.log(probability)
        goes_on = (probability > 0.0) & (sizes[alive] > j)
        if not goes_on.any():
            break
        if not goes_on.all():
            state, alive = process.take(state, goes_on), alive[goes_on]
        state = process.read(state, words[alive, j])
    return table


@with_config(STRICT)
class ProcessHeader(TypedDict):
    """Content of the file of a process, as JSON."""

    reference: str
    digest: str


def save_process(reference: str, digest: str, path: str | Path) -> None:
    """Write the reference of a process of the gallery, atomically.

    Raises:
        InputError: the file cannot be written.
    """
    text = json.dumps({"reference": reference, "digest": digest}, ensure_ascii=False).encode()
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, process=np.frombuffer(text, dtype=np.uint8))


def read_process(path: str | Path) -> ProcessHeader | None:
    """Read a process file; return None if it is something else.

    Raises:
        InputError: a process file is damaged, or the path is a device.
    """
    refuse_device(path)
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.namelist() != ["process.npy"]:
                return None
    except (OSError, zipfile.BadZipFile):
        return None
    content = read_arrays(path, {"process": BYTES}, what=_WHAT, remedy=_REMEDY)["process"].tobytes()
    return decode_record(content, ProcessHeader, what=_WHAT, remedy=_REMEDY, path=path, embedded=True)


def no_length(name: str, lengths: LengthRange) -> InputError:
    """Return the error for a process without strings of a range of lengths."""
    return InputError(f"no string of {name} has a length in {lengths}; choose another range")


def needs_rules(name: str, path: str | Path | None = None) -> InputError:
    """Return the error for a process if the rules of a grammar are needed."""
    return InputError(
        f"{name} is a process: it has samples and exact next-word distributions, but no rules for parses, masked"
        " words, windows or variants; choose a language or smaller settings with a grammar",
        path,
        code="missing-ability",
    )
