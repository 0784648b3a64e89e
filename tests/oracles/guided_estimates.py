"""Documents of toy models, repeated estimates of them, and scorers that write down what they read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from piece_models import AB_PIECES, ToyPieceModel, ToyScorer, toy_inventory

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import Document, Estimate, documents
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.generator.piece_model import TokenisedModel
from truesource.grammar.support.arrays import FloatArray, IntArray

AB = toy_inventory(AB_PIECES)
LONG_WORD = "abababa"  #: 80 cuts
THREE_WORDS = "abab ba aba"  #: 312 cuts
Estimator = Callable[[TokenisedModel, Document, EstimatorSettings], Estimate]


def document_of(model: TokenisedModel, text: str) -> Document:
    return documents(model, [text], LatticeBuilder(model.pieces.inventory)).documents[0]


def repeated(
    estimator: Estimator, model: TokenisedModel, text: str, settings: EstimatorSettings, n: int
) -> list[Estimate]:
    """Estimates at seeds 0 to n - 1."""
    document = document_of(model, text)
    return [estimator(model, document, replace(settings, seed=seed)) for seed in range(n)]


def ratios(estimates: list[Estimate], log_truth: float) -> FloatArray:
    """Each estimate over the truth."""
    return np.array([math.exp(estimate.log_p - log_truth) for estimate in estimates])


def z_score(values: FloatArray, expected: float = 1.0) -> float:
    """How many standard errors the mean of independent values is from what is expected."""
    return float((values.mean() - expected) / (values.std(ddof=1) / math.sqrt(len(values))))


class RecordingModel(ToyPieceModel):
    """Remembers, for its last scorer, every text that was read."""

    def incremental_scorer(self) -> ToyScorer:
        self.last = _RecordingScorer(self)
        return self.last


class _RecordingScorer(ToyScorer):
    def __init__(self, model: ToyPieceModel) -> None:
        super().__init__(model)
        self.texts: list[tuple[int, ...]] = []
        self.most_held = 0

    def extend(self, contexts: IntArray, tokens: IntArray) -> IntArray:
        pairs = zip(contexts.tolist(), tokens.tolist(), strict=True)
        self.texts += [(*self._text[context], token) for context, token in pairs]
        found = super().extend(contexts, tokens)
        self.most_held = max(self.most_held, self.held)
        return found
