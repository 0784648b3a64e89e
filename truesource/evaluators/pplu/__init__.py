"""The evaluator `pplu`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from truesource.grammar.support.settings import Settings
from truesource.run.evaluator import Evaluator

if TYPE_CHECKING:
    from truesource.run.config import RunConfig


class PpluSettings(Settings):
    """Perplexity over that of word frequencies; see docs/howto/tendencies.md."""

    unigram: Literal["oracle", "train", "test", "model"] | None = Field(
        None, description="Word frequencies: exact (oracle), or of training text, scored text, samples."
    )
    counted: Path | None = Field(
        None, description="Text to count: for train (default: the train split), or samples for model."
    )
    smoothing: float | None = Field(
        None, ge=0.0, description="Added to every count (default: 0.5 for train and model, 0 for test)."
    )
    reduce: bool = Field(False, description="Also measure smaller vocabularies, in three ways.")
    split_words: tuple[str, ...] = Field((), description="Also split these words at random; `all` means every word.")
    beta: float = Field(0.5, gt=0.0, lt=1.0, description="Probability of the first half of a split word.")
    senses: int = Field(0, ge=0, description="Number of sentences to sample for splitting words by their tags.")
    rank: int = Field(0, ge=0, description="Number of first and last sentences to list, by PPL and by PPLu.")

    @model_validator(mode="after")
    def _text_is_counted(self) -> Self:
        if self.counted is not None and self.unigram not in ("train", "model"):
            raise ValueError("counted is the text that unigram train or model counts; give both")
        if self.counted is None and self.unigram == "model":
            raise ValueError("unigram model counts samples of the model; name their text as counted")
        return self


def check(config: RunConfig) -> None:
    """Refuse a configuration without what the evaluator needs, by a ValueError."""
    settings = config.evaluation.of(PpluSettings)
    if settings.reduce and config.evaluation.frame == "paper":
        raise ValueError("evaluation.pplu.reduce counts every position; leave evaluation.frame paper out")
    if settings.unigram == "train" and settings.counted is None and "train" not in config.corpus.splits:
        raise ValueError("evaluation.pplu.unigram: train needs a split train, or counted")


PPLU = Evaluator(
    name="pplu",
    title="What models know of context (PPLu)",
    summary="Measure what a model knows of context beyond word frequencies (PPLu).",
    package=__name__,
    settings=PpluSettings,
)
