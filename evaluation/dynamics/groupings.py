"""Groups of scored positions: what a token counts towards, and how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evaluation.divergence.blocks import Events
from evaluation.divergence.groups import END, frequency_bands
from evaluation.dynamics.derivations import Structure
from evaluation.measures.paired import Paired
from evaluation.oracle import Oracle
from evaluation.tag_classes import TagClasses

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
By = Literal["all", "class", "length", "position", "frequency", "depth"]
BY: tuple[By, ...] = get_args(By)
ALL = "all tokens"
DEEPEST = 15  #: words under so many constituents or more are one group


@dataclass(frozen=True, eq=False)
class Grouping:
    """How T tokens are shared out among G groups; rows of ``weight`` sum to one."""

    by: By
    names: tuple[str, ...]
    weight: FloatArray  #: (T, G)


@dataclass(frozen=True, eq=False)
class Places:
    """The T scored positions of some sentences."""

    paired: Paired
    sentences: Sequence[Sequence[str]]  #: all that were given
    kept: IntArray  #: numbers of those that count

    @property
    def is_end(self) -> NDArray[np.bool_]:
        """Which positions are the end of their sentence, (T,)."""
        return np.asarray(self.paired.position == self.length)

    @property
    def length(self) -> IntArray:
        """Words of the sentence of each position, (T,)."""
        return np.array([len(s) for s in self.sentences], dtype=np.int64)[self.paired.sentence]

    @property
    def word(self) -> IntArray:
        """Number of each position's word among all words of the kept sentences, (T,); at an end that of the last."""
        sizes = np.zeros(len(self.sentences), dtype=np.int64)
        sizes[self.kept] = [len(self.sentences[i]) for i in self.kept.tolist()]
        first = np.cumsum(sizes) - sizes
        return np.asarray(first[self.paired.sentence] + np.minimum(self.paired.position, self.length - 1))


def by_all(places: Places) -> Grouping:
    """Every token in one group."""
    return Grouping("all", (ALL,), np.ones((places.paired.tokens, 1)))


def by_class(places: Places, structure: Structure, classes: TagClasses) -> Grouping:
    """By class of tag; the end of a sentence is one of its own.

    Raises:
        InputError: ``classes`` miss a tag.
    """
    used = np.flatnonzero(structure.tags.max(axis=0))
    names, of_tag = classes.table([structure.labels[i] for i in used.tolist()])
    return _with_end("class", places, names, (structure.tags[:, used] @ of_tag)[places.word])


def by_depth(places: Places, structure: Structure) -> Grouping:
    """By the (expected) number of constituents above the word, rounded."""
    depth = np.minimum(np.floor(structure.depth + 0.5), DEEPEST).astype(np.int64)[places.word]
    values = np.unique(depth[~places.is_end])
    names = tuple(f"{value}+" if value == DEEPEST else str(value) for value in values.tolist())
    return _with_end("depth", places, names, (depth[:, None] == values).astype(np.float64))


def by_length(places: Places) -> Grouping:
    """By words of the sentence."""
    return _by_value("length", places.length)


def by_position(places: Places) -> Grouping:
    """By place in the sentence, the first is 1; the end of a sentence of n words stands at n + 1."""
    return _by_value("position", places.paired.position.astype(np.int64) + 1)


def by_frequency(places: Places, events: Events, oracle: Oracle) -> Grouping:
    """By the exact probability of the word among all tokens, as the model tells words apart.

    Raises:
        InputError: expected counts are infinite (spectral radius 1 or more, and no length range).
    """
    bands, names = frequency_bands(oracle, events)
    column = {word: i for i, word in enumerate(events.words)}
    unknown = len(events.words)
    words = [word for i in places.kept.tolist() for word in places.sentences[i]]
    group = bands[[column.get(word, unknown) for word in words]][places.word]
    if events.causal:
        group = np.where(places.is_end, bands[unknown + 1], group)
    values = np.unique(group)
    return Grouping("frequency", tuple(names[g] for g in values.tolist()), (group[:, None] == values).astype(float))


def _by_value(by: By, value: IntArray) -> Grouping:
    values = np.unique(value)
    return Grouping(by, tuple(map(str, values.tolist())), (value[:, None] == values).astype(np.float64))


def _with_end(by: By, places: Places, names: Sequence[str], weight: FloatArray) -> Grouping:
    end = places.is_end
    if end.any():
        names, weight = (*names, END), np.column_stack([np.where(end[:, None], 0.0, weight), end])
    used = np.flatnonzero(weight.max(axis=0))
    return Grouping(by, tuple(names[g] for g in used.tolist()), weight[:, used])
