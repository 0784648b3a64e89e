"""The evaluator `dynamics`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from truesource.evaluation.core.evaluator import Evaluator
from truesource.evaluation.dynamics import CurveSettings

if TYPE_CHECKING:
    from truesource.evaluation.core.run_view import RunRequest


CurveMeasure = Literal["mean", "median", "kl"]


class DynamicsSettings(CurveSettings):
    """The settings of learning curves of models with snapshots; see docs/howto/dynamics.md."""

    advanced: ClassVar = frozenset({"classes", "only"})
    repeated: ClassVar = frozenset({"only"})
    classes: Path | None = Field(None, description="File that maps tags to classes (default: Penn Treebank tags).")
    only: tuple[str, ...] = Field((), description="Classes to show in tables and figures (default: all).")
    measure: CurveMeasure = Field(
        "mean", description="Measure in figures: mean or median of ln Q - ln P, or the exact KL divergence."
    )
    sentences: int | None = Field(None, ge=2, description="Number of sentences to use, from the first (default: all).")

    @model_validator(mode="after")
    def _measured(self) -> Self:
        if self.measure == "kl" and not self.contexts:
            raise ValueError("measure: contexts 0 gives no exact KL divergence; raise contexts")
        return self


def check(config: RunRequest) -> None:
    """Raise `ValueError` if a configuration lacks what the evaluator needs."""
    if not any(model.keeps_snapshots for model in config.models):
        raise ValueError("evaluation.dynamics needs a model with snapshots; set its training.snapshots to log")
    settings, frame = config.evaluation.of(DynamicsSettings), config.evaluation.frame
    if settings.tags == "paper" and config.corpus.trees == "none":
        raise ValueError("evaluation.dynamics.tags: paper needs corpus.trees; or use tags: drawn")
    if settings.measure == "kl" and frame != "default":
        raise ValueError(f"evaluation.dynamics.measure: there is no exact KL divergence in the frame {frame}")


def check_call(settings: DynamicsSettings, *, model: str, **_: object) -> None:
    """Refuse a model without snapshots before any work is done.

    Raises:
        InputError: it has no snapshots, or the libraries of networks are not installed.
    """
    from truesource.grammar.support.errors import require_extras
    from truesource.lmtrain.references import model_reference
    from truesource.lmtrain.snapshots import checkpoints

    named = model_reference(model)
    if named.folder is not None:
        require_extras("`truesource evaluate dynamics`", "lm")
        checkpoints(named.folder)


def uncorrected(settings: DynamicsSettings, frame: str) -> str:
    """Name the numbers whose truth does not exclude the sentences that the text excludes."""
    return "exact divergences (kl)" if settings.contexts and frame == "default" else ""


DYNAMICS = Evaluator(
    name="dynamics",
    title="What is learned when",
    summary="Compare snapshots of a model during training with the truth.",
    settings=DynamicsSettings,
    code=f"{__package__}.report",
    help="""Compare every snapshot of a model with the exact truth: what it learns first, and what it still lacks.

    The measure is ln Q - ln P of each token; 0 is perfect. `--set training.snapshots=log` in training saves snapshots.

    Example: truesource evaluate dynamics model/ corpus/ --figure dynamics.svg
    """,
    frame=True,
    draws=True,
    whole_models=False,
    applies=lambda model: model.keeps_snapshots,
    then="evaluate divergence {model} {corpus}{oracle} --by class",
)
