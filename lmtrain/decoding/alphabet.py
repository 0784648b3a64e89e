"""The tokens of a model that text can be drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from truesource.lmtrain.word_vocabulary import WordVocabulary

if TYPE_CHECKING:
    from truesource.lmtrain.decoding.sampling import Stepper


@dataclass(frozen=True)
class Alphabet:
    """The tokens of a stepper."""

    size: int  #: K
    eos: int  #: number of the token that ends a sentence
    never: tuple[int, ...]  #: tokens that no sentence contains
    longest: int | None  #: the most tokens a sentence may have; None: any number
    spell: Callable[[Sequence[int]], list[str]]  #: maps token numbers to words

    @classmethod
    def of_words(cls, vocabulary: WordVocabulary, size: int, longest: int | None) -> Alphabet:
        """Return the alphabet of a model whose tokens are words; ``size`` is the number of tokens that it emits."""
        v = vocabulary
        sayable = {*v.word_ids.tolist(), v.unk, v.eos}
        never = tuple(i for i in range(size) if i not in sayable)
        return cls(size, v.eos, never, longest, lambda numbers: [v.tokens[i] for i in numbers])


class StepwiseModel(Protocol):
    """A model of each token given those before it, from which text can be drawn."""

    @property
    def name(self) -> str:
        """Name of the model in tables."""

    @property
    def alphabet(self) -> Alphabet:
        """Its tokens."""

    def stepper(self) -> Stepper:
        """Return its next-token log probabilities, for one batch of text at a time."""
