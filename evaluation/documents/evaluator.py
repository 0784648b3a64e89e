"""The evaluator `documents`: a model compared with the best readers of documents of an unknown language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from truesource.evaluation.core.evaluator import Evaluator, Measure
from truesource.grammar.support.settings import Settings

if TYPE_CHECKING:
    from truesource.evaluation.core.run_view import RunRequest

MEASURES = (
    Measure("kl", "KL", meaning="KL(truth‖model), nats a token"),
    Measure("kl_where_finite", "KL, where finite", meaning="the same, of the positions with finite KL"),
    Measure("kl_infinite", "KL infinite", meaning="share of positions"),
    Measure("kl_paired", "KL, paired", meaning="the same, estimated from the observed tokens"),
    Measure("weight_truth", "weight of the truth", ".3f", meaning="in the mixture of all that is nearest to the model"),
    Measure("rest", "KL to that mixture", meaning="KL(model‖mixture), nats a token"),
    Measure("entropy", "entropy of the language", meaning="that a perfect reader is left with, mean over tokens, nats"),
    Measure("regret", "regret of a perfect reader", meaning="for not knowing the language, nats a token"),
)


class DocumentsSettings(Settings):
    """A model and perfect readers, by string and position in the document; see docs/howto/documents.md."""

    sentences: int | None = Field(200, ge=2, description="Number of documents to use, from the first.")
    family: dict[str, str] = Field({}, description="Prior of the languages, or another strategy; repeatable.")
    snapshots: bool = Field(False, description="Measure the snapshots along the training, too.")

    @field_validator("family", mode="before")
    @classmethod
    def _one_family(cls, family: object) -> object:
        return {family: family} if isinstance(family, str) else family or {}


def check(config: RunRequest) -> None:
    """Refuse a configuration with a family that is no language of documents, or without the snapshots it asks for."""
    settings = config.evaluation.of(DocumentsSettings)
    check_families(settings)
    if settings.snapshots and not any(model.keeps_snapshots for model in config.models):
        raise ValueError(
            "evaluation.documents.snapshots needs a model with snapshots; set its training.snapshots to log"
        )


def check_call(settings: DocumentsSettings, *, model: str, **_: object) -> None:
    """Refuse a family that is no language of documents, and a model without snapshots, before anything is computed.

    Raises:
        InputError: the family is something else, or the model has no snapshots.
    """
    from truesource.lmtrain.references import model_reference
    from truesource.lmtrain.snapshots import checkpoints

    check_families(settings)
    folder = model_reference(model).folder
    if settings.snapshots and folder is not None:
        checkpoints(folder)


def check_families(settings: DocumentsSettings) -> None:
    """Refuse a family that is no language of documents.

    Raises:
        InputError: the family is something else.
    """
    family_of = DOCUMENTS.function("family_of")
    if family_of is not None:
        for reference in settings.family.values():
            family_of(reference)


DOCUMENTS = Evaluator(
    name="documents",
    title="Learning a language while reading",
    summary="Compare a model with optimal learners of the unknown language of a document.",
    settings=DocumentsSettings,
    code=f"{__package__}.report",
    help="""Compare a model with the best readers of documents of an unknown language, by string and position.

    The truth of a pool knows its languages; its family knows only how they were made. A model that memorises comes
    near the first, one that generalises near the second. Other strategies are families too, up to seven in all.

    Example: truesource evaluate documents model/ corpus/ --oracle pool.npz --family dirichlet-markov:vocabulary=8
    """,
    prose=(
        "A reader infers the language of a document from the words so far. A perfect reader mixes the languages"
        " of the pool by Bayes' rule, and its entropy is the remaining uncertainty. A reader of the family knows only"
        " the prior of the languages. A model that has memorised the languages is near the first, one that"
        " learns each language anew, in the document, is near the second."
    ),
    measures=MEASURES,
    corrected=False,
    draws=True,
    whole_models=False,
    applies=lambda model: model.of_words and model.is_causal,
    then="evaluate divergence {model} {corpus}{oracle} --by position",
)
