"""What can be set of the evaluator `naturalness`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from truesource.grammar.support.settings import Settings

if TYPE_CHECKING:
    from truesource.run.config import RunConfig


class NaturalnessSettings(Settings):
    """The corpus compared with held-out trees: word frequencies, sentence lengths, n-grams; needs a treebank."""

    sentences: int = Field(
        10_000, ge=2, description="Maximum number of sentences of each source; grammars generate as many."
    )
    variant: Literal["default", "paper"] = Field(
        "default", description="Use the published definitions (paper): n-grams of the reference, fit of Zipf's law."
    )


def check(config: RunConfig) -> None:
    """Refuse a configuration without what the evaluator needs, by a ValueError."""
    if config.treebank is None:
        raise ValueError("evaluation.naturalness compares with held-out trees, so it needs a treebank")
