"""What can be set of the evaluator `pplu`."""

from __future__ import annotations

from truesource.grammar.settings import Settings


class PpluSettings(Settings):
    """Perplexities over those of word frequencies; see docs/pplu.md."""
