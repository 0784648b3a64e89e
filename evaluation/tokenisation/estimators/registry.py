"""All estimators of log P(D) by name, with what each one promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from truesource.evaluation.tokenisation.estimators import paths
from truesource.evaluation.tokenisation.estimators.beam import beam
from truesource.evaluation.tokenisation.estimators.block_importance import block_importance
from truesource.evaluation.tokenisation.estimators.bracket import bracket
from truesource.evaluation.tokenisation.estimators.consistent import ConsistentCuts
from truesource.evaluation.tokenisation.estimators.estimate import Bound, Document, Estimate, Settings
from truesource.evaluation.tokenisation.estimators.exact import TooManyContextsError, exact
from truesource.evaluation.tokenisation.estimators.guided import guided
from truesource.evaluation.tokenisation.estimators.particle_filter import particle_filter
from truesource.evaluation.tokenisation.estimators.paths import CutSource, LatticeCuts
from truesource.generator.piece_model import TokenisedModel
from truesource.grammar.errors import InputError

Run: TypeAlias = Callable[[TokenisedModel, Document, Settings], Estimate]
FromCuts: TypeAlias = Callable[[str, CutSource, TokenisedModel, Document, Settings], Estimate]


@dataclass(frozen=True)
class Method:
    """An estimator, and what its value is."""

    run: Run
    summary: str  #: one line
    bound: Bound  #: of the value; an estimate says of itself where it is exact after all
    #: which sum it is an estimate or a bound of: over all cuts, or over those that cut equal words alike (P_cons <= P)
    target: Literal["P", "P_cons"] = "P"
    fewest: int = 1  #: the least ``Settings.samples`` it can do with


def _over(source: type[LatticeCuts] | type[ConsistentCuts], name: str, estimator: FromCuts) -> Run:
    def run(model: TokenisedModel, document: Document, settings: Settings) -> Estimate:
        _check_samples(name, settings)
        return estimator(name, source(model, document, settings), model, document, settings)

    return run


def _auto(model: TokenisedModel, document: Document, settings: Settings) -> Estimate:
    try:
        return exact(model, document, settings)
    except TooManyContextsError:
        return METHODS["dpf"].run(model, document, settings)


def _check_samples(name: str, settings: Settings) -> None:
    if settings.samples < METHODS[name].fewest:
        raise InputError(f"{name} needs at least {METHODS[name].fewest} samples, not {settings.samples}")


_BOTH: dict[str, tuple[FromCuts, str, Bound, int]] = {
    "nbest": (paths.nbest, "the best cuts under the scores of their pieces", "lower", 1),
    "wr": (paths.wr, "importance sampling with replacement", "unbiased", 1),
    "wr1": (paths.wr1, "the tokeniser's cut, and importance sampling of the others", "unbiased", 2),
    "wor": (paths.wor, "importance sampling without replacement", "unbiased", 2),
    "wor1": (paths.wor1, "the tokeniser's cut, and sampling of the others without replacement", "unbiased", 3),
}

METHODS: dict[str, Method] = {
    "auto": Method(_auto, "exact where enumeration can be done, else dpf", "unbiased"),
    "exact": Method(exact, "the sum over all cuts, common beginnings once", "exact"),
    "bracket": Method(bracket, "enumeration without improbable beginnings, with a certain upper bound", "lower"),
    "one-best": Method(paths.one_best, "the tokeniser's cut alone", "lower"),
    **{
        name: Method(_over(LatticeCuts, name, run), summary, bound, fewest=fewest)
        for name, (run, summary, bound, fewest) in _BOTH.items()
    },
    "distinct": Method(paths.distinct, "the different cuts among draws with replacement", "lower"),
    "block": Method(block_importance, "importance sampling, word by word in proportion to the model", "unbiased"),
    "dpf": Method(particle_filter, "the discrete particle filter, word by word", "unbiased"),
    "beam": Method(beam, "the cuts that a beam ends with, word by word", "lower"),
    "guided": Method(guided, "importance sampling from the model, piece by piece", "unbiased"),
    **{
        f"consistent-{name}": Method(
            _over(ConsistentCuts, f"consistent-{name}", run),
            f"{summary}; equal words are cut alike",
            "part" if bound == "unbiased" else bound,
            "P_cons",
            fewest,
        )
        for name, (run, summary, bound, fewest) in _BOTH.items()
    },
}
