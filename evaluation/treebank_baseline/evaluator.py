"""The evaluator `treebank_baseline`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from truesource.evaluation.core.evaluator import Evaluator
from truesource.grammar.support.settings import Settings

if TYPE_CHECKING:
    from truesource.evaluation.core.run_view import RunRequest


class TreebankBaselineSettings(Settings):
    """The settings of training each model also on the treebank, and scoring it on held-out sentences."""

    advanced: ClassVar = frozenset({"max_epochs", "dev", "stopping", "disjoint"})
    yaml_only = frozenset({"max_epochs", "equal_text", "dev", "stopping", "disjoint"})
    max_epochs: float = Field(
        50.0,
        gt=0.0,
        description="As many steps as on the corpus, but at most this many epochs (Jumelet & Zuidema: 50).",
    )
    equal_text: bool = Field(True, description="Also train on sampled text of the size of the treebank.")
    dev: float = Field(0.05, ge=0.0, lt=0.9, description="Share of the training trees held out for the dev loss.")
    stopping: Literal["best", "last"] = Field(
        "best", description="Checkpoint of a network to score: the best on dev, or the last."
    )
    disjoint: bool = Field(False, description="Exclude held-out sentences that also occur in the training text.")


def check(config: RunRequest) -> None:
    """Raise `ValueError` if a configuration lacks what the evaluator needs."""
    key = "evaluation.treebank_baseline"
    bank = config.treebank
    if bank is None:
        raise ValueError(f"{key} trains on the sentences that the grammar was induced from, so it needs a treebank")
    if bank.held_out_files is None and bank.held_out == 0.0:
        raise ValueError(f"{key} scores held-out sentences; set treebank.held_out or treebank.held_out_files")
    if config.corpus.transform is not None:
        raise ValueError(f"{key} compares with real text, which has no transform; remove corpus.transform")
    if all(model.loaded for model in config.models):
        raise ValueError(f"{key} retrains each model, so it needs models that this run trains")


TREEBANK_BASELINE = Evaluator(
    name="treebank_baseline",
    title="Trained on the treebank",
    summary="Compare models trained on real and on sampled text, on both.",
    code=f"{__package__}.report",
    verb="compare",
    declared=False,
    of_corpus=False,
    settings=TreebankBaselineSettings,
    kinds=("treebank_train",),
)
