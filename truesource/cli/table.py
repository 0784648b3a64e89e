"""Results on the terminal, with what is to be known of models that cannot make all sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truesource.cli.console import console


def show_results(records: Sequence[Mapping[str, Any]]) -> None:
    """Print a row for each model, and a sentence on each that does not compare with others or cannot be right."""
    from truesource.chain.scores.tables import results_table
    from truesource.cli.output import show
    from truesource.report.words import bound_warning, left_out, too_few

    show(results_table(records))
    for sentence in (*left_out(records), *too_few(records), bound_warning(records)):
        if sentence:
            console().print(sentence)
