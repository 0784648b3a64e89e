"""The evaluator `pplu`: perplexity divided by the perplexity of word frequencies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from truesource.evaluation.core.evaluator import Evaluator, Measure
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import Settings

if TYPE_CHECKING:
    from truesource.evaluation.core.run_view import RunRequest


class PpluSettings(Settings):
    """Perplexity divided by the perplexity of word frequencies; see docs/howto/tendencies.md."""

    advanced: ClassVar = frozenset({"smoothing", "split_words", "beta", "senses"})
    repeated: ClassVar = frozenset({"split_words"})
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


def check(config: RunRequest) -> None:
    """Refuse a configuration without what the evaluator needs, by a ValueError."""
    settings = config.evaluation.of(PpluSettings)
    if settings.reduce and config.evaluation.frame == "paper":
        raise ValueError("evaluation.pplu.reduce counts every position; leave evaluation.frame paper out")
    if settings.unigram == "train" and settings.counted is None and "train" not in config.corpus.splits:
        raise ValueError("evaluation.pplu.unigram: train needs a split train, or counted")


def needs_truth(settings: PpluSettings) -> bool:
    """Return True if an option needs the truth of the text."""
    return bool(settings.senses)


def check_call(settings: PpluSettings, *, frame: str, figure: bool, **_: object) -> None:
    """Refuse options that do not go together.

    Raises:
        InputError: which.
    """
    if settings.reduce and frame == "paper":
        raise InputError("--reduce counts every position; leave --frame paper out")
    if figure and not settings.reduce:
        raise InputError("--figure draws the curves of --reduce; give both")


def needed(settings: PpluSettings) -> dict[str, str]:
    """Return the abilities that options need of a model; a run omits smaller vocabularies without them."""
    return {"words": "--reduce", "distributions": "--reduce"} if settings.reduce else {}


def uncorrected(settings: PpluSettings, frame: str) -> str:
    """Return the numbers whose truth does not exclude what the text excludes."""
    return "smaller vocabularies of the truth" if settings.reduce else ""


PPLU = Evaluator(
    name="pplu",
    title="What models know of context (PPLu)",
    summary="Measure what a model knows of context beyond word frequencies (PPLu).",
    settings=PpluSettings,
    code=f"{__package__}.report",
    help="""Measure what a model knows of context: its perplexity over the perplexity of word frequencies (PPLu).

    For the truth, -ln PPLu is the mutual information of a token and its context. With --oracle the share that a model
    has learned is exact.

    Example: truesource evaluate pplu model/ corpus/ --json pplu.json
    """,
    measures=(
        Measure("ppl", "PPL", ",.2f", "per token; lower is better"),
        Measure("bound", "  of the truth", ",.2f", "the lowest that a model can have on average"),
        Measure(
            "ppl_unigram",
            "PPL of word frequencies",
            ",.2f",
            "divisor of PPL; PPLu compares only between models with equal divisors",
        ),
        Measure("pplu", "PPLu", ".4f", "PPL over that; lower is better, below 1 is better than word frequencies"),
        Measure("pplu_bound", "  of the truth", ".4f"),
        Measure("mutual_information", "mutual information", ".4f", "of a token and its context in the language, nats"),
        Measure("information_learned", "  of the model", ".4f", "-ln PPLu of the model, nats"),
        Measure("share_learned", "  share learned", ".4f", "1 - KL / mutual information"),
    ),
    oracle=False,
    frame=True,
    compares=True,
    draws=True,
    then="evaluate divergence {model} {corpus}{oracle}",
    width=140,
)
