"""White space as a tokeniser writes it, and the inventory of its pieces in the alphabet that it spells texts in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truesource.generator.piece_model import PieceInventory, PieceKind
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json

PROBE = "a b"
MARKER = "▁"  #: U+2581, which SentencePiece and the tokenisers trained here write for a space


class Entry(NamedTuple):
    """A token that can occur in a text."""

    spelling: str
    number: int  #: the model's
    score: float = 0.0  #: nats; read only if the tokeniser is a unigram model


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


def make_inventory(kind: PieceKind, entries: Iterable[Entry], marking: Marking, byte_tokens: int = 0) -> PieceInventory:
    """Return the pieces in order of their numbers; of equal spellings the first is kept, empty ones are excluded.

    ``byte_tokens`` is the number of byte tokens that the tokeniser falls back on; they are not among the entries.

    Raises:
        InputError: there are no pieces, or a unigram score is not finite.
    """
    first: dict[str, Entry] = {}
    for entry in entries:
        if entry.spelling:
            first.setdefault(entry.spelling, entry)
    if not first:
        raise InputError("the tokeniser has no pieces but special tokens")
    ordered = sorted(first.values(), key=lambda entry: entry.number)
    pieces = tuple(entry.spelling for entry in ordered)
    ids = np.array([entry.number for entry in ordered], dtype=np.int64)
    scores = np.array([entry.score for entry in ordered], dtype=np.float64) if kind == "unigram" else None
    if scores is not None and not np.isfinite(scores).all():
        wrong = pieces[int(np.flatnonzero(~np.isfinite(scores))[0])]
        raise InputError(f"the score of the piece {wrong!r} is not a finite number; the tokeniser is damaged")
    listed = None if scores is None else scores.tolist()
    digest = digest_json([kind, pieces, ids.tolist(), listed, marking.marker, marking.ends])
    return PieceInventory(kind, pieces, ids, scores, marking.marker, marking.ends, digest, byte_tokens)


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
