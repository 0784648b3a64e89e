"""The evaluator `tendencies`."""

from __future__ import annotations

from truesource.evaluators.tendencies.settings import TendenciesSettings
from truesource.run.evaluator import Evaluator

TENDENCIES = Evaluator(
    name="tendencies",
    title="What the text looks like",
    summary="Compare sampled text with the truth: lengths, words, Zipf, Heaps.",
    package=__name__,
    settings=TendenciesSettings,
    kinds=("samples",),
)
