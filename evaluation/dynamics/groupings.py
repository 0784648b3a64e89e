"""Groups of scored positions: what a token counts towards, and how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from truesource.evaluation.core.tag_classes import TagClasses
from truesource.evaluation.divergence.blocks import Events
from truesource.evaluation.divergence.groups import END
from truesource.evaluation.dynamics.averages import Members
from truesource.evaluation.dynamics.derivations import Structure
from truesource.evaluation.measures.paired import Paired
from truesource.grammar.support.arrays import BoolArray, IntArray

By = Literal["all", "class", "length", "position", "frequency", "depth"]
BY: tuple[By, ...] = get_args(By)
ALL = "all tokens"
DEEPEST = 15  #: words under so many constituents or more are one group


@dataclass(frozen=True, eq=False)
class Grouping:
    """How tokens are shared out among G groups; the shares of a token sum to one."""

    by: By
    names: tuple[str, ...]  #: (G,)
    members: tuple[Members, ...]  #: (G,)


@dataclass(frozen=True, eq=False)
class Places:
    """The T scored positions of some sentences."""

    paired: Paired
    sentences: Sequence[Sequence[str]]  #: all that were given
    kept: IntArray  #: numbers of those that have a position

    @property
    def is_end(self) -> BoolArray:
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
    return _parted("all", np.zeros(places.paired.tokens, dtype=np.int64), (ALL,))


def by_class(places: Places, structure: Structure, classes: TagClasses) -> Grouping:
    """By class of tag; the end of a sentence is one of its own.

    Raises:
        InputError: ``classes`` miss a tag.
    """
    used = np.flatnonzero(structure.tags.max(axis=0))
    names, of_tag = classes.table([structure.labels[i] for i in used.tolist()])
    shares = structure.tags[:, used] @ of_tag
    is_word, word = np.flatnonzero(~places.is_end), places.word
    found = {}
    for name, share in zip(names, shares.T, strict=True):
        own = share[word[is_word]]
        if own.any():
            found[name] = Members(is_word[own > 0.0], own[own > 0.0])
    if len(end := np.flatnonzero(places.is_end)):
        found[END] = Members(end, np.ones(len(end)))
    return Grouping("class", tuple(found), tuple(found.values()))


def by_depth(places: Places, structure: Structure) -> Grouping:
    """By the (expected) number of constituents above the word, rounded."""
    depth = np.minimum(np.floor(structure.depth + 0.5), DEEPEST).astype(np.int64)[places.word]
    names = (*map(str, range(DEEPEST)), f"{DEEPEST}+", END)
    return _parted("depth", np.where(places.is_end, DEEPEST + 1, depth), names)


def by_length(places: Places) -> Grouping:
    """By words of the sentence."""
    return _parted("length", places.length)


def by_position(places: Places) -> Grouping:
    """By place in the sentence, the first is 1; the end of a sentence of n words stands at n + 1."""
    return _parted("position", places.paired.position.astype(np.int64) + 1)


def by_frequency(places: Places, events: Events, bands: IntArray, names: Sequence[str]) -> Grouping:
    """By the exact probability of the word among all tokens, as the model tells words apart.

    ``bands`` and ``names`` are those of `truesource.evaluation.divergence.groups.frequency_bands`.
    """
    column = {word: i for i, word in enumerate(events.words)}
    unknown = len(events.words)
    words = [word for i in places.kept.tolist() for word in places.sentences[i]]
    group = bands[[column.get(word, unknown) for word in words]][places.word]
    if events.causal:
        group = np.where(places.is_end, bands[unknown + 1], group)
    return _parted("frequency", group, names)


def _parted(by: By, value: IntArray, names: Sequence[str] | None = None) -> Grouping:
    """A group for each value, in rising order; ``names`` has that of each value from 0 on, None: the number itself."""
    order = np.argsort(value, kind="stable")
    values, start = np.unique(value[order], return_index=True)
    members = tuple(Members(own, np.ones(len(own))) for own in np.split(order, start[1:]))
    return Grouping(by, tuple(str(v) if names is None else names[v] for v in values.tolist()), members)
