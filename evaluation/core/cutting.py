"""Tokenisers by name, file or object, as they cut truths and sentences of words into pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from truesource.grammar.pieces.segmentation import SPACE, SPACE_BYTE, byte_cut
from truesource.grammar.pieces.truth import TokenisedTruth, by_bytes, by_characters
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth

UNITS: tuple[Literal["characters", "bytes"], ...] = ("characters", "bytes")  #: that need no tokeniser


class Cutter(Protocol):
    """A way to cut words into pieces."""

    def language(self, truth: Truth) -> TokenisedTruth:
        """Return a language with its words cut into pieces.

        Raises:
            InputError: the pieces of its words have no exact distribution (the message says why).
        """

    def cut(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the pieces of sentences of words.

        Raises:
            InputError: a word has no pieces of its own.
        """


def cutter(tokenizer: Any) -> Cutter:
    """Return the cutter of a tokeniser.

    Args:
        tokenizer: ``characters`` or ``bytes``; a model folder or a ``tokenizer.json``; or a fast tokeniser of
            transformers.

    Raises:
        InputError: there is no such file, or it is no fast tokeniser.
    """
    if isinstance(tokenizer, str) and not tokenizer.strip():
        raise InputError(
            "the name of the tokeniser is empty; name a model folder, a tokenizer.json, characters or bytes"
        )
    if tokenizer == "characters":
        return _Units(by_characters, tuple, SPACE)
    if tokenizer == "bytes":
        return _Units(by_bytes, byte_cut, SPACE_BYTE)
    from truesource.lmtrain.pieces.segmentation import PieceCutter, read_cutter  # transformers

    return read_cutter(Path(tokenizer)) if isinstance(tokenizer, str | Path) else PieceCutter(tokenizer)


class _Units:
    """A cutter into characters or bytes, with one between words."""

    def __init__(
        self, language: Callable[[Truth], TokenisedTruth], units: Callable[[str], tuple[str, ...]], space: str
    ) -> None:
        self.language, self._units, self._space = language, units, space

    def cut(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the characters or bytes of sentences."""
        return [
            [unit for at, word in enumerate(sentence) for unit in (*([self._space] if at else []), *self._units(word))]
            for sentence in sentences
        ]
