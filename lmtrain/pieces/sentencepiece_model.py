"""What a SentencePiece ``.model`` file says of its pieces that the Python package does not: their types, and its own.

The file is a protocol buffer (``sentencepiece_model.proto``). Only the few fields named here are read, so that no
compiler of protocol buffers is needed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

_PIECES, _TRAINER = 1, 2  # of the file
_SPELLING, _SCORE, _TYPE = 1, 2, 3  # of a piece
_ALGORITHM = 3  # of the trainer's settings
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types


class PieceType(IntEnum):
    """Of a piece."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Algorithm(IntEnum):
    """Of a model."""

    UNIGRAM = 1
    BPE = 2
    WORD = 3
    CHAR = 4


@dataclass(frozen=True)
class SentencePieceModel:
    """Pieces in the order of their numbers."""

    algorithm: Algorithm
    pieces: list[tuple[str, float, PieceType]]  #: spelling, score (nats in a unigram model), type

    @classmethod
    def parse(cls, raw: bytes) -> SentencePieceModel:
        """Read the bytes of a file.

        Raises:
            ValueError: they are no such model.
        """
        algorithm, pieces = Algorithm.UNIGRAM, []
        try:
            for field, value in _fields(raw):
                if field == _PIECES and isinstance(value, bytes):
                    pieces.append(_piece(value))
                elif field == _TRAINER and isinstance(value, bytes):
                    for name, setting in _fields(value):
                        if name == _ALGORITHM and isinstance(setting, int):
                            algorithm = Algorithm(setting)
        except (IndexError, struct.error, TypeError) as error:
            raise ValueError("not a SentencePiece model") from error
        if not pieces:
            raise ValueError("a SentencePiece model has pieces")
        return cls(algorithm, pieces)


def _piece(raw: bytes) -> tuple[str, float, PieceType]:
    spelling, score, kind = "", 0.0, PieceType.NORMAL
    for field, value in _fields(raw):
        if field == _SPELLING and isinstance(value, bytes):
            spelling = value.decode()
        elif field == _SCORE and isinstance(value, bytes):
            (score,) = struct.unpack("<f", value)
        elif field == _TYPE and isinstance(value, int):
            kind = PieceType(value)
    return spelling, score, kind


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a message."""
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        wire = key & 7
        if wire == _VARINT:
            value, at = _varint(raw, at)
            yield key >> 3, value
            continue
        if wire == _BYTES:
            size, at = _varint(raw, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError("not a protocol buffer")
        if at + size > len(raw):
            raise ValueError("the file is cut")
        yield key >> 3, raw[at : at + size]
        at += size


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
