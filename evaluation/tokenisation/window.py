"""What a model can read of the segmentations of a text: those that fit its window, the most tokens that it takes.

A segmentation that does not fit has no probability that the model could give, and the sum over the segmentations that
fit is a lower bound of P(text). Here such a segmentation has probability zero, so that every estimator is one of that
sum: a draw that does not fit has weight zero, and no estimator is biased by drawing another in its place. The canonical
tokenisation has to fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from truesource.evaluation.tokenisation.estimators.estimate import Bound, Document
from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.generator.language_model import IncrementalScorer, TokenisedModel
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError

ADVICE = "divide the text"


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
    """Whether the model can read the canonical tokenisation."""
    most = most_pieces(model)
    return most is None or len(document.best) <= most


def every_segmentation_fits(model: TokenisedModel, document: Document) -> bool:
    """Whether the model can read every segmentation of a text, so that the sum over those that fit is P(text)."""
    most = most_pieces(model)
    return most is None or document.lattice.n <= most or longest_segmentation(document.lattice) <= most


def check_window(model: TokenisedModel, document: Document, advice: str = ADVICE) -> None:
    """Whether the model can score the canonical tokenisation, which every sum over segmentations is compared with.

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
    """How many texts have segmentations that the model cannot read."""
    return sum(not every_segmentation_fits(model, document) for document in documents)


def window_part(model: TokenisedModel, documents: Iterable[Document]) -> dict[str, object]:
    """For signatures: the window, where it leaves out segmentations of some text."""
    return {"window": model.longest} if beyond_window(model, documents) else {}


def narrowed(bound: Bound, model: TokenisedModel, document: Document) -> Bound:
    """What a value is for P(text) that is ``bound`` for the sum over the segmentations that fit."""
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
        """Of a model that has a window."""
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
        found = np.full(len(contexts), -np.inf)
        fits = ~self.full(contexts)
        if fits.any():
            found[fits] = self._scorer.log_prob(contexts[fits] // self._base, tokens[fits])
        return found

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
