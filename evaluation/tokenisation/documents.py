"""Texts prepared for sums over their segmentations, estimates, and the window of a model.

The window is the maximum number of tokens that a model reads. To a longer segmentation, the model can give no
probability, and the sum over the segmentations that fit is a lower bound of P(text). Here a longer segmentation has
probability zero, so every estimator estimates this sum: a sample that does not fit has weight zero, and no estimator
is biased by replacing it. The canonical tokenisation has to fit.
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

TAIL = 0.025  #: tail probability beyond either end of an interval
UNLISTED = 0.05  #: maximum of ``sqrt(unlisted)`` for an error bar; beyond, the error is unknown
#: exact; lower: certainly at most P(D); unbiased: its expectation (not of its logarithm) is P(D);
#: part: its expectation is a sum over some of the segmentations, so it is low on average
Bound = Literal["exact", "lower", "unbiased", "part"]
ADVICE = "divide the text"


@dataclass(frozen=True)
class Document:
    """A text whose probability is computed."""

    text: PieceText
    lattice: Lattice
    best: IntArray  #: arcs of T*, the canonical tokenisation, in ``lattice``


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An estimate of log P(D), the log probability of one text under a model of pieces."""

    estimator: str
    log_p: float  #: nats; -inf only if the model gives probability zero to all scored segmentations
    bound: Bound
    relative_variance: float | None = None  #: unbiased estimate of the variance, over the square of the estimate
    ess: float | None = None  #: effective number of weighted samples, (sum w)^2 / sum w^2; None without sampling
    max_share: float | None = None  #: share of the largest weight
    log_lower: float  #: log of the sum of P over all distinct segmentations scored: certainly at most log P(D), nats
    steps: int  #: token-steps of the model
    cuts: int  #: distinct segmentations (or prefixes of segmentations, for guided estimators) that were scored
    log_upper: float | None = None  #: certainly at least log P(D), nats; None: no bound except 0
    degrees: int | None = None  #: degrees of freedom of ``relative_variance``, filters less one; None: many
    #: variance from rarely sampled segmentations of large weight, which the spread of filters can miss: squared
    #: shares of unlisted segmentations of a word under the proposal scores, summed over words
    unlisted: float = 0.0

    @property
    def variance(self) -> float | None:
        """Variance of ``log_p`` by the delta method; 0 if exact; None if unknown or if the unlisted share is large."""
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
        """95% interval of log P(D), nats; None without an error bar, as for lower bounds."""
        if self.variance is None or self.bound not in ("exact", "unbiased"):
            return None
        return log_interval(self.log_p, self.variance, degrees_of([self]))


def degrees_of(estimates: Sequence[Estimate]) -> float:
    """Compute the degrees of freedom of a sum of variances (Satterthwaite 1946); infinite if all are certain."""
    uncertain = math.fsum(max(one.relative_variance or 0.0, 0.0) ** 2 / one.degrees for one in estimates if one.degrees)
    whole = math.fsum(one.variance or 0.0 for one in estimates)
    return whole**2 / uncertain if uncertain > 0.0 else math.inf


def log_interval(log_p: float, variance: float, degrees: float) -> tuple[float, float]:
    """Compute a 95% interval of a sum of logarithms from unbiased estimates of the values.

    It uses Student's t, since a variance over few filters is itself uncertain: of two filters, it is often far too
    small. The logarithm of an unbiased estimate is too low by half its variance, so the interval covers both values.

    Args:
        log_p: sum of the logarithms of the estimates, nats.
        variance: relative variances of the estimates, summed.
        degrees: degrees of freedom of ``variance``.
    """
    half = student(TAIL, degrees) * math.sqrt(variance)
    return log_p + variance / 2.0 - half, log_p + variance / 2.0 + half


def student(tail: float, degrees: float) -> float:
    """Compute the quantile of Student's t at ``1 - tail``; with infinite degrees, of the normal distribution."""
    return -float(ndtri(tail) if math.isinf(degrees) else stdtrit(degrees, tail))


def longest_segmentation(lattice: Lattice) -> int:
    """Compute the maximum number of pieces in a segmentation of a lattice."""
    longest = np.zeros(lattice.n + 1, dtype=np.int64)
    bounds = lattice.first[1:].tolist()
    for position, (low, high) in enumerate(itertools.pairwise(bounds), start=1):
        if high > low:
            longest[position] = longest[lattice.source[low:high]].max() + 1
    return int(longest[-1])


def most_pieces(model: TokenisedModel) -> int | None:
    """Return the maximum number of pieces that fits the window; None: any number."""
    return None if model.longest is None else model.longest - model.around[0]


def canonical_fits(model: TokenisedModel, document: Document) -> bool:
    """Return True if the model can read the canonical tokenisation."""
    most = most_pieces(model)
    return most is None or len(document.best) <= most


def every_segmentation_fits(model: TokenisedModel, document: Document) -> bool:
    """Return True if the model can read every segmentation of a text, so that their sum is P(text)."""
    most = most_pieces(model)
    return most is None or document.lattice.n <= most or longest_segmentation(document.lattice) <= most


def check_window(model: TokenisedModel, document: Document, advice: str = ADVICE) -> None:
    """Check that the model can score the canonical tokenisation, with which every sum is compared.

    Args:
        model: model with its window.
        document: the text.
        advice: what to do about it, for the message.

    Raises:
        InputError: the segmentation, with the token before it, is longer than the window.
    """
    if not canonical_fits(model, document):
        raise InputError(
            f"the window of {model.name} is too short: the canonical tokenisation of a text has"
            f" {len(document.best) + model.around[0]} tokens, but the model reads {model.longest}; {advice}"
        )


def beyond_window(model: TokenisedModel, documents: Iterable[Document]) -> int:
    """Count the texts with segmentations that the model cannot read."""
    return sum(not every_segmentation_fits(model, document) for document in documents)


def window_part(model: TokenisedModel, documents: Iterable[Document]) -> dict[str, object]:
    """Return the window as part of signatures, if it excludes segmentations of some text."""
    return {"window": model.longest} if beyond_window(model, documents) else {}


def narrowed(bound: Bound, model: TokenisedModel, document: Document) -> Bound:
    """Convert a bound on the sum over the segmentations that fit to a bound on P(text)."""
    if every_segmentation_fits(model, document):
        return bound
    return "lower" if bound in ("exact", "lower") else "part"


def reader(model: TokenisedModel, document: Document) -> IncrementalScorer:
    """Return the model's scorer; segmentations that do not fit the window get probability zero.

    Raises:
        InputError: the canonical tokenisation does not fit.
    """
    check_window(model, document)
    return model.incremental_scorer() if every_segmentation_fits(model, document) else WithinWindow.of(model)


class WithinWindow:
    """A scorer that gives probability zero to every piece beyond the window.

    Its contexts consist of the model's context and the number of pieces, so that texts of different lengths are
    different contexts even if the model's memory is finite.
    """

    def __init__(self, scorer: IncrementalScorer, most: int) -> None:
        """Prepare to read.

        Args:
            scorer: scorer of the model.
            most: maximum number of pieces.
        """
        self._scorer, self._most, self._base = scorer, most, most + 1

    @classmethod
    def of(cls, model: TokenisedModel) -> WithinWindow:
        """Build the scorer of a model that has a window."""
        most = most_pieces(model)
        assert most is not None
        return cls(model.incremental_scorer(), most)

    @property
    def steps(self) -> int:
        """Token-steps of the model so far."""
        return self._scorer.steps

    def begin(self) -> int:
        """Return the context of the empty text."""
        return self._scorer.begin() * self._base

    def extend(self, contexts: IntArray, tokens: IntArray) -> IntArray:
        """Continue each context by one token, which has to fit; return contexts (R,)."""
        inner, pieces = np.divmod(contexts, self._base)
        if (pieces == self._most).any():
            raise ValueError("a text becomes longer than the window")
        return self._scorer.extend(inner, tokens) * self._base + pieces + 1

    def log_prob(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """Compute the log probability of each token after its context, (R,) nats; -inf if it does not fit."""
        log_p = np.full(len(contexts), -np.inf)
        fits = ~self.full(contexts)
        if fits.any():
            log_p[fits] = self._scorer.log_prob(contexts[fits] // self._base, tokens[fits])
        return log_p

    def log_any(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """Compute the log probability of a set of tokens after each context, (R,), even if no token fits.

        No text follows these tokens, and the model gives probabilities after the last token that it reads.
        """
        return self._scorer.log_any(contexts // self._base, tokens)

    def log_end(self, contexts: IntArray) -> FloatArray:
        """Compute the log probability that the text ends after each context, (R,) nats."""
        return self._scorer.log_end(contexts // self._base)

    def keep(self, contexts: IntArray) -> None:
        """Forget all contexts except these."""
        self._scorer.keep(np.unique(contexts // self._base))

    def full(self, contexts: IntArray) -> BoolArray:
        """Return True (R,) for contexts after which no piece fits."""
        full: BoolArray = contexts % self._base == self._most
        return full


@dataclass(frozen=True)
class Unreadable:
    """A text that the tokeniser cannot spell; it has no probability."""

    number: int  #: number of the text in the input, from 0
    parts: tuple[str, ...]  #: characters, or stretches, that no piece spells


@dataclass(frozen=True)
class Documents:
    """The texts that can be segmented, and the excluded ones."""

    documents: tuple[Document, ...]
    numbers: tuple[int, ...]  #: numbers of the documents in the input, from 0, ascending
    unreadable: tuple[Unreadable, ...]
    too_long: tuple[int, ...] = ()  #: numbers of the texts that `fitting` excluded, ascending

    def __len__(self) -> int:
        return len(self.documents)


def documents(
    model: TokenisedModel, texts: Sequence[str], builder: LatticeBuilder, path: str | Path | None = None
) -> Documents:
    """Read texts and build their lattices; exclude texts with characters that no piece spells.

    Args:
        model: model whose tokeniser reads the texts.
        texts: one document each.
        builder: builder of lattices over the pieces of the same tokeniser.
        path: file with the texts as lines, for messages.

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
    read_documents: list[Document] = []
    numbers: list[int] = []
    unreadable: list[Unreadable] = []
    for number, text in enumerate(track(texts, "lattices of the texts", len(texts))):
        try:
            read = tokenizer.read(text)
            if read.unreadable:
                unreadable.append(Unreadable(number, read.unreadable))
                continue
            lattice = builder.build(read.spelling)
            read_documents.append(Document(read, lattice, builder.path(lattice, read.canonical)))
            numbers.append(number)
        except InputError as error:
            where = "" if path is not None else f"text {number + 1}: "
            raise InputError(f"{where}{error}", path, number + 1) from error
    if not read_documents:
        parts = ", ".join(dict.fromkeys(repr(part) for text in unreadable for part in text.parts))
        raise NothingToMeasureError(
            f"none of the {len(texts)} texts can be segmented into pieces: no piece spells {parts}", "no-pieces", path
        )
    return Documents(tuple(read_documents), tuple(numbers), tuple(unreadable))


def fitting(model: TokenisedModel, documents: Documents) -> Documents:
    """Select the documents whose canonical tokenisation fits the model's window; exclude the others.

    Args:
        model: model that scores the segmentations.
        documents: from `documents`.

    Raises:
        InputError: no document fits.
    """
    long = [not canonical_fits(model, document) for document in documents.documents]
    if all(long):
        raise NothingToMeasureError(
            f"the window of {model.name}, {model.longest} tokens, is too short for all of the texts", "too-long"
        )
    fitting_rows = [i for i, wrong in enumerate(long) if not wrong]
    return replace(
        documents,
        documents=tuple(documents.documents[i] for i in fitting_rows),
        numbers=tuple(documents.numbers[i] for i in fitting_rows),
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
        one, two = (inventory.names[int(order[same[0] + i])] for i in (0, 1))
        raise InputError(
            f"the pieces {one!r} and {two!r} have the same number {int(ids[same[0]])}, so one sequence of tokens"
            " would be counted as two segmentations"
        )
