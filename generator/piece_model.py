"""The interface of models of pieces: their tokenisers, scores piece by piece, and sums over all segmentations.

The protocols speak of plain strings and arrays, so an evaluator needs no tokeniser library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from truesource.grammar.support.arrays import FloatArray, IntArray

PieceKind = Literal["unigram", "bpe", "wordpiece"]


@dataclass(frozen=True)
class PieceInventory:
    """The pieces that can stand in a text, spelt in one alphabet in which a text is the plain joining of its pieces.

    In that alphabet white space is ``marker``, a single character, whatever the tokeniser itself writes: a piece of
    WordPiece that begins a word is spelt with it, one with ``##`` without it. Special tokens are not among the pieces.
    """

    kind: PieceKind
    pieces: tuple[str, ...]  #: (P,) spellings, all different, none empty
    ids: IntArray  #: (P,) the model's number of each
    scores: FloatArray | None  #: (P,) log probabilities of a unigram model, nats; None: the tokeniser has none
    marker: str  #: one character; stands where a word begins, or where it ends if ``marker_ends``
    marker_ends: bool = False
    digest: str = ""  #: of all of the above, for signatures
    byte_tokens: int = 0  #: tokens of single bytes that the tokeniser falls back on, which no segmentation contains

    def __post_init__(self) -> None:
        if self.ids.shape != (len(self.pieces),) or (self.scores is not None and self.scores.shape != self.ids.shape):
            raise ValueError("ids and scores need one entry for each piece")

    @property
    def part(self) -> str:
        """Part of signatures: the pieces, and ``no-bytes`` if the model could also spell texts with byte tokens.

        Sums over segmentations are then of the lattice of pieces: a lower bound of P(text) over all sequences that
        decode to it.
        """
        return f"{self.digest[:8]}{'/no-bytes' if self.byte_tokens else ''}"


@dataclass(frozen=True)
class PieceText:
    """A text as a tokeniser reads it."""

    original: str  #: as it was given; words, characters and bytes are counted on it
    spelling: str  #: normalised, in the alphabet of the inventory
    canonical: (
        IntArray  #: canonical tokenisation, as indices into the inventory's pieces; empty where a part is unreadable
    )
    altered: bool  #: whether the tokeniser changes the text (more than writing its marker)
    unreadable: tuple[str, ...]  #: characters, or stretches, that no piece spells; such a text has no probability

    @property
    def n_words(self) -> int:
        """Words between white space, of the original."""
        return len(self.original.split())


class PieceTokenizer(Protocol):
    """A tokeniser as a sum over segmentations sees it."""

    @property
    def inventory(self) -> PieceInventory:
        """Pieces of the tokeniser."""

    def read(self, text: str) -> PieceText:
        """Normalise a text and segment it.

        Raises:
            InputError: the text is empty (nothing but white space).
        """


class IncrementalScorer(Protocol):
    """A causal model that reads several texts at once, piece by piece, and remembers each.

    A context is a number that stands for ``<bos>`` and the pieces read since. Where the model's memory is finite
    (n-grams), equal memories are one context; a network has one for each text, however often it is reached.
    """

    @property
    def steps(self) -> int:
        """Token-steps so far: tokens that the model was run at, ``<bos>`` included; n-grams count look-ups.

        A network reads a token when something is asked that follows it; one that is given up before costs nothing.
        Padding that the network is run at counts too.
        """

    def begin(self) -> int:
        """Return the context of the empty text."""

    def extend(self, contexts: IntArray, tokens: IntArray) -> IntArray:
        """Return (R,) contexts each continued by one token (the model's numbers); contexts may repeat.

        Raises:
            InputError: a text becomes longer than the model's positions.
        """

    def log_prob(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """(R,) log probability of each token after its context, nats, float64; costs no steps but those put off."""

    def log_any(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """Return (R,) log probability that one of some tokens follows each context, nats; as `log_prob` costs.

        Args:
            contexts: (R,).
            tokens: (K,) different ones, at least one, the same after every context.
        """

    def log_end(self, contexts: IntArray) -> FloatArray:
        """Return (R,) log probability that the text ends after each context, nats; 0 for a model without an end."""

    def keep(self, contexts: IntArray) -> None:
        """Forget all contexts but these."""


@dataclass(frozen=True)
class PathSums:
    """Result of a pass over a lattice: its states, which are a position and a context, in order of position."""

    context: IntArray  #: (R,)
    log_p: FloatArray  #: (R,) log of the summed probability of the paths that lead there, nats
    first: IntArray  #: (n+2,) states of position i are first[i] to first[i+1] - 1
    steps: int  #: token-steps of the pass


@runtime_checkable
class LatticeScorer(Protocol):
    """A scorer of finite memory that passes over a whole lattice in one call."""

    def sum_paths(self, source: IntArray, first: IntArray, tokens: IntArray, most: int) -> PathSums:
        """Return the sum over all paths of a lattice from the empty text on.

        Args:
            source: (A,) position that each arc comes from; arcs are sorted by their end.
            first: (n+2,) arcs that end at position i are ``first[i]`` to ``first[i+1] - 1``.
            tokens: (A,) the model's number of the piece of each arc.
            most: states after which the pass stops; the later positions then have none.
        """


class TokenisedModel(Protocol):
    """A causal model of pieces, and its tokeniser. P of a segmentation includes the end after its last piece."""

    @property
    def name(self) -> str:
        """Name of the model in tables."""

    @property
    def longest(self) -> int | None:
        """The most tokens the model reads, the one before a text included (the end is not read); None: any number."""

    @property
    def around(self) -> tuple[int, int]:
        """Number of tokens stand before a text and after it: 1 or 0 each."""

    @property
    def chosen_before(self) -> str | None:
        """The token before a text, for signatures, where the user chose it; None: the model's own."""

    @property
    def pieces(self) -> PieceTokenizer:
        """Tokeniser of the model.

        Raises:
            InputError: its texts are no joinings of pieces (the message says why).
        """

    def log_probs(self, rows: Sequence[IntArray]) -> FloatArray:
        """Return (R,) log probability of each row of tokens (the model's numbers) and the end after it, nats, float64.

        Raises:
            InputError: a row is longer than the model's positions.
        """

    def token_steps(self, rows: Sequence[IntArray]) -> int:
        """Return token-steps of `log_probs` of these rows: tokens that the model is run at.

        Those before the texts count, and so does padding; n-grams count look-ups.
        """

    def incremental_scorer(self) -> IncrementalScorer:
        """Begin to read texts piece by piece."""
