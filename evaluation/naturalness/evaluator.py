"""The evaluator `naturalness`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from truesource.evaluation.core.evaluator import Evaluator
from truesource.grammar.support.settings import Settings

if TYPE_CHECKING:
    from truesource.evaluation.core.run_view import RunRequest


class NaturalnessSettings(Settings):
    """The corpus compared with held-out trees: word frequencies, sentence lengths, n-grams; needs a treebank."""

    advanced: ClassVar = frozenset({"definitions"})
    sentences: int = Field(
        10_000, ge=2, description="Maximum number of sentences of each source; grammars generate as many."
    )
    definitions: Literal["default", "paper"] = Field(
        "default", description="Definitions of n-gram agreement and of the fit of Zipf's law; paper: as published."
    )


def check(config: RunRequest) -> None:
    """Refuse a configuration without what the evaluator needs, by a ValueError."""
    if config.treebank is None:
        raise ValueError("evaluation.naturalness compares with held-out trees, so it needs a treebank")


NATURALNESS = Evaluator(
    name="naturalness",
    title="How natural the corpus looks",
    summary="Compare corpora and grammars with a treebank: words, lengths, n-grams.",
    code=f"{__package__}.report",
    declared=False,
    of_corpus=False,
    settings=NaturalnessSettings,
)
