"""SentencePiece models as sums over cuts see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from truesource.generator.language_model import PieceInventory, PieceText
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError, extras_for
from truesource.lmtrain.pieces.marking import PROBE, Entry, Marking, added_score, check_text, make_inventory, no_joining
from truesource.lmtrain.pieces.sentencepiece_model import Algorithm, PieceType, SentencePieceModel

_KINDS = (PieceType.NORMAL, PieceType.USER_DEFINED)


class SentencePiecePieces:
    """A SentencePiece model, unigram or BPE; a `PieceTokenizer`."""

    def __init__(self, processor: Any) -> None:
        """Read a model.

        Args:
            processor: a ``sentencepiece.SentencePieceProcessor`` that has loaded it.

        Raises:
            InputError: it cuts no words (word and character models), or its texts are no joinings of pieces.
        """
        self._processor = processor
        model = SentencePieceModel.parse(processor.serialized_model_proto())
        if model.algorithm not in (Algorithm.UNIGRAM, Algorithm.BPE):
            raise InputError(
                f"a SentencePiece model of type {model.algorithm.name.lower()} has one way to cut a text; expecting"
                " unigram or bpe"
            )
        self._marking = Marking.of(processor.normalize(PROBE))
        self._types = [kind for _, _, kind in model.pieces]
        self.inventory: PieceInventory = make_inventory(
            "unigram" if model.algorithm == Algorithm.UNIGRAM else "bpe",
            (
                Entry(spelling, number, added_score(spelling) if kind == PieceType.USER_DEFINED else score)
                for number, (spelling, score, kind) in enumerate(model.pieces)
                if kind in _KINDS
            ),
            self._marking,
            byte_tokens=self._types.count(PieceType.BYTE),
        )
        self._index: IntArray = np.full(len(model.pieces), -1, dtype=np.int64)
        self._index[self.inventory.ids] = np.arange(len(self.inventory.ids))

    @classmethod
    def load(cls, path: Path) -> SentencePiecePieces:
        """Read a ``.model`` file.

        Raises:
            InputError: `sentencepiece` is not installed, or the file is no model that it can load.
        """
        with extras_for(f"the SentencePiece model {path}"):
            from sentencepiece import SentencePieceProcessor
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
        joined = "".join(self.inventory.pieces[i] for i in cut.tolist()) if not unreadable else spelling
        if joined != spelling:
            raise no_joining(spelling, joined)
        return PieceText(
            original=text,
            spelling=spelling,
            canonical=cut[:0] if unreadable else cut,
            altered=self._marking.bare(spelling).replace(marker, " ") != text,
            unreadable=tuple(unreadable),
        )

    def _unreadable(self, text: str, ids: IntArray) -> dict[str, None]:
        """Stretches of the normalised text that the model reads as unknown, or spells in bytes."""
        stretches, spelt = [], b""
        for number, surface in zip(ids.tolist(), self._processor.encode(text, out_type=str), strict=True):
            if self._types[number] == PieceType.BYTE:
                spelt += bytes([int(surface[1:-1], 16)])
                continue
            stretches.append(spelt.decode(errors="replace"))
            spelt = b""
            if self._index[number] < 0:
                stretches.append(surface)
        stretches.append(spelt.decode(errors="replace"))
        return dict.fromkeys(stretch for stretch in stretches if stretch)
