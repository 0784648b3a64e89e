"""Models on real text, whose truth is not known: for `truesource score` and `truesource compare`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from truesource.terminal.console import echo

if TYPE_CHECKING:
    from truesource.evaluation.core.setting import Setting
    from truesource.evaluation.treebank_baseline.measure import TextScores
    from truesource.generator.language_model import LanguageModel


def score_real_text(models: Mapping[str, LanguageModel], setting: Setting, title: str = "") -> TextScores:
    """Print the perplexities of models, and the perplexity of a grammar as a reference, which is not a bound.

    Raises:
        InputError: see `truesource.evaluation.treebank_baseline.measure.score_on_text`.
    """
    from truesource.evaluation.treebank_baseline.measure import score_on_text
    from truesource.evaluation.treebank_baseline.report import baseline_table, coverage_line
    from truesource.terminal.tables import show

    result = score_on_text(models, setting, kind="real")
    show(baseline_table({"": result.records}, title=title), 150)
    echo(coverage_line(result.counts()))
    return result
