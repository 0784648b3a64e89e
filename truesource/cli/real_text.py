"""Models on real text, whose truth is not known: for `truesource score` and `truesource compare`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.terminal.console import echo

if TYPE_CHECKING:
    from truesource.evaluation.core.setting import Setting
    from truesource.evaluation.treebank_baseline.measure import TextScores
    from truesource.generator.language_model import LanguageModel


def read_setting_of_real_text(path: Path, split: str, oracle: Path | None, lengths: str | None, **how: Any) -> Setting:
    """Read real text and the grammar of its treebank, conditioned on the lengths that `truesource split` selected.

    Args:
        path: file that `truesource split` wrote.
        split: ignored by such a file.
        oracle: the grammar; None: no reference.
        lengths: the condition of the grammar; None: the lengths that were selected.
        how: further arguments of `truesource.terminal.inputs.read_setting`.

    Raises:
        InputError: as `read_setting`.
    """
    from truesource.grammar.conditioning import LengthRange
    from truesource.run.treebank.text import text_of_file
    from truesource.terminal.inputs import read_setting

    treebank = text_of_file(path)
    selected = None if treebank is None else treebank.about["lengths"]
    drawn = None if selected is None else LengthRange.parse(selected)
    return read_setting(path, split, oracle, lengths, drawn=drawn, **how)


def score_real_text(models: Mapping[str, LanguageModel], setting: Setting, title: str = "") -> TextScores:
    """Print the perplexities of models, and that of a grammar as a reference, which is no bound.

    Raises:
        InputError: as `truesource.evaluation.treebank_baseline.measure.score_on_text`.
    """
    from truesource.evaluation.treebank_baseline.measure import score_on_text
    from truesource.evaluation.treebank_baseline.report import baseline_table, coverage_line
    from truesource.terminal.tables import show

    result = score_on_text(models, setting, kind="real")
    show(baseline_table({"": result.records}, title=title), 150)
    echo(coverage_line(result.counts()))
    return result
