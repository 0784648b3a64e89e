"""The ground truth of a text, a grammar or a process: its interface, and how it is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

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

    Further methods of either are abilities of truths, see `truesource.generator.abilities`.
    """

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """(V,) words of the language."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """Nonterminals; a process has none."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Treebank labels of the nonterminals."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """JSON values on how it was made."""

    @property
    def word_ids(self) -> dict[str, int]:
        """Number of each word."""

    @property
    def digest(self) -> str:
        """SHA-256 of everything that its probabilities depend on."""

    @property
    def identity(self) -> str:
        """Name in signatures."""

    @property
    def exact(self) -> ExactCausal:
        """Exact inference."""

    def encode(self, sentence: Sequence[str]) -> Int32Array:
        """Return word numbers, (n,); -1 for an unknown word."""

    def decode(self, ids: ArrayLike) -> list[str]:
        """Return the words of some numbers, (n,)."""

    def sizes(self) -> dict[str, int]:
        """Return counts for reports."""

    def collapse(self, vocabulary: Iterable[str], unknown: str = "<unk>") -> Self:
        """Return the language in which ``unknown`` replaces every word outside ``vocabulary``."""

    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """Return the distribution of the next word or the end after a prefix."""

    def next_words(self, sentences: Any, lengths: LengthRange | None = None) -> NextWords:
        """Return the distribution of the next word at every position of some sentences."""

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write it as ``.npz``."""


@runtime_checkable
class ExpectsWords(Protocol):
    """Exact inference that has expected numbers of words without the rules of a grammar."""

    def expected_words(self, lengths: LengthRange | None = None) -> FloatArray:
        """Return the expected number of each word in a sentence, (V,)."""


def load_truth(path: str | Path, **options: Any) -> Truth:
    """Read a grammar, or a process; arguments and errors are as in `truesource.grammar.pcfg.PCFG.load`.

    A language of the gallery is a grammar if its rules fit in memory, and otherwise a process, if it can be one.
    """
    reference = process_at(path)
    if reference is None:
        return PCFG.load(path, **options)
    result, written = process(reference), read_process(path)
    if written is not None and written["digest"] != result.digest:
        raise InputError(f"another version of truesource wrote {result.name} with other words; regenerate it", path)
    return result


def process_at(path: str | Path) -> str | None:
    """Return the reference of the process that `load_truth` would return; None for a grammar, or an error.

    Raises:
        InputError: a setting of a language is wrong, or the file of a process is damaged.
    """
    if is_reference(path):
        return str(path) if is_process(str(path)) else None
    written = read_process(path)
    return None if written is None else written["reference"]


def process(name: str, **settings: Any) -> Process:
    """Return a language of the gallery as a process, however few rules its grammar has.

    Args:
        name: name of the language, or a reference such as ``copy:vocabulary=10``.
        settings: its settings, which override settings in the reference.

    Raises:
        InputError: there is no such language or setting, a value is outside its range, or the language cannot be a
            process.

    >>> process("shuffle-dyck", k=64, depth=100)
    Process(shuffle-dyck:k=64,depth=100,p_open=0.5, 128 words)
    """
    return load_process(name, settings)


def word_counts(truth: Truth, lengths: LengthRange | None = None) -> FloatArray:
    """Return the expected number of each word in a sentence, (V,), given ``lengths`` if any.

    Raises:
        InputError: it is not finite, or no sentence has such a length.
    """
    if isinstance(truth, PCFG):
        return expected_counts(truth, lengths).words
    assert isinstance(truth.exact, ExpectsWords)
    return truth.exact.expected_words(lengths)
