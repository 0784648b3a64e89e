"""A sentence sampled from the grammar, with its posteriors of spans and of other words, and a changed sentence.

`Phenomenon` is the interface of the kinds of pairs that are made from such sentences.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from truesource.evaluation.pairs import PairSettings
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Stratum, Words
from truesource.generator.sampler import Sampler
from truesource.grammar.inference.posterior import Posterior, posterior
from truesource.grammar.support.arrays import FloatArray, IntArray, random_state
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.binarise import head_index

_STREAM = 0x9A125  #: keeps these sentences apart from a corpus drawn with the same seed
_CHUNK = 64  #: sentences drawn at once


@dataclass(frozen=True)
class ConstituentNode:
    """A node that is not a word."""

    label: str
    begin: int  #: first token
    end: int  #: one past the last token
    parent: int  #: number of the node above; -1 at the root
    children: tuple[int, ...]  #: numbers of the nodes below; none above a word


class Constituents:
    """The nodes of a tree in preorder; every word has a separate node above it, its tag."""

    def __init__(self, tree: Tree) -> None:
        labels: list[str] = []
        parents: list[int] = []
        children: list[list[int]] = []
        spans: list[list[int]] = []
        tags: list[int] = []
        stack: list[tuple[Tree | str, int]] = [(tree, -1)]
        while stack:
            item, parent = stack.pop()
            if isinstance(item, str):
                if spans[parent] or children[parent]:
                    raise ValueError("a word has sister nodes; every word needs its own tag")
                spans[parent] = [len(tags), len(tags) + 1]
                tags.append(parent)
                continue
            number = len(labels)
            labels.append(item.label)
            parents.append(parent)
            children.append([])
            spans.append([])
            if parent >= 0:
                children[parent].append(number)
            stack.extend((child, number) for child in reversed(item.children))
        for number in reversed(range(len(labels))):
            if children[number]:
                spans[number] = [spans[children[number][0]][0], spans[children[number][-1]][1]]
        self.nodes = [
            ConstituentNode(label, span[0], span[1], parent, tuple(below))
            for label, span, parent, below in zip(labels, spans, parents, children, strict=True)
        ]
        self.tags = tags  #: node above each word

    def tag(self, position: int) -> str:
        """Return the label of the node above a word."""
        return self.nodes[self.tags[position]].label

    def siblings(self, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return nodes to the left and to the right under the same parent."""
        parent = self.nodes[number].parent
        around = self.nodes[parent].children if parent >= 0 else (number,)
        at = around.index(number)
        return around[:at], around[at + 1 :]

    def head(self, number: int) -> int:
        """Return the position of the head word of a node, by the rules for Penn labels."""
        while self.nodes[number].children:
            below = self.nodes[number].children
            number = below[head_index(self.nodes[number].label, [self.nodes[c].label for c in below])]
        return self.nodes[number].begin


@dataclass(frozen=True)
class PairChange:
    """A changed sentence of a pair, and facts on both: ``x_drawn`` of the sampled one, ``x_changed`` of this."""

    words: Words
    positions: tuple[int, ...]
    strata: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, float | None] = field(default_factory=dict)


def outside_of(lexicon: Lexicon, sentences: Sequence[Words]) -> list[FloatArray]:
    """Return `SampledSentence.outside` of each sentence; sentences of one length are computed together."""
    charts = lexicon.pcfg.exact.charts()
    outside: list[FloatArray] = [np.empty(0)] * len(sentences)
    for batch in charts.batches(sentences, outside=True):
        leaves = charts.leaves(batch.words).weights
        for column, members in enumerate(batch.members):
            for i in members:
                outside[i] = np.ascontiguousarray(leaves[:, :, column])
    return outside


@dataclass(frozen=True, eq=False)
class SampledSentence:
    """One sentence of the grammar, with cached results."""

    lexicon: Lexicon
    words: Words
    computed: FloatArray | None = field(default=None, repr=False)  #: `outside`, if it was computed with others

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def posterior(self) -> Posterior:
        """Exact, over derivations."""
        return posterior(self.lexicon.pcfg, self.words)

    def tag(self, position: int, sure: float) -> str | None:
        """Return the tag of a word where its posterior reaches ``sure`` (above 0.5); None elsewhere."""
        best = int(self._best[position])
        return self.posterior.labels[best] if self.posterior.tags[position, best] >= sure else None

    @cached_property
    def _best(self) -> IntArray:
        return np.asarray(self.posterior.tags.argmax(axis=1))

    @cached_property
    def outside(self) -> FloatArray:
        """Weight of every symbol as the one that makes the word, whatever the word, (n, S), scaled by position."""
        return outside_of(self.lexicon, [self.words])[0] if self.computed is None else self.computed

    def log_odds(self, position: int) -> FloatArray:
        """Return ln P(this sentence) / P(it with another word at ``position``), for every word, (V,) nats; inf at zero.

        ``P(w_1..v..w_n) = sum_A o_A P(A -> v)`` with the outside weights of the preterminals at the position.
        """
        joint = np.asarray(self.lexicon.pcfg.exact.emission.T @ self.outside[position])
        weight = joint[self.lexicon.pcfg.word_ids[self.words[position]]]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(weight) - np.log(joint))

    def with_word(self, position: int, word: str) -> Words:
        """Return the sentence with another word at ``position``."""
        return (*self.words[:position], word, *self.words[position + 1 :])


def sampled_sentences(
    lexicon: Lexicon, most: int, seed: int, outside: Callable[[], bool] = lambda: True
) -> Iterator[SampledSentence]:
    """Yield sentences of a grammar, under the lengths of its lexicon, reproducible from one seed.

    Args:
        lexicon: of the grammar.
        most: sentences, at most.
        seed: of them.
        outside: whether `SampledSentence.outside` is needed of most of the sentences that come next.
    """
    sampler = Sampler(lexicon.pcfg, lexicon.lengths)
    for chunk in range(-(-most // _CHUNK)):
        size = min(_CHUNK, most - chunk * _CHUNK)
        samples = sampler.draw(size, random_state(seed, _STREAM, chunk))
        words: list[Words] = [tuple(sentence) for sentence in sampler.sentences(samples)]
        computed = outside_of(lexicon, words) if outside() else [None] * size
        for sentence, weights in zip(words, computed, strict=True):
            yield SampledSentence(lexicon, sentence, weights)


class Phenomenon(ABC):
    """One controlled difference between two sentences."""

    name: ClassVar[str]
    outside: ClassVar[bool] = False  #: it needs `SampledSentence.log_odds` of most sentences

    @abstractmethod
    def missing(self, lexicon: Lexicon) -> str | None:
        """Return the reason why the grammar can have no such pairs; None: it may."""

    @abstractmethod
    def change(self, sentence: SampledSentence, settings: PairSettings, rng: np.random.Generator) -> PairChange | None:
        """Return a changed sentence of the same length, at random; None if this one has nothing to change."""

    @abstractmethod
    def strata(self, tree: Constituents, words: Words, change: PairChange, lexicon: Lexicon) -> dict[str, Stratum]:
        """Return properties to report by.

        Args:
            tree: the most probable one of ``words``, with treebank labels.
            words: the more probable sentence of the pair.
            change: of the pair.
            lexicon: of the grammar.
        """

    def facts(self, change: PairChange, swapped: bool, log_odds: float | None) -> Mapping[str, float | None]:
        """Return other exact numbers of the pair.

        Args:
            change: of the pair.
            swapped: the changed sentence is the more probable one.
            log_odds: ln P(more probable) / P(less probable); None if the latter is zero.
        """
        return {}
