"""Transforms: bijections of the sentences of one length, which put the words of a text into another order.

They are those of Kallini et al. (2024), "Mission: Impossible Language Models", as far as they depend on nothing but the
length n of a sentence. Word p of the transformed sentence is word ``order[p]`` of the original, so for every transform

- a sentence has the log probability of its original: ``P_T(w) = P(undo(w))``, end of the sentence included, under
  every length condition;
- ``P_T(word p | all other words, n) = P(word order[p] of undo(w) | all other words, n)``: the condition names the same
  words at the same places of the original.

``P_T(word p | words before it)`` sums over the words that come later, whose places in the original are anywhere; it is
known where the transformed language has a grammar again: a reversal mirrors every rule.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

from pydantic import Field, ValidationError

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import explain
from truesource.grammar.support.seeds import DEFAULT_SEED
from truesource.grammar.support.settings import Settings, join_reference, split_reference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.arrays import IntArray

T = TypeVar("T")


class Transform(Settings):
    """An order of words for each sentence length; written ``name`` or ``name:key=value,key=value``."""

    name: ClassVar[str]

    @abstractmethod
    def permutation(self, n: int) -> IntArray:
        """Which word of the original stands at each place of a sentence of ``n`` words, (n,)."""

    def grammar(self, pcfg: PCFG) -> PCFG | None:
        """The grammar of the transformed language, None where there is none to be had."""
        return None

    @property
    def has_grammar(self) -> bool:
        """Whether `grammar` gives one, and so the probability of each token given those before it."""
        return type(self).grammar is not Transform.grammar

    def apply(self, words: Sequence[T]) -> list[T]:
        """A sentence of the original language in the new order."""
        return [words[i] for i in order(self, len(words)).tolist()]

    def undo(self, words: Sequence[T]) -> list[T]:
        """The original of a sentence."""
        found = list(words)
        for word, i in zip(words, order(self, len(words)).tolist(), strict=True):
            found[i] = word
        return found

    def __str__(self) -> str:
        return join_reference(self.name, self.model_dump())


class Reversal(Transform):
    """The last word first."""

    name = "reversal"

    def permutation(self, n: int) -> IntArray:
        """As `Transform.permutation`."""
        import numpy as np

        return np.arange(n)[::-1]

    def grammar(self, pcfg: PCFG) -> PCFG:
        """Every binary rule with its children in the other order; ``meta["transform"]`` says so."""
        mirrored = replace(pcfg, binary=pcfg.binary[:, [0, 2, 1]])
        return mirrored.with_meta(transform={"spec": str(self), "original": pcfg.digest})


class OddEven(Transform):
    """Every second word, then the others."""

    name = "odd-even"
    first: Literal["odd", "even"] = Field("odd", description="Which words come first; they are counted from 1.")

    def permutation(self, n: int) -> IntArray:
        """As `Transform.permutation`."""
        import numpy as np

        odd, even = np.arange(0, n, 2), np.arange(1, n, 2)
        return np.concatenate([odd, even] if self.first == "odd" else [even, odd])


class BlockShuffle(Transform):
    """One random order inside each block of ``size`` words; a last, shorter block has another one."""

    name = "block-shuffle"
    size: int = Field(3, ge=2, description="Number of words in a block.")
    seed: int = Field(DEFAULT_SEED, ge=0, description="Random seed of the order in a block.")

    def permutation(self, n: int) -> IntArray:
        """As `Transform.permutation`."""
        import numpy as np

        whole, rest = divmod(n, self.size)
        blocks = np.arange(whole)[:, None] * self.size + shuffled(self.size, self.seed)
        return np.concatenate([blocks.ravel(), n - rest + shuffled(rest, self.seed)])


class LengthShuffle(Transform):
    """One random order of all words for each sentence length."""

    name = "length-shuffle"
    seed: int = Field(DEFAULT_SEED, ge=0, description="Random seed of the order for each sentence length.")

    def permutation(self, n: int) -> IntArray:
        """As `Transform.permutation`."""
        return shuffled(n, self.seed)


TRANSFORMS: dict[str, type[Transform]] = {kind.name: kind for kind in (Reversal, OddEven, BlockShuffle, LengthShuffle)}


def parse_transform(text: str) -> Transform:
    """Read ``reversal`` or ``block-shuffle:size=3,seed=7``.

    >>> str(parse_transform("block-shuffle:seed=7"))
    'block-shuffle:size=3,seed=7'

    Raises:
        InputError: there is no such transform or setting, or a value is outside its range.
    """
    name, values = split_reference(text)
    if name not in TRANSFORMS:
        raise InputError(f"there is no transform {name!r}; choose one of {', '.join(TRANSFORMS)}", code="no-transform")
    try:
        return TRANSFORMS[name].model_validate(values)
    except ValidationError as error:
        raise InputError(f"transform {name}: {explain(error)}", code="bad-setting") from error


@cache
def order(transform: Transform, n: int) -> IntArray:
    """`Transform.permutation`, kept and read-only."""
    found = transform.permutation(n)
    found.flags.writeable = False
    return found


def text_order(transform: Transform, lengths: NDArray[np.integer]) -> IntArray:
    """The same for all sentences of a text, one after the other.

    Args:
        transform: of the text.
        lengths: (S,) words of each sentence, T together.

    Returns:
        (T,) for each place of the transformed text, the place in the original text.
    """
    import numpy as np

    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    found = np.empty(int(lengths.sum()), dtype=np.int64)
    for n in np.unique(lengths).tolist():
        begins = starts[lengths == n][:, None]
        found[begins + np.arange(n)] = begins + order(transform, n)
    return found


def shuffled(n: int, seed: int) -> IntArray:
    """A random order of ``n`` things, (n,): uniform among all but the order that they have; same on every machine.

    Only the raw bits of the generator are used: numpy keeps those the same in all its versions.
    """
    import numpy as np

    bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(n,)))
    while True:
        found = np.argsort(bits.random_raw(n), kind="stable")
        if n < 2 or (found != np.arange(n)).any():
            return found
