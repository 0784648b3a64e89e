"""Models of words that have no list of words, for pieces spell any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from truesource.generator.language_model import LogDistributions
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.pieces.word_aligner import WordAligner


class OpenVocabulary:
    """What cannot be asked of a model of pieces."""

    name: str
    has_distributions = False  #: see `truesource.generator.abilities`

    @property
    def vocabulary(self) -> None:
        """None: pieces spell any word of the language."""
        return None

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Refused: the words are not a list that could be gone through.

        Raises:
            InputError: always.
        """
        self._refuse()

    def next_token(self, prefix: Sequence[str]) -> NoReturn:
        """Refused, like `distributions`.

        Raises:
            InputError: always.
        """
        self._refuse()

    @property
    def _why(self) -> str:
        """Why there is no distribution over words."""
        return "cuts words into pieces and has no list of words, so it has no distribution over words"

    def _refuse(self) -> NoReturn:
        raise InputError(f"{self.name} {self._why}; it can be scored")


def reading_of(aligner: WordAligner) -> str:
    """How a causal model of pieces scores words: the correction, and the tokens around a text, by number."""
    before, after, _, _ = aligner.marks
    corrected = "pieces" if aligner.begins is None else "pieces/bow"
    return f"{corrected}/bos={numbers(before)}/eos={numbers(after)}"


def numbers(tokens: tuple[int, ...]) -> str:
    """Tokens around a text, for signatures."""
    return "+".join(map(str, tokens)) or "none"
