"""Texts made ready for sums over their segmentations, what an estimator returns, and the window of a model.

The window is the most tokens that a model takes. A segmentation that does not fit has no probability that the model
could give, and the sum over the segmentations that fit is a lower bound of P(text). Here such a segmentation has
probability zero, so that every estimator is one of that sum: a draw that does not fit has weight zero, and no estimator
is biased by drawing another in its place. The canonical tokenisation has to fit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.special import ndtri, stdtrit

from truesource.evaluation.tokenisation.lattice import Lattice, LatticeBuilder
from truesource.generator.piece_model import IncrementalScorer, PieceInventory, PieceText, TokenisedModel
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import track

TAIL = 0.025  #: beyond either end of an interval
UNLISTED = 0.05  #: most of ``sqrt(unlisted)`` with an error bar; beyond, it says nothing of what a model gives the rest
#: exact; lower: certainly at most the truth; unbiased: its expectation (not that of its logarithm) is the truth;
#: part: its expectation is a sum that leaves some segmentations out, so it is low on average
Bound = Literal["exact", "lower", "unbiased", "part"]
ADVICE = "divide the text"


@dataclass(frozen=True)
class Document:
    """One text whose probability is wanted."""

    text: PieceText
    lattice: Lattice
    best: IntArray  #: arcs of T*, the canonical tokenisation, in ``lattice``


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An estimate of log P(D), the log probability of one text under a model of pieces."""

    estimator: str
    log_p: float  #: nats; -inf only where the model gives probability zero to all it could see
    bound: Bound
    relative_variance: float | None = None  #: unbiased estimate of the variance, over the square of the estimate
    ess: float | None = None  #: effective number of weighted samples, (sum w)^2 / sum w^2; None where nothing is drawn
    max_share: float | None = None  #: share of the largest weight
    log_lower: float  #: log of the sum of P over all distinct segmentations scored: certainly at most log P(D), nats
    steps: int  #: token-steps of the model
    cuts: int  #: distinct segmentations (or prefixes of segmentations, for guided estimators) that were scored
    log_upper: float | None = None  #: certainly at least log P(D), nats; None: nothing but 0 is known
    degrees: int | None = None  #: of freedom of ``relative_variance``, filters less one; None: many
    #: variance by segmentations that are drawn rarely and weigh much, which the spread of filters can miss: the squared
    #: shares of words' segmentations that are on no list, by the scores that draw them, summed over words
    unlisted: float = 0.0

    @property
    def variance(self) -> float | None:
        """Variance of ``log_p`` by the delta method; 0 where exact; None where nothing gives it or much is unlisted."""
        if self.bound == "exact":
            return 0.0
        if self.unlisted > UNLISTED**2:
            return None
        return None if self.relative_variance is None else max(self.relative_variance, 0.0) + self.unlisted

    @property
    def standard_error(self) -> float | None:
        """Standard error of ``log_p``, nats."""
        return None if self.variance is None else math.sqrt(self.variance)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95% interval of log P(D), nats; None without an error bar, as of a lower bound."""
        if self.variance is None or self.bound not in ("exact", "unbiased"):
            return None
        return log_interval(self.log_p, self.variance, degrees_of([self]))


def degrees_of(estimates: Sequence[Estimate]) -> float:
    """Degrees of freedom of the sum of their variances (Satterthwaite 1946); infinite where none is uncertain."""
    uncertain = math.fsum(max(one.relative_variance or 0.0, 0.0) ** 2 / one.degrees for one in estimates if one.degrees)
    whole = math.fsum(one.variance or 0.0 for one in estimates)
    return whole**2 / uncertain if uncertain > 0.0 else math.inf


def log_interval(log_p: float, variance: float, degrees: float) -> tuple[float, float]:
    """95% interval of a sum of logarithms, of which unbiased estimates are known.

    By Student's t, since a variance over a few filters is itself uncertain: of two filters it is often far too small.
    The logarithm of an unbiased estimate is too low by half its variance, so the interval is about ``log_p`` and that.

    Args:
        log_p: sum of the logarithms of the estimates, nats.
        variance: relative variances of the estimates, summed.
        degrees: of freedom of ``variance``.
    """
    half = student(TAIL, degrees) * math.sqrt(variance)
    return log_p + variance / 2.0 - half, log_p + variance / 2.0 + half


def student(tail: float, degrees: float) -> float:
    """Quantile of Student's t at ``1 - tail``; of the normal distribution where the degrees are infinite."""
    return -float(ndtri(tail) if math.isinf(degrees) else stdtrit(degrees, tail))


def longest_segmentation(lattice: Lattice) -> int:
    """The most pieces that the text of a lattice can be segmented into."""
    longest = np.zeros(lattice.n + 1, dtype=np.int64)
    bounds = lattice.first[1:].tolist()
    for position, (low, high) in enumerate(itertools.pairwise(bounds), start=1):
        if high > low:
            longest[position] = longest[lattice.source[low:high]].max() + 1
    return int(longest[-1])


def most_pieces(model: TokenisedModel) -> int | None:
    """The most pieces that a segmentation may have; None: any number."""
    return None if model.longest is None else model.longest - model.around[0]


def canonical_fits(model: TokenisedModel, document: Document) -> bool:
    """Return True if the model can read the canonical tokenisation."""
    most = most_pieces(model)
    return most is None or len(document.best) <= most


def every_segmentation_fits(model: TokenisedModel, document: Document) -> bool:
    """Return True if the model can read every segmentation of a text: the sum over those that fit is then P(text)."""
    most = most_pieces(model)
    return most is None or document.lattice.n <= most or longest_segmentation(document.lattice) <= most


def check_window(model: TokenisedModel, document: Document, advice: str = ADVICE) -> None:
    """Check that the model can score the canonical tokenisation, with which every sum is compared.

    Args:
        model: with its window.
        document: the text.
        advice: what to do about it, for the message.

    Raises:
        InputError: the segmentation, with the token before it, is longer than what the model reads.
    """
    if not canonical_fits(model, document):
        raise InputError(
            f"the window of {model.name} is too short: the canonical tokenisation of a text has"
            f" {len(document.best) + model.around[0]} tokens, the model reads {model.longest}; {advice}"
        )


def beyond_window(model: TokenisedModel, documents: Iterable[Document]) -> int:
    """Number of texts with segmentations that the model cannot read."""
    return sum(not every_segmentation_fits(model, document) for document in documents)


def window_part(model: TokenisedModel, documents: Iterable[Document]) -> dict[str, object]:
    """Part of signatures: the window, where it leaves out segmentations of some text."""
    return {"window": model.longest} if beyond_window(model, documents) else {}


def narrowed(bound: Bound, model: TokenisedModel, document: Document) -> Bound:
    """Bound on P(text) of a value that is ``bound`` for the sum over the segmentations that fit."""
    if every_segmentation_fits(model, document):
        return bound
    return "lower" if bound in ("exact", "lower") else "part"


def reader(model: TokenisedModel, document: Document) -> IncrementalScorer:
    """The model's scorer; of a text with segmentations that do not fit, one that gives these probability zero.

    Raises:
        InputError: the canonical tokenisation does not fit.
    """
    check_window(model, document)
    return model.incremental_scorer() if every_segmentation_fits(model, document) else WithinWindow.of(model)


class WithinWindow:
    """A scorer that has probability zero for every piece after which a text would be longer than the window.

    Its contexts are those of the model and how many pieces were read, so that texts of different lengths are different
    contexts even where the model's memory is finite.
    """

    def __init__(self, scorer: IncrementalScorer, most: int) -> None:
        """Prepare to read.

        Args:
            scorer: of the model.
            most: pieces that it reads.
        """
        self._scorer, self._most, self._base = scorer, most, most + 1

    @classmethod
    def of(cls, model: TokenisedModel) -> WithinWindow:
        """Scorer of a model that has a window."""
        most = most_pieces(model)
        assert most is not None
        return cls(model.incremental_scorer(), most)

    @property
    def steps(self) -> int:
        """Token-steps of the model so far."""
        return self._scorer.steps

    def begin(self) -> int:
        """The context of the empty text."""
        return self._scorer.begin() * self._base

    def extend(self, contexts: IntArray, tokens: IntArray) -> IntArray:
        """(R,) contexts each continued by one token, which has to fit."""
        own, pieces = np.divmod(contexts, self._base)
        if (pieces == self._most).any():
            raise ValueError("a text becomes longer than the window")
        return self._scorer.extend(own, tokens) * self._base + pieces + 1

    def log_prob(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """(R,) log probability of each token after its context, nats; -inf where it does not fit."""
        log_p = np.full(len(contexts), -np.inf)
        fits = ~self.full(contexts)
        if fits.any():
            log_p[fits] = self._scorer.log_prob(contexts[fits] // self._base, tokens[fits])
        return log_p

    def log_any(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """(R,) log of the probability of any of some tokens after each context, whether or not there is room for one.

        Nothing is read after them, and the model has a probability for what follows all that it reads.
        """
        return self._scorer.log_any(contexts // self._base, tokens)

    def log_end(self, contexts: IntArray) -> FloatArray:
        """(R,) log probability that the text ends after each context, nats."""
        return self._scorer.log_end(contexts // self._base)

    def keep(self, contexts: IntArray) -> None:
        """Forget all contexts but these."""
        self._scorer.keep(np.unique(contexts // self._base))

    def full(self, contexts: IntArray) -> BoolArray:
        """(R,) whether no further piece fits."""
        full: BoolArray = contexts % self._base == self._most
        return full


@dataclass(frozen=True)
class Unreadable:
    """A text that the tokeniser has no pieces for; it has no probability."""

    number: int  #: of the text among those given, from 0
    parts: tuple[str, ...]  #: characters, or stretches, that no piece spells


@dataclass(frozen=True)
class Documents:
    """Texts that can be segmented, and those set aside."""

    documents: tuple[Document, ...]
    numbers: tuple[int, ...]  #: of each document among the texts given, from 0, ascending
    unreadable: tuple[Unreadable, ...]
    too_long: tuple[int, ...] = ()  #: numbers of the texts that `fitting` set aside, ascending

    def __len__(self) -> int:
        return len(self.documents)


def documents(
    model: TokenisedModel, texts: Sequence[str], builder: LatticeBuilder, path: str | Path | None = None
) -> Documents:
    """Read texts and build their lattices; those that hold what no piece spells are set aside.

    Args:
        model: whose tokeniser reads them.
        texts: one document each.
        builder: of lattices over the pieces of the same tokeniser.
        path: the file that the texts are the lines of, for messages.

    Raises:
        InputError: there are no texts, one is empty, none can be read, or two pieces have one number (a sum over
            segmentations would count the same tokens twice).
    """
    tokenizer = model.pieces
    check_numbers(tokenizer.inventory)
    if builder.inventory.pieces != tokenizer.inventory.pieces:
        raise ValueError("the lattices must be over the pieces of the model's tokeniser")
    if not texts:
        raise InputError("there are no texts", path)
    made: list[Document] = []
    numbers: list[int] = []
    unreadable: list[Unreadable] = []
    for number, text in enumerate(track(texts, "lattices of the texts", len(texts))):
        try:
            read = tokenizer.read(text)
            if read.unreadable:
                unreadable.append(Unreadable(number, read.unreadable))
                continue
            lattice = builder.build(read.spelling)
            made.append(Document(read, lattice, builder.path(lattice, read.canonical)))
            numbers.append(number)
        except InputError as error:
            where = "" if path is not None else f"text {number + 1}: "
            raise InputError(f"{where}{error}", path, number + 1) from error
    if not made:
        parts = ", ".join(dict.fromkeys(repr(part) for text in unreadable for part in text.parts))
        raise NothingToMeasureError(
            f"none of the {len(texts)} texts can be segmented into pieces: no piece spells {parts}", "no-pieces", path
        )
    return Documents(tuple(made), tuple(numbers), tuple(unreadable))


def fitting(model: TokenisedModel, documents: Documents) -> Documents:
    """The documents whose canonical tokenisation fits the model's window; the others are set aside.

    Args:
        model: that is to score their segmentations.
        documents: from `documents`.

    Raises:
        InputError: none fits.
    """
    long = [not canonical_fits(model, document) for document in documents.documents]
    if all(long):
        raise NothingToMeasureError(
            f"the window of {model.name}, {model.longest} tokens, is too short for all of the texts", "too-long"
        )
    kept = [i for i, wrong in enumerate(long) if not wrong]
    return replace(
        documents,
        documents=tuple(documents.documents[i] for i in kept),
        numbers=tuple(documents.numbers[i] for i in kept),
        too_long=tuple(sorted([*documents.too_long, *itertools.compress(documents.numbers, long)])),
    )


def check_numbers(inventory: PieceInventory) -> None:
    """Check that different segmentations are different rows of tokens.

    Raises:
        InputError: two pieces have one number.
    """
    order = np.argsort(inventory.ids, kind="stable")
    ids = inventory.ids[order]
    same = np.flatnonzero(ids[1:] == ids[:-1])
    if len(same):
        one, two = (inventory.pieces[int(order[same[0] + i])] for i in (0, 1))
        raise InputError(
            f"the pieces {one!r} and {two!r} have the same number {int(ids[same[0]])}, so that one row of tokens"
            " would be counted as two segmentations"
        )
