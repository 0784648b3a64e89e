"""Processes: languages without rules, whose next word has an exact law in O(1); and what every truth can be asked.

A process keeps a configuration that is a function of the words so far, and the configuration gives the law of the next
word. So the probability of each word given those before it is exact whatever the place of the language in the Chomsky
hierarchy. What sums over words that come later, such as the probability of a masked word or of a parse, needs the rules
of a `truesource.grammar.pcfg.PCFG`.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import DTypeLike

    from truesource.grammar.inference.batch import Batch
    from truesource.grammar.inference.distributions import Distributions
    from truesource.grammar.inference.exact import NextToken
    from truesource.grammar.inference.process import ProcessInference


class ExactCausal(Protocol):
    """What is exact about any truth; conditioned on ``lengths`` where a method takes it."""

    @property
    def mean_length(self) -> float:
        """Expected number of words of a sentence."""

    @property
    def total_mass(self) -> float:
        """Probability of all sentences together."""

    def causal_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[FloatArray]:
        """Ln P(token | its left context) of each sentence, (n+1,) nats with the end; -inf from an impossible one on."""

    def string_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> FloatArray:
        """Ln P(sentence), (N,) nats."""

    def causal_batches(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[Batch]:
        """Sentences in batches for `next_token_blocks`; those that are equal share a column."""

    def next_token_blocks(
        self, batch: Batch, lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> Iterator[Distributions]:
        """The next-token distributions of one batch, positions 0 to n."""

    def length_pmf(self, high: int, lengths: LengthRange | None = None) -> FloatArray:
        """P(a sentence has m words), m = 0..``high``, (high+1,)."""

    def range_mass(self, lengths: LengthRange) -> float:
        """P(the number of words is in a range)."""

    def prefix_log_prob(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> float:
        """Ln P(a sentence starts so), nats."""

    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """The distribution of what follows a prefix."""


class Truth(Protocol):
    """The true distribution of a language: a `truesource.grammar.pcfg.PCFG`, or a `Process`.

    What one has beyond this is an ability of truths, see `truesource.generator.abilities`.
    """

    @property
    def terminals(self) -> tuple[str, ...]:
        """(V,) the words."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """The nonterminals; a process has none."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Treebank labels of the nonterminals."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """JSON values that say how it was made."""

    @property
    def word_ids(self) -> dict[str, int]:
        """Number of each word."""

    @property
    def digest(self) -> str:
        """SHA-256 of all that its probabilities depend on."""

    @property
    def identity(self) -> str:
        """Its name in signatures."""

    @property
    def exact(self) -> ExactCausal:
        """Everything exact about it."""

    def encode(self, sentence: Sequence[str]) -> Int32Array:
        """Word numbers, (n,); -1 for a word that it does not have."""

    def word_counts(self, lengths: LengthRange | None = None) -> FloatArray:
        """Expected number of each word in a sentence, (V,)."""

    def sizes(self) -> dict[str, int]:
        """Counts for reports."""

    def collapse(self, vocabulary: Iterable[str], unknown: str = "<unk>") -> Self:
        """The language in which every word outside ``vocabulary`` reads ``unknown``."""

    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """The distribution of what follows a prefix."""

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write it as ``.npz``."""


class Process(ABC):
    """A language whose next word has a law that follows from the words so far, one step a word.

    All methods work on W strings at once, which have read equally many words. A subclass says how it begins, what the
    law is, what a word changes, and what is known of lengths and words in expectation.

    Args:
        name: in signatures; of a language of the gallery its reference, such as ``shuffle-dyck:k=64,depth=100``.
        terminals: (V,) the words.
        meta: JSON values that say how it was made.
    """

    symbols: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def __init__(self, name: str, terminals: Sequence[str], meta: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.terminals = tuple(terminals)
        self.meta: Mapping[str, Any] = dict(meta or {})

    # -- what a subclass says -----------------------------------------------------------------------

    @abstractmethod
    def begin(self, n: int) -> Any:
        """The configuration of ``n`` strings before their first word: a `NamedTuple` of arrays of n rows."""

    @abstractmethod
    def law(self, state: Any) -> FloatArray:
        """(W, V+1) probabilities of each word and of the end, which is the last column."""

    @abstractmethod
    def read(self, state: Any, words: IntArray) -> Any:
        """The configuration after one word more of each string, (W,) numbers; each is possible there.

        It may take over the arrays of ``state``, which nobody reads again.
        """

    @abstractmethod
    def length_pmf(self, high: int) -> FloatArray:
        """P(a string has m words), m = 0..``high``, (high+1,)."""

    @abstractmethod
    def given(self, lengths: LengthRange) -> Process:
        """The process of the strings of these lengths: P(. | low <= length <= high).

        Raises:
            InputError: there are none.
        """

    @abstractmethod
    def expected_words(self) -> FloatArray:
        """Expected number of each word in a string, (V,); they sum to the mean length."""

    # -- what may be had faster ---------------------------------------------------------------------

    def probability(self, state: Any, words: IntArray) -> FloatArray:
        """(W,) probability of each word, or of the end where it is V; 0 of -1, which is no word of the language."""
        found = self.law(state)[np.arange(len(words)), words]
        return np.where(words < 0, 0.0, found)

    def draw(self, state: Any, uniform: FloatArray) -> IntArray:
        """(W,) words, or V for the end, by the inverse of the distribution function at ``uniform`` (W,) in [0, 1)."""
        sums = np.cumsum(self.law(state), axis=1)
        place = (uniform * sums[:, -1])[:, None]
        return np.asarray((sums <= place).sum(axis=1), dtype=np.int64)

    @staticmethod
    def take(state: Any, kept: IntArray | BoolArray) -> Any:
        """The configurations of some of the strings."""
        return type(state)(*(part[kept] for part in state))

    # -- what it is ---------------------------------------------------------------------------------

    @cached_property
    def exact(self) -> ProcessInference:
        """Everything exact about it."""
        from truesource.grammar.inference.process import ProcessInference

        return ProcessInference(self)

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """Number of each word."""
        return {word: i for i, word in enumerate(self.terminals)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of name and words, hexadecimal."""
        return hashlib.sha256(json.dumps(["process", self.name, self.terminals]).encode()).hexdigest()

    @property
    def identity(self) -> str:
        """Its name and 8 digits of the digest."""
        return f"{self.name} {self.digest[:8]}"

    def encode(self, sentence: Sequence[str]) -> Int32Array:
        """Word numbers, (n,); -1 for a word that it does not have."""
        return np.array([self.word_ids.get(word, -1) for word in sentence], dtype=np.int32)

    def word_counts(self, lengths: LengthRange | None = None) -> FloatArray:
        """Expected number of each word in a string, (V,), given ``lengths`` if any."""
        return self.exact.given(lengths).expected_words()

    def sizes(self) -> dict[str, int]:
        """Number of words, for reports."""
        return {"words": len(self.terminals)}

    def collapse(self, vocabulary: Iterable[str], unknown: str = "<unk>") -> Self:
        """The process itself, if all its words are in the vocabulary: ``unknown`` then never occurs.

        Raises:
            InputError: a word is not. What follows an unknown word depends on which it was, and only rules could sum
                over them.
        """
        missing = sorted(set(self.terminals) - set(vocabulary))
        if missing:
            raise InputError(
                f"{self.name} is a process, whose words cannot be merged into {unknown}: the model lacks"
                f" {', '.join(missing[:3])}{' and others' if len(missing) > 3 else ''}; give it every word (min_count"
                " 1, a larger corpus), or choose settings small enough for a grammar",
                code="missing-ability",
            )
        return self

    def log_prob(self, sentence: Sequence[str]) -> float:
        """Log probability of one string, nats; -inf when it is not in the language."""
        return float(self.exact.string_log_probs([sentence])[0])

    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """The distribution over the next word, and of stopping, after ``prefix``.

        Raises:
            InputError: no string (of the range) starts so.
        """
        return self.exact.next_token(prefix, lengths)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the reference of a language of the gallery, as ``.npz``; `load_truth` reads it.

        Raises:
            InputError: a file exists and ``force`` is false, the name does not end in .npz, or the gallery has no such
                process.
        """
        from truesource.grammar.formats.npz import save_process
        from truesource.grammar.support.files import refuse_existing

        if not self.has_file:
            raise InputError(f"{self.name} is a process of one's own, which has no file; keep the code that makes it")
        if Path(path).suffix != ".npz":
            raise InputError("a process has no rules to write as text; choose a name that ends in .npz", path)
        refuse_existing(path, force)
        save_process(self.name, self.digest, path)

    @property
    def has_file(self) -> bool:
        """Say whether `save` can write it: a language of the gallery, not a process of one's own."""
        return "language" in self.meta

    def __repr__(self) -> str:
        return f"Process({self.name}, {len(self.terminals):,} words)"


def load_truth(path: str | Path, **options: Any) -> Truth:
    """Read a grammar, or a process; arguments and errors are those of `truesource.grammar.pcfg.PCFG.load`.

    A language of the gallery is a grammar where its rules fit in memory, and a process otherwise, if it can be one.
    """
    from truesource.grammar.formats.npz import read_process
    from truesource.grammar.pcfg import PCFG

    reference = process_at(path)
    if reference is None:
        return PCFG.load(path, **options)
    made, written = process(reference), read_process(path)
    if written is not None and written["digest"] != made.digest:
        raise InputError(f"another version of truesource wrote {made.name} with other words; make the file again", path)
    return made


def process_at(path: str | Path) -> str | None:
    """The reference of the process that `load_truth` would give; None where that is a grammar, or an error.

    Raises:
        InputError: a setting of a language is wrong, or the file of a process is damaged.
    """
    from truesource.grammar.formats.npz import read_process
    from truesource.grammar.languages import is_process, is_reference

    if is_reference(path):
        return str(path) if is_process(str(path)) else None
    written = read_process(path)
    return None if written is None else written["reference"]


def process(name: str, **settings: Any) -> Process:
    """A language of the gallery as a process, however few rules its grammar would have.

    Args:
        name: of the language, or a reference such as ``copy:vocabulary=10``.
        settings: its settings, before those of the reference.

    Raises:
        InputError: there is no such language or setting, a value is outside its range, or the language is none that
            can be one.

    >>> process("shuffle-dyck", k=64, depth=100)
    Process(shuffle-dyck:k=64,depth=100,p_open=0.5, 128 words)
    """
    from truesource.grammar.languages import load_process

    return load_process(name, settings)
