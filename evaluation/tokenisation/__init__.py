"""Sums over the segmentations of a text into pieces (Cao & Rimell 2021): lattices, samples, estimators, evaluators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from truesource.grammar.support.settings import DEFAULT_SEED

Proposal = Literal["own", "fitted", "uniform"]


@dataclass(frozen=True, kw_only=True)
class EstimatorSettings:
    """Settings of all estimators; `Estimator.reads` lists the settings that change the value of one estimator.

    The configuration and the verb have the same defaults.
    """

    samples: int = 128  #: segmentations scored by path estimators
    b: float = 1.0  #: inverse temperature of the proposal; the model is never tempered
    seed: int = DEFAULT_SEED
    candidates: int = 128  #: segmentations of each word that guided estimators consider
    particles: int = 32  #: particles of dpf; samples of block importance sampling; width of the beam
    tail: bool = True  #: True if block and dpf also sample segmentations of a word beyond its candidates
    replicates: int = 4  #: independent filters of dpf, averaged; two or more give an error bar
    most_prefixes: int = 200_000  #: maximum number of contexts that exact enumeration visits in one document
    tolerance: float = 1e-3  #: maximum probability that ``bracket`` may omit, relative to the canonical tokenisation


@dataclass(frozen=True)
class EstimatorRun:
    """An estimator with its settings."""

    estimator: str  #: a name in `truesource.evaluation.tokenisation.estimators.registry.ESTIMATORS`
    settings: EstimatorSettings = field(default_factory=EstimatorSettings)


@dataclass(frozen=True, kw_only=True)
class TableRequest:
    """The tables to compute next to the estimates, in `truesource.evaluation.tokenisation.measure_sets`."""

    grid: bool  #: perplexities of the published estimators
    curves: bool  #: perplexity by number of segmentations, by their order, and by temperature
    caching: bool  #: losses of repeated words
    canonical: bool  #: how often the most probable segmentation of a word is canonical
    equal_cost: int  #: number of first documents on which to compare estimators at equal cost; 0: no comparison
    out_of_domain: Sequence[str]  #: other languages as changes of the grammar, such as ``zipf=0.5``
    words: bool  #: surprisals of words
    leave_out_long: bool  #: exclude sentences of other languages that are too long for the model; else refuse them

    @property
    def of_texts(self) -> TableRequest:
        """The requested tables that need only texts: no truth, and no separate file."""
        return replace(self, equal_cost=0, out_of_domain=(), words=False)
