"""Parsing: the best trees of sentences under a grammar, by exact or coarse-to-fine search."""

from __future__ import annotations

from enum import StrEnum


class ParseMethod(StrEnum):
    """The criterion for the best tree."""

    VITERBI = "viterbi"  #: the most probable derivation
    MAX_RULE = "max-rule"  #: the greatest product of posterior rule probabilities
    MAX_SPAN = "max-span"  #: the greatest expected number of correct labelled spans


class Search(StrEnum):
    """The part of a chart in which a tree was searched."""

    PRUNED = "pruned"  #: the part left at the thresholds
    LOOSER = "looser"  #: the part left at lower thresholds, since nothing was left before
    EXACT = "exact"  #: the whole chart
