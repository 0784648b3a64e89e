"""The part of a configuration that asks for sums over tokenisations."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from truesource.evaluation.tokenisation.measure_sets import check_set_names
from truesource.grammar.errors import InputError
from truesource.grammar.settings import Settings
from truesource.run.config import RunConfig


class TokenisationSettings(Settings):
    """Sums over the ways to cut a text into pieces, for the causal models of pieces; see docs/tokenisation.md."""

    estimators: list[str] = ["exact", "nbest", "wor1", "dpf"]  #: exact: only for models whose cuts can be enumerated
    samples: int = Field(128, ge=1)  #: cuts that path estimators score
    inverse_temperature: float = Field(1.0, ge=0.0, allow_inf_nan=False)  #: of what cuts are drawn from
    candidates: int = Field(8, ge=1)  #: cuts of each word that guided estimators look at
    particles: int = Field(16, ge=1)  #: of guided estimators
    replicates: int = Field(4, ge=1)  #: filters of dpf, averaged; one alone has no error bar
    tail: bool = True  #: block and dpf also draw cuts of a word that are not among the candidates
    tolerance: float = Field(1e-3, ge=0.0, le=1.0)  #: what bracket may leave out, over P of the tokeniser's own cut
    most_prefixes: int = Field(200_000, ge=1)  #: beginnings of cuts that exact and bracket may visit in a sentence
    proposal: Literal["own", "fitted", "uniform"] | None = None  #: None: the tokeniser's own scores, else fitted ones
    sentences: int = Field(200, ge=2)  #: the first so many of the split that is evaluated
    per_document: int = Field(1, ge=1)  #: consecutive sentences that are one document, for the distance to the truth
    equal_cost: int = Field(6, ge=0)  #: all estimators by cost and error, on the first so many sentences; 0: not
    out_of_domain: list[str] = []  #: also sentences of the grammar changed, such as zipf=0.5 or respell=0.5
    also: dict[str, str] = {}  #: other texts by name, a document a line, relative to the configuration
    grid: bool = False  #: also the perplexities of the published estimators, by set where there are other texts
    before: str | None = None  #: what comes before a text, in place of the model's own token: eos, or a token of theirs
    end: bool = True  #: whether P includes the end of a text; false: there is no distance to the truth

    @model_validator(mode="after")
    def _estimators_are_known(self) -> Self:
        from truesource.evaluation.tokenisation.domain_shift import parse_change
        from truesource.evaluation.tokenisation.measure import check_estimators

        try:
            check_estimators(self.estimators, self.samples)
            for change in self.out_of_domain:
                parse_change(change)
        except InputError as error:
            raise ValueError(str(error)) from error
        return self

    @model_validator(mode="after")
    def _truth_needs_the_end(self) -> Self:
        if not self.end and (self.out_of_domain or self.per_document > 1):
            raise ValueError("out_of_domain and per_document are of the distance to the truth, which needs end: true")
        return self


def check(config: RunConfig) -> None:
    """Refuse a configuration without what the evaluator needs, by a ValueError."""
    asked = config.evaluation.of(TokenisationSettings)
    counted = [model.name for model in config.models if model.of_pieces and model.resolve()[0].counts]
    if counted and (asked.before is not None or not asked.end):
        raise ValueError(
            f"evaluation.tokenisation.before and end are for networks, and {counted[0]} counts n-grams of pieces;"
            " leave them out, or the model"
        )
    try:
        check_set_names([config.evaluation.split, *asked.also])
    except InputError as error:
        raise ValueError(f"evaluation.tokenisation.also: {error}") from error
