"""The evaluator `tokenisation`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from pydantic import Field, model_validator

from truesource.evaluation.core.evaluator import Evaluator
from truesource.evaluation.tokenisation import EstimatorSettings as Engine
from truesource.evaluation.tokenisation import Proposal, TableRequest
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import Settings

if TYPE_CHECKING:
    from truesource.evaluation.core.run_view import RunRequest


T = TypeVar("T", Engine, TableRequest)


class TokenisationSettings(Settings):
    """Settings of marginal probabilities of texts under causal models of pieces; see docs/howto/tokenisation.md."""

    advanced: ClassVar = frozenset(
        {
            "inverse_temperature",
            "replicates",
            "tail",
            "tolerance",
            "most_prefixes",
            "proposal",
            "leave_out_long",
            "end",
            "before",
            "grid",
            "curves",
            "caching",
            "canonical",
            "equal_cost",
        }
    )
    estimators: tuple[str, ...] = Field(
        ("exact", "nbest", "wor1", "dpf"),
        description="Estimators: exact, bracket, beam, nbest, wr, wor, guided, block, dpf, and more.",
    )
    samples: int = Field(Engine.samples, ge=1, description="Segmentations that nbest, wr, wor, guided, ... score.")
    inverse_temperature: float = Field(
        Engine.b, ge=0.0, allow_inf_nan=False, description="Inverse temperature of the proposal; 0: uniform."
    )
    candidates: int = Field(
        Engine.candidates, ge=1, description="Segmentations of a word that block, dpf and beam consider."
    )
    particles: int = Field(
        Engine.particles, ge=1, description="Particles of dpf and block; width of beam. For intervals, use 16 or more."
    )
    replicates: int = Field(Engine.replicates, ge=1, description="Averaged dpf filters; a single one has no interval.")
    tail: bool = Field(Engine.tail, description="Let block and dpf also sample segmentations beyond the candidates.")
    tolerance: float = Field(
        Engine.tolerance,
        ge=0.0,
        le=1.0,
        description="Maximum mass that bracket may omit, relative to the canonical tokenisation.",
    )
    most_prefixes: int = Field(
        Engine.most_prefixes, ge=1, description="Maximum number of prefixes that exact and bracket expand per text."
    )
    proposal: Proposal | None = Field(
        None, description="Scores to sample by: own, fitted (EM) or uniform; default: own, else fitted."
    )
    sentences: int | None = Field(200, ge=1, description="Number of documents to use of each text, from the first.")
    per_document: int = Field(
        1, ge=1, description="Consecutive sentences that form a document, for the distance to the truth."
    )
    leave_out_long: bool = Field(True, description="Exclude texts that are too long for the model, or refuse them.")
    before: str | None = Field(None, description="Token before a text, if the model has none: eos, or another token.")
    end: bool = Field(True, description="Include the end of a text in its probability.")
    also: dict[str, Path] = Field({}, description="Another text or treebank (.mrg) to compare with the first.")
    out_of_domain: tuple[str, ...] = Field(
        (), description="Also measure sentences of a changed grammar: zipf=0.5, temperature=1.5, respell=0.5."
    )
    grid: bool = Field(False, description="Also run the estimators of Cao and Rimell (2021), their table 1.")
    curves: bool = Field(False, description="Also show perplexity by number of segmentations, order and temperature.")
    caching: bool = Field(False, description="Also measure the loss of words that recur in a document.")
    canonical: bool = Field(False, description="Also test if the most probable segmentation of words is canonical.")
    equal_cost: int = Field(0, ge=0, description="Also compare all estimators by cost, on this number of documents.")

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        from truesource.evaluation.tokenisation.domain_shift import parse_change
        from truesource.evaluation.tokenisation.measure import check_estimators

        try:
            check_estimators(self.estimators, self.samples)
            for change in self.out_of_domain:
                parse_change(change)
        except InputError as error:
            raise ValueError(str(error)) from error
        if not self.end and (self.out_of_domain or self.per_document > 1):
            raise ValueError("out_of_domain and per_document need the end of texts; remove them, or end: false")
        return self

    def engine(self, seed: int) -> Engine:
        """Return the settings of the estimators."""
        return self._parts(Engine, seed=seed, b=self.inverse_temperature)

    def wanted(self, *, words: bool) -> TableRequest:
        """Return the request for further tables; ``words``: also surprisals of words."""
        return self._parts(TableRequest, words=words)

    def _parts(self, kind: Callable[..., T], **more: Any) -> T:
        names = (field.name for field in fields(kind))  # type: ignore[arg-type]
        return kind(**more, **{name: getattr(self, name) for name in names if name not in more})


def check(config: RunRequest) -> None:
    """Raise `ValueError` if a configuration lacks what the evaluator needs."""
    from truesource.evaluation.tokenisation.measure_sets import check_set_names

    settings = config.evaluation.of(TokenisationSettings)
    counted = [model.name for model in config.models if model.of_pieces and not model.is_network]
    if counted and (settings.before is not None or not settings.end):
        raise ValueError(
            f"evaluation.tokenisation.before and end are for networks, and {counted[0]} counts n-grams of pieces;"
            " remove them, or the model"
        )
    try:
        check_set_names([config.evaluation.split, *settings.also])
    except InputError as error:
        raise ValueError(f"evaluation.tokenisation.also: {error}") from error


TOKENISATION = Evaluator(
    name="tokenisation",
    title="Sums over segmentations",
    summary="Sum the probability of a text over its segmentations.",
    code=f"{__package__}.report",
    declared=False,
    of_corpus=False,
    settings=TokenisationSettings,
)
