"""The evaluator `treebank_baseline`."""

from __future__ import annotations

from truesource.evaluators.treebank_baseline.settings import TreebankBaselineSettings
from truesource.run.evaluator import Evaluator

TREEBANK_BASELINE = Evaluator(
    name="treebank_baseline",
    title="Trained on the treebank",
    summary="Compare models trained on real and on sampled text, on both.",
    package=__name__,
    settings=TreebankBaselineSettings,
    kinds=("treebank_train",),
)
