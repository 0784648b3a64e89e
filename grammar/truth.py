"""The truth about a text: a grammar or a process, what both can be asked, and how they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from numpy.typing import ArrayLike

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.causal import ExactCausal
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.languages import is_process, is_reference, load_process
from truesource.grammar.pcfg import PCFG
from truesource.grammar.process import Process, read_process
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.grammar.inference.next_token import NextToken
    from truesource.grammar.inference.next_words import NextWords


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

    def decode(self, ids: ArrayLike) -> list[str]:
        """The words of some numbers, (n,)."""

    def sizes(self) -> dict[str, int]:
        """Counts for reports."""

    def collapse(self, vocabulary: Iterable[str], unknown: str = "<unk>") -> Self:
        """The language in which every word outside ``vocabulary`` reads ``unknown``."""

    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """The distribution of what follows a prefix."""

    def next_words(self, sentences: Any, lengths: LengthRange | None = None) -> NextWords:
        """The distribution of the next word at every position of some sentences."""

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write it as ``.npz``."""


def load_truth(path: str | Path, **options: Any) -> Truth:
    """Read a grammar, or a process; arguments and errors are those of `truesource.grammar.pcfg.PCFG.load`.

    A language of the gallery is a grammar where its rules fit in memory, and a process otherwise, if it can be one.
    """
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
    return load_process(name, settings)


def word_counts(truth: Truth, lengths: LengthRange | None = None) -> FloatArray:
    """Expected number of each word in a sentence, (V,), given ``lengths`` if any.

    Raises:
        InputError: it is not finite, or no sentence has such a length.
    """
    if isinstance(truth, Process):
        return truth.exact.given(lengths).expected_words()
    assert isinstance(truth, PCFG)
    return expected_counts(truth, lengths).words
