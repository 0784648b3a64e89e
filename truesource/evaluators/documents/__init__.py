"""The evaluator `documents`: a model beside the best readers of documents of an unknown language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from truesource.grammar.support.settings import Settings
from truesource.run.evaluator import Evaluator, Measure

if TYPE_CHECKING:
    from truesource.run.config import RunConfig


class DocumentsSettings(Settings):
    """A model and perfect readers, by string and position in the document; see docs/howto/documents.md."""

    sentences: int | None = Field(200, ge=2, description="Number of documents to use, from the first.")
    family: str | None = Field(
        None, description="How the languages were made: a language such as dirichlet-markov:vocabulary=8."
    )


def check(config: RunConfig) -> None:
    """Refuse a configuration with a family that is no language of documents."""
    check_call(config.evaluation.of(DocumentsSettings))


def check_call(settings: DocumentsSettings, **_: object) -> None:
    """Refuse a family that is no language of documents, before anything is computed.

    Raises:
        InputError: it is none.
    """
    family_of = DOCUMENTS.function("family_of")
    if settings.family is not None and family_of is not None:
        family_of(settings.family)


MEASURES = (
    Measure("kl", "KL", meaning="KL(truth‖model), nats a token"),
    Measure("kl_where_finite", "KL, where finite", meaning="the same, of the positions where it is finite"),
    Measure("kl_infinite", "KL infinite", meaning="share of positions"),
    Measure("kl_paired", "KL, paired", meaning="the same, of the tokens that stand there alone"),
    Measure("kl_family", "KL to the family", meaning="KL(family‖model), nats a token"),
    Measure("kl_family_where_finite", "KL to the family, where finite", meaning="the same"),
    Measure("family_above", "family above the truth", meaning="what a reader of the family loses, nats a token"),
    Measure(
        "weight_truth", "weight of the truth", ".3f", meaning="in the mixture of both that is nearest to the model"
    ),
    Measure("weight_family", "weight of the family", ".3f", meaning="the same"),
    Measure("rest", "KL to that mixture", meaning="KL(model‖mixture), nats a token"),
    Measure("entropy", "entropy of the language", meaning="that a perfect reader is left with, mean over tokens, nats"),
    Measure("regret", "regret of a perfect reader", meaning="for not being told the language, nats a token"),
)

DOCUMENTS = Evaluator(
    name="documents",
    title="Learning a language while reading",
    summary="Compare a model with the best readers of documents of an unknown language.",
    settings=DocumentsSettings,
    code=f"{__name__}.results",
    help="""Compare a model with the best readers of documents of an unknown language, by string and position.

    The truth of a pool knows its languages; its family knows only how they were made. A model that memorises comes
    near the first, one that generalises near the second.

    Example: truesource evaluate documents model/ corpus/ --oracle pool.npz --family dirichlet-markov:vocabulary=8
    """,
    prose=(
        "Nobody tells a reader the language of a document; the words so far tell. A perfect reader mixes the languages"
        " of the pool by Bayes' rule, and its entropy is what it does not know yet. A reader of the family knows only"
        " what the languages were drawn from. A model that has memorised the languages is near the first, one that"
        " learns each language anew, in the document, is near the second."
    ),
    measures=MEASURES,
    needs=("distributions", "words"),
    corrected=False,
    draws=True,
    applies=lambda model: model.of_words and model.is_causal,
    then="evaluate divergence {model} {corpus} --oracle {oracle} --by position",
)
