"""All estimators of log P(D) by name, with the kind of bound of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import Bound, Document, Estimate
from truesource.evaluation.tokenisation.estimators import paths
from truesource.evaluation.tokenisation.estimators.exact import TooManyContextsError, bracket, exact
from truesource.evaluation.tokenisation.estimators.guided import guided
from truesource.evaluation.tokenisation.estimators.sequential import beam, block_importance, particle_filter
from truesource.generator.piece_model import TokenisedModel
from truesource.grammar.support.errors import InputError

ONE_BEST = "one-best"  #: the canonical tokenisation T*; every evaluation has it
_SAMPLER = ("samples", "b", "seed")
_BLOCK = ("b", "seed", "candidates", "particles", "tail")
EstimatorFunction: TypeAlias = Callable[[TokenisedModel, Document, EstimatorSettings], Estimate]
PathEstimator: TypeAlias = Callable[[paths.Segmentations], Estimate]
_BOTH: dict[str, tuple[PathEstimator, str, Bound, int, tuple[str, ...]]] = {
    "nbest": (paths.nbest, "the best segmentations under the scores of their pieces", "lower", 1, ("samples",)),
    "wr": (paths.wr, "importance sampling with replacement", "unbiased", 1, _SAMPLER),
    "wr1": (paths.wr1, "the canonical tokenisation, and importance sampling of the others", "unbiased", 2, _SAMPLER),
    "wor": (paths.wor, "importance sampling without replacement", "unbiased", 2, _SAMPLER),
    "wor1": (
        paths.wor1,
        "the canonical tokenisation, and sampling of the others without replacement",
        "unbiased",
        3,
        _SAMPLER,
    ),
}


@dataclass(frozen=True)
class Estimator:
    """An estimator, with its function and the kind of bound it gives."""

    run: EstimatorFunction
    summary: str  #: one line
    bound: Bound  #: kind of bound of the value; a single estimate may still be exact
    reads: tuple[str, ...]  #: the settings that change the value, in the order of signatures
    #: the sum that it estimates or bounds: over all segmentations, or over consistent ones (P_cons <= P)
    target: Literal["P", "P_cons"] = "P"
    fewest: int = 1  #: minimum of `EstimatorSettings.samples`


def _over(name: str, estimator: PathEstimator, *, consistent: bool = False) -> EstimatorFunction:
    def run(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
        return estimator(paths.Segmentations(name, model, document, settings, consistent=consistent))

    return run


def _auto(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    try:
        return exact(model, document, settings)
    except TooManyContextsError:
        return ESTIMATORS["dpf"].run(model, document, settings)


ESTIMATORS: dict[str, Estimator] = {
    "auto": Estimator(
        _auto, "exact if enumeration is possible, else dpf", "unbiased", (*_BLOCK, "replicates", "most_prefixes")
    ),
    "exact": Estimator(exact, "the sum over all segmentations, common prefixes once", "exact", ()),
    "bracket": Estimator(
        bracket,
        "enumeration without improbable prefixes, with a certain upper bound",
        "lower",
        ("tolerance", "most_prefixes"),
    ),
    ONE_BEST: Estimator(_over(ONE_BEST, paths.one_best), "only the canonical tokenisation", "lower", ()),
    **{
        name: Estimator(_over(name, run), summary, bound, reads, fewest=fewest)
        for name, (run, summary, bound, fewest, reads) in _BOTH.items()
    },
    "distinct": Estimator(
        _over("distinct", paths.distinct), "the distinct segmentations among repeated samples", "lower", _SAMPLER
    ),
    "block": Estimator(
        block_importance, "importance sampling, word by word in proportion to the model", "unbiased", _BLOCK
    ),
    "dpf": Estimator(
        particle_filter, "the discrete particle filter, word by word", "unbiased", (*_BLOCK, "replicates")
    ),
    "beam": Estimator(
        beam, "the final segmentations of a beam search, word by word", "lower", ("candidates", "particles")
    ),
    "guided": Estimator(guided, "importance sampling from the model, piece by piece", "unbiased", ("samples", "seed")),
    **{
        f"consistent-{name}": Estimator(
            _over(f"consistent-{name}", run, consistent=True),
            f"{summary}; equal words are segmented alike",
            "part" if bound == "unbiased" else bound,
            reads,
            "P_cons",
            fewest,
        )
        for name, (run, summary, bound, fewest, reads) in _BOTH.items()
    },
}


def check_estimator(name: str, samples: int) -> None:
    """Check that the estimator exists and has enough samples.

    Raises:
        InputError: it does not exist, or has too few samples.
    """
    if name not in ESTIMATORS:
        raise InputError(f"there is no estimator {name!r}; choose one of {', '.join(ESTIMATORS)}")
    if samples < ESTIMATORS[name].fewest:
        raise InputError(f"{name} needs at least {ESTIMATORS[name].fewest} samples, got {samples}")
