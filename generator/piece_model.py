"""The interface of models of pieces: their tokenisers, scores piece by piece, and sums over all segmentations.

The protocols use plain strings and arrays, so an evaluator needs no tokeniser library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray

PieceKind = Literal["unigram", "bpe", "wordpiece"]
SPACE = 0x20  #: the byte of white space
PENALTY = 10.0  #: score of the rarest piece less the score of a character in bytes, nats


@dataclass(frozen=True)
class PieceInventory:
    """The pieces of a text, spelled in one alphabet in which a text is the concatenation of its pieces.

    In that alphabet white space is ``marker``, a single character, whatever the tokeniser itself writes: a piece of
    WordPiece that begins a word is spelled with it, one with ``##`` without it. Special tokens are not among the
    pieces.

    If some tokens are single bytes (byte fallback, such as ``<0x41>``), the alphabet is the bytes of UTF-8, which are
    spelled as the characters of the same numbers; the marker is the byte of white space. So a letter of several bytes
    is several positions, between which only byte tokens begin and end, and several tokens may have one spelling, such
    as ``A`` and ``<0x41>``.
    """

    kind: PieceKind
    pieces: tuple[str, ...]  #: (P,) spellings, none empty; equal spellings are different tokens
    ids: IntArray  #: (P,) the model's number of each piece
    scores: FloatArray | None  #: (P,) log probabilities of a unigram model, nats; None: the tokeniser has none
    marker: str  #: one character at the start of words, or at their end if ``marker_ends``
    marker_ends: bool = False
    digest: str = ""  #: digest of all of the above, for signatures
    byte_tokens: BoolArray | None = None  #: (P,) True for tokens of single bytes; None: there are none

    def __post_init__(self) -> None:
        if self.ids.shape != (len(self.pieces),) or (self.scores is not None and self.scores.shape != self.ids.shape):
            raise ValueError("ids and scores need one entry for each piece")

    @property
    def part(self) -> str:
        """Part of signatures: the pieces."""
        return self.digest[:8]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """(P,) the pieces in readable characters; byte tokens as in ``<0x41>``."""
        if self.byte_tokens is None:
            return self.pieces
        pairs = zip(self.pieces, self.byte_tokens.tolist(), strict=True)
        return tuple(self._byte_name(piece) if is_byte else self.readable(piece) for piece, is_byte in pairs)

    def _byte_name(self, symbol: str) -> str:
        return f"<0x{SPACE if symbol == self.marker else ord(symbol):02X}>"

    def readable(self, spelling: str) -> str:
        """Return a spelling in characters, with the marker; bytes that are not UTF-8 become U+FFFD."""
        if self.byte_tokens is None:
            return spelling
        parts = spelling.split(self.marker)
        return self.marker.join(part.encode("latin-1").decode(errors="replace") for part in parts)


def byte_scores(symbols: Sequence[str], lowest: float) -> FloatArray:
    """Return scores of byte tokens for a lattice of unigram scores, nats.

    A character in bytes scores `PENALTY` below the rarest piece, however many bytes it has: the first byte has this
    score, the others 0. This is the score of unknown characters in the lattices of SentencePiece and `tokenizers`,
    which spell these in bytes afterwards; so the best path is the tokeniser's own segmentation.

    Args:
        symbols: byte tokens, in the alphabet of their inventory.
        lowest: minimum score of the other pieces.
    """
    inner = np.array(["\x80" <= symbol < "\xc0" for symbol in symbols], dtype=bool)
    return np.where(inner, 0.0, lowest - PENALTY)


@dataclass(frozen=True)
class PieceText:
    """A text as read by a tokeniser."""

    original: str  #: original text, for counts of words, characters and bytes
    spelling: str  #: normalised, in the alphabet of the inventory
    canonical: (
        IntArray  #: canonical tokenisation, as indices into the inventory's pieces; empty if a part is unreadable
    )
    altered: bool  #: whether the tokeniser changes the text (beyond its marker)
    unreadable: tuple[str, ...]  #: characters, or runs, that no piece spells; such a text has no probability

    @property
    def n_words(self) -> int:
        """Number of words between white space in the original."""
        return len(self.original.split())


class PieceTokenizer(Protocol):
    """The tokeniser interface for sums over segmentations."""

    @property
    def inventory(self) -> PieceInventory:
        """Pieces of the tokeniser."""

    def read(self, text: str) -> PieceText:
        """Normalise a text and segment it.

        Raises:
            InputError: the text is empty (nothing but white space).
        """


class IncrementalScorer(Protocol):
    """A causal model that reads several texts at once, piece by piece, and caches each.

    A context is a number for ``<bos>`` and the pieces read since. If the model's memory is finite (n-grams), equal
    memories are one context; a network has one for each text, however often it is reached.
    """

    @property
    def steps(self) -> int:
        """Token-steps so far: tokens at which the model was run, ``<bos>`` included; n-grams count look-ups.

        A network reads a token only when a continuation is scored; one that is dropped before costs nothing. Padding in
        runs of the network counts, too.
        """

    def begin(self) -> int:
        """Return the context of the empty text."""

    def extend(self, contexts: IntArray, tokens: IntArray) -> IntArray:
        """Return (R,) contexts each extended by one token (the model's numbers); contexts may repeat.

        Raises:
            InputError: a text exceeds the model's positions.
        """

    def log_prob(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """Return (R,) log probabilities of each token after its context, nats, float64; costs only deferred steps."""

    def log_any(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """Return (R,) log probabilities that one of some tokens follows each context, nats; costs as `log_prob`.

        Args:
            contexts: (R,).
            tokens: (K,) distinct tokens, at least one, the same after every context.
        """

    def log_end(self, contexts: IntArray) -> FloatArray:
        """Return (R,) log probabilities that the text ends after each context, nats; 0 for a model without an end."""

    def keep(self, contexts: IntArray) -> None:
        """Drop all contexts except these."""


@dataclass(frozen=True)
class PathSums:
    """Result of a pass over a lattice: its states, a position and a context each, in order of position."""

    context: IntArray  #: (R,)
    log_p: FloatArray  #: (R,) log of the summed probability of the paths to the state, nats
    first: IntArray  #: (n+2,) states of position i are first[i] to first[i+1] - 1
    steps: int  #: token-steps of the pass


@runtime_checkable
class LatticeScorer(Protocol):
    """A scorer of finite memory that passes over a whole lattice in one call."""

    def sum_paths(self, source: IntArray, first: IntArray, tokens: IntArray, most: int) -> PathSums:
        """Return the sum over all paths of a lattice from the empty text on.

        Args:
            source: (A,) start position of each arc; arcs are sorted by their end.
            first: (n+2,) arcs that end at position i are ``first[i]`` to ``first[i+1] - 1``.
            tokens: (A,) the model's number of the piece of each arc.
            most: number of states after which the pass stops; later positions then have none.
        """


class TokenisedModel(Protocol):
    """A causal model of pieces, and its tokeniser. P of a segmentation includes the end after its last piece."""

    @property
    def name(self) -> str:
        """Name of the model in tables."""

    @property
    def longest(self) -> int | None:
        """Most tokens that the model reads, including the one before a text (the end is not read); None: any number."""

    @property
    def around(self) -> tuple[int, int]:
        """Numbers of tokens before a text and after it: 1 or 0 each."""

    @property
    def chosen_before(self) -> str | None:
        """Token before a text, for signatures, if the user chose it; None: the model's own."""

    @property
    def pieces(self) -> PieceTokenizer:
        """Tokeniser of the model.

        Raises:
            InputError: its texts are no concatenations of pieces (the message says why).
        """

    def log_probs(self, rows: Sequence[IntArray]) -> FloatArray:
        """Return (R,) log probabilities of each row of tokens (the model's numbers) and the end, nats, float64.

        Raises:
            InputError: a row exceeds the model's positions.
        """

    def token_steps(self, rows: Sequence[IntArray]) -> int:
        """Return token-steps of `log_probs` of these rows: tokens at which the model is run.

        Tokens before the texts count, and so does padding; n-grams count look-ups.
        """

    def incremental_scorer(self) -> IncrementalScorer:
        """Start to read texts piece by piece."""
