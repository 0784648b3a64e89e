"""Numbers of segmentations of texts, and how the scores of the pieces divide probability among them.

Sums over a long text come from its word types: each is segmented once, however often it occurs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.tokenisation._kernels import sums as kernels
from truesource.evaluation.tokenisation.lattice import (
    Lattice,
    LatticeBuilder,
    arc_marginals,
    best_path,
    checked,
    exact_count,
    finite,
)
from truesource.generator.piece_model import PieceText
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import track

PATHS = (64, 1024, 4096)  #: maximum numbers of paths at which words count as enumerable
SLACK = 1e-6  #: relative difference of scores that is rounding: tokenisers add in 32 bits


@dataclass(frozen=True, kw_only=True)
class TypeSums:
    """The lattice sums of every word type, see `truesource.evaluation.tokenisation.lattice`."""

    words: tuple[str, ...]  #: (U,) word types, in the alphabet of the inventory
    counts: IntArray  #: (U,) tokens of each
    log_partitions: FloatArray  #: (U,) log Z_b of each, nats
    entropies: FloatArray  #: (U,) nats
    log_collisions: FloatArray  #: (U,) log of the sum of Q_b^2, nats
    log_paths: FloatArray  #: (U,) log of the number of paths
    paths: tuple[int, ...]  #: (U,) the number of paths


def sums_of_stretches(builder: LatticeBuilder, counts: Mapping[str, int], b: float = 1.0) -> TypeSums:
    """Sum over the paths of every stretch of texts (word or whole text); ``counts`` has its number of occurrences.

    Raises:
        InputError: a stretch is not a concatenation of pieces, or b is invalid.
    """
    words = tuple(counts)
    lattice, bounds = builder.join(words)
    sums, number = kernels.sums(lattice.first, lattice.source, lattice.score, checked(b), bounds)
    finite(float(sums[:3].sum()), b)
    paths = number.tolist()
    for k in np.flatnonzero(number < 0).tolist():
        paths[k] = exact_count(lattice, int(bounds[k]), int(bounds[k + 1]))
    return TypeSums(
        words=words,
        counts=np.fromiter(counts.values(), dtype=np.int64, count=len(words)),
        log_partitions=sums[0],
        entropies=sums[1],
        log_collisions=np.minimum(sums[2] - 2.0 * sums[0], 0.0),
        log_paths=sums[3],
        paths=tuple(paths),
    )


@dataclass(frozen=True)
class AmbiguousWord:
    """An ambiguous word type and its segmentations."""

    word: str  #: in the spelling of the inventory, readable
    tokens: int
    paths: int
    entropy: float  #: entropy of its segmentations, nats
    best: tuple[str, ...]  #: the segmentation with the highest score
    probability: float  #: Q_b of that segmentation


@dataclass(frozen=True, eq=False, kw_only=True)
class Ambiguity:
    """Exact sums over the segmentations of D texts; S stretches (words or whole texts) are segmented separately."""

    builder: LatticeBuilder
    b: float  #: inverse temperature
    texts: tuple[PieceText, ...]
    stretches: TypeSums  #: (S,) sums over the paths of each different stretch
    best: tuple[tuple[str, ...], ...]  #: (S,) the best segmentation of each
    best_score: FloatArray  #: (S,) nats
    log_partition: FloatArray  #: (D,) log Z_b, nats
    entropy: FloatArray  #: (D,) of Q_b, nats
    derivative_entropy: FloatArray  #: (D,) the same as log Z_b - b d(log Z_b)/db, from marginals
    log_collision: FloatArray  #: (D,) log of the probability that two segmentations are the same, nats
    log_paths: FloatArray  #: (D,) log of the number of segmentations
    arcs: IntArray  #: (D,) number of pieces over all their possible places
    canonical_log_q: FloatArray  #: (D,) log Q_b of the canonical tokenisation, nats
    below_best: int  #: texts whose canonical tokenisation scores less than the best one, by more than rounding
    tied: int  #: texts whose canonical tokenisation ties with another best segmentation

    @property
    def factorises(self) -> bool:
        """True if words are segmented separately."""
        return self.builder.factorises

    def scores(self, *, scores: str) -> dict[str, Score]:
        """Return every measure by name.

        Args:
            scores: kind of scores of the pieces, for signatures: own, fitted, uniform.
        """
        originals = [text.original for text in self.texts]
        words, characters = sum(text.n_words for text in self.texts), sum(map(len, originals))
        size = sum(len(original.encode(errors="surrogatepass")) for original in originals)
        inventory, entropy = self.builder.inventory, math.fsum(self.entropy.tolist())
        spelt = sum(len(inventory.readable(text.spelling)) for text in self.texts)
        values: dict[str, tuple[str, float]] = {
            "documents": ("count", len(self.texts)),
            "words": ("count", words),
            "characters": ("count", characters),
            "bytes": ("count", size),
            "pieces": ("count", len(inventory.pieces)),
            "factorises": ("flag", float(self.factorises)),
            "altered": ("share/document", sum(text.altered for text in self.texts) / len(self.texts)),
            "arcs_per_character": ("arcs/spelt-character", int(self.arcs.sum()) / spelt),
            "log_partition": ("nats/document", float(self.log_partition.mean())),
            "entropy": ("nats/document", entropy / len(self.texts)),
            "entropy_per_word": ("nats/word", entropy / words),
            "entropy_per_character": ("nats/character", entropy / characters),
            "entropy_check": ("nats", float(np.abs(self.entropy - self.derivative_entropy).max())),
            "log2_paths": ("bits/document", float(self.log_paths.mean()) / math.log(2.0)),
            "log_collision": ("nats/document", float(self.log_collision.mean())),
            "collision": ("probability", float(np.exp(self.log_collision).mean())),
            "own_log_q": ("nats/document", float(self.canonical_log_q.mean())),
        }
        if scores == "own":
            values["own_below_best"] = ("documents", self.below_best)
            values["own_tied"] = ("documents", self.tied)
        if self.factorises:
            counts = self.stretches.counts
            for most in PATHS:
                few = np.array([paths <= most for paths in self.stretches.paths])
                values[f"words_to_{most}_paths"] = ("share", float(counts[few].sum() / counts.sum()))
        parts = {
            "tokeniser": inventory.kind,
            "pieces": inventory.part,
            "scores": scores,
            "b": f"{self.b:g}",
            "data": digest_sentences([[original] for original in originals]),
        }
        return {
            name: Score(name, float(value), signature({"unit": unit, **parts}))
            for name, (unit, value) in values.items()
        }

    def words(self, most: int) -> list[AmbiguousWord]:
        """Return the words with the largest entropy; empty if words are not segmented separately."""
        if not self.factorises:
            return []
        sums = self.stretches
        order = sorted(range(len(sums.words)), key=lambda k: (-sums.entropies[k], -sums.counts[k], sums.words[k]))
        q = np.exp(self.b * self.best_score - sums.log_partitions)
        return [
            AmbiguousWord(
                self.builder.inventory.readable(sums.words[k]),
                int(sums.counts[k]),
                sums.paths[k],
                float(sums.entropies[k]),
                self.best[k],
                float(q[k]),
            )
            for k in order[:most]
        ]

    def as_scores(self, *, scores: str, words: int = 0) -> list[Score]:
        """Return all scores, then the entropy of each of some words.

        Args:
            scores: kind of scores of the pieces, for signatures: own, fitted, uniform.
            words: number of words, the most ambiguous first.
        """
        values = self.scores(scores=scores)
        every = list(values.values())
        for word in self.words(words):
            entropy = Score("word_entropy", word.entropy, values["entropy"].signature.replace("/document", "/token"))
            every.append(
                entropy.with_more(
                    by="word",
                    group=word.word,
                    tokens=word.tokens,
                    log2_paths=math.log2(word.paths),
                    best=[*word.best],
                    probability=word.probability,
                )
            )
        return every


def measure_ambiguity(builder: LatticeBuilder, texts: Sequence[PieceText], b: float = 1.0) -> Ambiguity:
    """Sum over the segmentations of texts; if words are segmented separately, sum once per word type.

    Args:
        builder: builder of lattices over the pieces that the texts were read with.
        texts: texts without unreadable ones.
        b: inverse temperature of Q_b.

    Raises:
        InputError: there are no texts, one is unreadable, or b is negative or not finite.
    """
    if not texts:
        raise InputError("there are no texts to segment")
    if any(text.unreadable for text in texts):
        raise InputError("a text with characters that no piece spells has no segmentations; remove it")
    numbers: dict[str, int] = {}
    rows = [
        [numbers.setdefault(stretch, len(numbers)) for stretch in builder.words(text.spelling)]
        for text in track(texts, "words of the texts", len(texts))
    ]
    stretch = np.concatenate([np.array(row, dtype=np.int64) for row in rows])
    document = np.repeat(np.arange(len(texts)), [len(row) for row in rows])
    counts = np.bincount(stretch, minlength=len(numbers))
    sums = sums_of_stretches(builder, dict(zip(numbers, counts.tolist(), strict=True)), b)
    lattice, bounds = builder.join(sums.words)
    first = lattice.first[bounds + 1]
    slope = np.add.reduceat(arc_marginals(lattice, b) * lattice.score, first[:-1])
    best, best_score = _best_segmentations(builder, lattice, bounds)

    def total(values: FloatArray) -> FloatArray:
        """Sum values of stretches (S,) to values of texts (D,)."""
        return np.bincount(document, weights=values[stretch], minlength=len(texts)).astype(np.float64)

    canonical_score = np.array([math.fsum(builder.scores[text.canonical].tolist()) for text in texts])
    top, log_partition = total(best_score), total(sums.log_partitions)
    below = canonical_score < top - SLACK * (1.0 + np.abs(top))
    tied = sum(
        not less and [builder.inventory.names[i] for i in text.canonical.tolist()] != [p for k in row for p in best[k]]
        for text, row, less in zip(texts, rows, below.tolist(), strict=True)
    )
    return Ambiguity(
        builder=builder,
        b=b,
        texts=tuple(texts),
        stretches=sums,
        best=best,
        best_score=best_score,
        log_partition=log_partition,
        entropy=total(sums.entropies),
        derivative_entropy=total(sums.log_partitions - b * slope),
        log_collision=total(sums.log_collisions),
        log_paths=total(sums.log_paths),
        arcs=total(np.diff(first).astype(np.float64)).astype(np.int64),
        canonical_log_q=b * canonical_score - log_partition,
        below_best=int(below.sum()),
        tied=int(tied),
    )


def _best_segmentations(
    builder: LatticeBuilder, lattice: Lattice, bounds: IntArray
) -> tuple[tuple[tuple[str, ...], ...], FloatArray]:
    """Return the names of the pieces of the best path of every stretch of a joined lattice, and its score."""
    path = best_path(lattice)
    at = np.searchsorted(bounds, lattice.source[path], side="right") - 1
    score = np.bincount(at, weights=lattice.score[path], minlength=len(bounds) - 1).astype(np.float64)
    pieces = [builder.inventory.names[k] for k in lattice.piece[path].tolist()]
    ends = np.searchsorted(at, np.arange(len(bounds))).tolist()
    return tuple(tuple(pieces[low:high]) for low, high in itertools.pairwise(ends)), score
