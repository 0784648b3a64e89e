"""The evaluator `treebank_baseline`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from truesource.evaluation.core.evaluator import Evaluator
from truesource.grammar.support.settings import Settings

if TYPE_CHECKING:
    from truesource.evaluation.core.run_view import RunRequest


class TreebankBaselineSettings(Settings):
    """Each model also trained on the sentences of the treebank, and scored on held-out ones; see the guide."""

    advanced: ClassVar = frozenset({"max_epochs", "dev", "stopping", "disjoint"})
    yaml_only = frozenset({"max_epochs", "equal_text", "dev", "stopping", "disjoint"})
    max_epochs: float = Field(
        50.0,
        gt=0.0,
        description="As many steps as on the corpus, but no more passes over the treebank (Jumelet & Zuidema: 50).",
    )
    equal_text: bool = Field(True, description="Also train on as much sampled text as the treebank has.")
    dev: float = Field(0.05, ge=0.0, lt=0.9, description="Share of the training trees to watch the loss on.")
    stopping: Literal["best", "last"] = Field(
        "best", description="Which checkpoint of a network is scored: the best on dev, or the last."
    )
    disjoint: bool = Field(False, description="Leave out held-out sentences that the training text has too.")


def check(config: RunRequest) -> None:
    """Refuse a configuration without what the evaluator needs, by a ValueError."""
    key = "evaluation.treebank_baseline"
    bank = config.treebank
    if bank is None:
        raise ValueError(f"{key} trains on the sentences that the grammar was induced from, so it needs a treebank")
    if bank.held_out_files is None and bank.held_out == 0.0:
        raise ValueError(f"{key} scores held-out sentences; set treebank.held_out or treebank.held_out_files")
    if config.corpus.transform is not None:
        raise ValueError(f"{key} compares with real text, which has no transform; leave corpus.transform out")
    if all(model.loaded for model in config.models):
        raise ValueError(f"{key} trains each model once more, so it needs models that are trained here")


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
