"""SentencePiece models as `PieceTokenizer` objects.

Their ``.model`` file is a protocol buffer (``sentencepiece_model.proto``). It has the types of the pieces and of the
model, which the Python package does not give. Only the few fields named here are read, so that no compiler of protocol
buffers is needed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from truesource.generator.piece_model import PieceInventory, PieceText
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError, extras_for
from truesource.grammar.support.files import refuse_device
from truesource.lmtrain.pieces.marking import PROBE, Entry, Marking, added_score, check_text, make_inventory, no_joining

_PIECES, _TRAINER = 1, 2  # of the file
_SPELLING, _SCORE, _TYPE = 1, 2, 3  # of a piece
_ALGORITHM = 3  # of the trainer's settings
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types


class PieceType(IntEnum):
    """Type of a piece."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Algorithm(IntEnum):
    """Algorithm of a model."""

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
            ValueError: they are not a SentencePiece model.
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
            raise ValueError("the SentencePiece model has no pieces")
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
    """Yield the number and value of each field of a message."""
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


class SentencePiecePieces:
    """A SentencePiece model, unigram or BPE; a `PieceTokenizer`."""

    def __init__(self, processor: Any) -> None:
        """Read a model.

        Args:
            processor: a ``sentencepiece.SentencePieceProcessor`` that has loaded it.

        Raises:
            InputError: it cuts no words (word and character models), or its texts are not concatenations of pieces.
        """
        self._processor = processor
        model = SentencePieceModel.parse(processor.serialized_model_proto())
        if model.algorithm not in (Algorithm.UNIGRAM, Algorithm.BPE):
            raise InputError(
                f"a SentencePiece model of type {model.algorithm.name.lower()} has one way to cut a text; expecting"
                " unigram or bpe"
            )
        self._marking = Marking.of(processor.normalize(PROBE))
        self.inventory: PieceInventory = make_inventory(
            "unigram" if model.algorithm == Algorithm.UNIGRAM else "bpe",
            self._entries(model),
            self._marking,
        )
        self._index: IntArray = np.full(len(model.pieces), -1, dtype=np.int64)
        self._index[self.inventory.ids] = np.arange(len(self.inventory.ids))

    def _entries(self, model: SentencePieceModel) -> Iterator[Entry]:
        for number, (spelling, score, kind) in enumerate(model.pieces):
            if kind == PieceType.BYTE:
                yield Entry.of_byte(int(spelling[1:-1], 16), number, self._marking)
            elif kind in (PieceType.NORMAL, PieceType.USER_DEFINED):
                yield Entry(spelling, number, added_score(spelling) if kind == PieceType.USER_DEFINED else score)

    @classmethod
    def load(cls, path: Path) -> SentencePiecePieces:
        """Read a ``.model`` file.

        Raises:
            InputError: `sentencepiece` is not installed, or the file is no model that it can load.
        """
        with extras_for(f"the SentencePiece model {path}"):
            from sentencepiece import SentencePieceProcessor
        refuse_device(path)
        try:
            raw = path.read_bytes()
            SentencePieceModel.parse(raw)  # the package takes an empty file for a model
            processor = SentencePieceProcessor(model_proto=raw)
        except OSError as error:
            raise InputError(f"cannot read: {error.strerror}", path) from error
        except (ValueError, RuntimeError) as error:
            raise InputError("this is no SentencePiece model, nor a tokenizer.json", path) from error
        try:
            return cls(processor)
        except InputError as error:
            raise InputError(str(error), path) from error

    def read(self, text: str) -> PieceText:
        """Normalise a text and cut it.

        Raises:
            InputError: the text is empty, the tokeniser keeps nothing of it, or its pieces spell something else.
        """
        check_text(text)
        marker = self._marking.marker
        spelling: str = self._processor.normalize(text)
        if not spelling.replace(marker, "") and marker not in text:
            raise InputError(f"the tokeniser keeps nothing of the text {text[:20]!r}")
        ids = np.array(self._processor.encode(text, out_type=int), dtype=np.int64)
        cut: IntArray = self._index[ids]
        unreadable = self._unreadable(text, ids) if (cut < 0).any() else {}
        if marker in text:
            unreadable |= {marker: None}
        spelled = self._marking.spelled(spelling, self.inventory)
        joined = "".join(self.inventory.pieces[i] for i in cut.tolist()) if not unreadable else spelled
        if joined != spelled:
            raise no_joining(spelling, self.inventory.readable(joined))
        return PieceText(
            original=text,
            spelling=spelled,
            canonical=cut[:0] if unreadable else cut,
            altered=self._marking.bare(spelling).replace(marker, " ") != text,
            unreadable=tuple(unreadable),
        )

    def _unreadable(self, text: str, ids: IntArray) -> dict[str, None]:
        """Return the stretches of the normalised text that the model reads as unknown."""
        surfaces = zip(ids.tolist(), self._processor.encode(text, out_type=str), strict=True)
        return dict.fromkeys(surface for number, surface in surfaces if self._index[number] < 0 and surface)
