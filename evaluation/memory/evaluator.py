"""The evaluator `memory`: training sentences compared with fresh ones, by exact likelihood ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from truesource.evaluation.core.evaluator import Evaluator, Measure
from truesource.grammar.support.settings import Settings

if TYPE_CHECKING:
    from truesource.evaluation.core.run_view import RunRequest

MEASURES = (
    Measure("auroc", "membership, AUROC", ".3f", "how well the ratio tells training from fresh sentences; .5: not"),
    Measure("memorised", "memorised", ".3f", "bits a training sentence above the mean of fresh ones, 0 if below"),
    Measure("memorised_fresh", "the same of fresh ones", ".3f", "what scatter alone makes of it"),
    Measure("memorised_total", "memorised in all", ".1f", "bits, of all training sentences that were scored"),
    Measure("gap", "gap", ".3f", "mean ratio of training sentences less the mean of fresh ones, bits a sentence"),
    Measure("ratio_members", "ratio, training", ".3f", "mean of log2 Q - log2 P of training sentences, bits"),
    Measure("ratio_fresh", "ratio, fresh", ".3f", "the same of fresh ones"),
)


class MemorySettings(Settings):
    """Settings of memorisation, measured against fresh sentences; see docs/howto/memory.md."""

    members: str = Field("train", min_length=1, description="Split that the model was trained on.")
    #: of the training text and of the fresh one
    sentences: int | None = Field(1000, ge=2, description="Number of sentences to use, from the first.")
    unseen: bool = Field(False, description="Exclude fresh sentences that also occur in the training text.")


def check(config: RunRequest) -> None:
    """Refuse a configuration without what the evaluator needs, by a ValueError."""
    settings, split = config.evaluation.of(MemorySettings), config.evaluation.split
    if settings.members not in config.corpus.splits:
        raise ValueError(f"evaluation.memory.members: {settings.members!r} is not among the splits of the corpus")
    if settings.members == split:
        raise ValueError(f"evaluation.memory.members: {split} is what models are measured on; name another split")


MEMORY = Evaluator(
    name="memory",
    title="Memorised or learned",
    summary="Measure what a model has memorised of its training sentences, compared with fresh ones.",
    settings=MemorySettings,
    code=f"{__package__}.report",
    help="""Measure what a model has memorised of its training sentences, compared with fresh ones of the same language.

    The ratio of the model's probability of a sentence to the exact one is the same for both if it has learned only the
    language.

    Example: truesource evaluate memory model/ corpus/ --members train --figure memory.svg
    """,
    prose=(
        "A model that knows the language, and nothing of its training sentences, gives these the same ratios Q/P to the"
        " exact probability as fresh ones. What a training sentence has above the mean ratio of the fresh ones is"
        " memorised. AUROC is the probability that a training sentence has a larger ratio than a fresh one: .5 is"
        " chance."
    ),
    measures=MEASURES,
    corrected=False,
    draws=True,
    then="evaluate divergence {model} {corpus}{oracle}",
)
