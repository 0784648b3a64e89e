"""White space as a tokeniser writes it, and the inventory of its pieces in the alphabet that it spells texts in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from truesource.generator.piece_model import SPACE, PieceInventory, PieceKind, byte_scores
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json

PROBE = "a b"
MARKER = "▁"  #: U+2581, which SentencePiece and the tokenisers trained here write for a space


class Entry(NamedTuple):
    """A token that can occur in a text."""

    spelling: str
    number: int  #: the model's
    score: float = 0.0  #: nats; read only if the tokeniser is a unigram model
    is_byte: bool = False  #: True for a token of one byte; then the score is not read

    @classmethod
    def of_byte(cls, byte: int, number: int, marking: Marking) -> Self:
        """Return the entry of a token of one byte."""
        return cls(marking.marker if byte == SPACE else chr(byte), number, is_byte=True)


@dataclass(frozen=True)
class Marking:
    """The character that marks a space, and the places where a tokeniser adds one."""

    marker: str
    leads: bool = False  #: before a text
    ends: bool = False  #: after each word, the last one too, in place of before it

    @classmethod
    def of(cls, probe: str) -> Marking:
        """Read the marking off the spelling of `PROBE`.

        Raises:
            InputError: white space leaves no trace.
        """
        if len(probe) == 3:
            return cls(probe[1])
        if len(probe) == 4 and probe[0] == probe[2]:
            return cls(probe[0], leads=True)
        if len(probe) == 4 and probe[1] == probe[3]:
            return cls(probe[1], ends=True)
        raise InputError(
            f"the tokeniser's texts are not concatenations of its pieces: it reads {PROBE!r} as {probe!r}, which does"
            " not show the white space"
        )

    def bare(self, spelling: str) -> str:
        """Return a spelling without the marker that the tokeniser added."""
        if self.leads:
            return spelling.removeprefix(self.marker)
        return spelling.removesuffix(self.marker) if self.ends else spelling

    def spelled(self, spelling: str, inventory: PieceInventory) -> str:
        """Return a spelling in the alphabet of an inventory."""
        return spelling if inventory.byte_tokens is None else self.in_bytes(spelling)

    def in_bytes(self, spelling: str) -> str:
        """Convert a spelling to the alphabet of bytes, see `PieceInventory`."""
        parts = spelling.split(self.marker)
        return self.marker.join(part.encode(errors="surrogatepass").decode("latin-1") for part in parts)


def make_inventory(kind: PieceKind, entries: Iterable[Entry], marking: Marking) -> PieceInventory:
    """Return the pieces in order of their numbers, without empty ones; in bytes if there are byte tokens.

    Raises:
        InputError: there are no pieces, or a unigram score is not finite.
    """
    first: dict[tuple[str, int], Entry] = {}  # a damaged vocabulary may list a piece twice
    for entry in entries:
        if entry.spelling:
            first.setdefault((entry.spelling, entry.number), entry)
    ordered = sorted(first.values(), key=lambda entry: entry.number)
    if not ordered:
        raise InputError("the tokeniser has no pieces but special tokens")
    is_byte = np.array([entry.is_byte for entry in ordered], dtype=np.bool_)
    pieces = tuple(entry.spelling for entry in ordered)
    if is_byte.any():
        pieces = tuple(entry.spelling if entry.is_byte else marking.in_bytes(entry.spelling) for entry in ordered)
    ids = np.array([entry.number for entry in ordered], dtype=np.int64)
    scores = _scores(ordered, is_byte) if kind == "unigram" else None
    listed = None if scores is None else scores.tolist()
    content = [kind, pieces, ids.tolist(), listed, marking.marker, marking.ends]
    if not is_byte.any():
        return PieceInventory(kind, pieces, ids, scores, marking.marker, marking.ends, digest_json(content))
    digest = digest_json([*content, is_byte.tolist()])
    return PieceInventory(kind, pieces, ids, scores, marking.marker, marking.ends, digest, is_byte)


def _scores(entries: Sequence[Entry], is_byte: BoolArray) -> FloatArray:
    """Return the scores of the pieces of a unigram model; for errors see `make_inventory`."""
    scores = np.array([0.0 if entry.is_byte else entry.score for entry in entries], dtype=np.float64)
    if not np.isfinite(scores).all():
        wrong = entries[int(np.flatnonzero(~np.isfinite(scores))[0])].spelling
        raise InputError(f"the score of the piece {wrong!r} is not a finite number; the tokeniser is damaged")
    symbols = [entry.spelling for entry in entries if entry.is_byte]
    scores[is_byte] = byte_scores(symbols, float(scores[~is_byte].min(initial=0.0)))
    return scores


def added_score(spelling: str) -> float:
    """Return the score of a piece that a user added to a unigram model: 0.1 (n-1) for n characters, nats.

    The lattice of SentencePiece 0.2.2 uses this score, so that the piece wins (0.2.1 used -0.1), whatever ``get_score``
    says.
    """
    return 0.1 * (len(spelling) - 1)


def check_text(text: str) -> None:
    """Refuse a text of white space.

    Raises:
        InputError: there is nothing else in it.
    """
    if not text.strip():
        raise InputError("the text is empty; there is nothing to cut into pieces")


def no_joining(spelling: str, joined: str) -> InputError:
    """Return the error of a tokeniser whose cut spells another text than it read."""
    at = next(
        (i for i, (a, b) in enumerate(zip(spelling, joined, strict=False)) if a != b), min(len(spelling), len(joined))
    )
    near = slice(max(0, at - 10), at + 20)
    return InputError(
        f"the tokeniser's texts are not concatenations of its pieces: it reads {spelling[near]!r} but its pieces spell"
        f" {joined[near]!r}"
    )
