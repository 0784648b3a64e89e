"""The evaluator `tokenisation`."""

from __future__ import annotations

from truesource.evaluators.tokenisation.settings import TokenisationSettings
from truesource.run.evaluator import Evaluator

TOKENISATION = Evaluator(
    name="tokenisation",
    title="Sums over segmentations",
    summary="Sum the probability of a text over its segmentations.",
    package=__name__,
    settings=TokenisationSettings,
)
