"""The evaluator `naturalness`."""

from __future__ import annotations

from truesource.evaluators.naturalness.settings import NaturalnessSettings
from truesource.run.evaluator import Evaluator

NATURALNESS = Evaluator(
    name="naturalness",
    title="How natural the corpus looks",
    summary="Compare corpora and grammars with a treebank: words, lengths, n-grams.",
    package=__name__,
    settings=NaturalnessSettings,
)
