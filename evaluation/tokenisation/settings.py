"""Settings of estimators of a marginal log probability."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class EstimatorSettings:
    """Of all estimators; `Estimator.reads` lists those that change the value of one.

    The defaults are also those of the configuration and of the verb.
    """

    samples: int = 128  #: segmentations scored by path estimators
    b: float = 1.0  #: inverse temperature of the proposal; the model is never tempered
    seed: int = 1
    candidates: int = 8  #: segmentations of each word that guided estimators consider
    particles: int = 16  #: of the discrete particle filter; samples of block importance sampling; width of the beam
    tail: bool = True  #: whether block and dpf also sample segmentations of a word that are not on its list
    replicates: int = 4  #: independent filters of dpf, averaged; two or more give an error bar
    most_prefixes: int = 200_000  #: maximum number of contexts that exact enumeration visits in one document
    tolerance: float = 1e-3  #: largest probability that ``bracket`` may omit, relative to the canonical tokenisation


@dataclass(frozen=True)
class EstimatorRun:
    """An estimator with its settings."""

    estimator: str  #: a name in `truesource.evaluation.tokenisation.estimators.registry.ESTIMATORS`
    settings: EstimatorSettings = field(default_factory=EstimatorSettings)
