"""Parsing: the best trees of sentences under a grammar, exactly or coarse to fine."""

from __future__ import annotations

from enum import StrEnum


class ParseMethod(StrEnum):
    """Criterion by which a tree is the best one."""

    VITERBI = "viterbi"  #: the most probable derivation
    MAX_RULE = "max-rule"  #: the greatest product of posterior rule probabilities
    MAX_SPAN = "max-span"  #: the greatest expected number of correct labelled spans


class Search(StrEnum):
    """Part of a chart that a tree was looked for in."""

    PRUNED = "pruned"  #: what is left at the thresholds
    LOOSER = "looser"  #: what is left at lower thresholds, because nothing was left
    EXACT = "exact"  #: all of it
