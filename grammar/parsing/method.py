"""What makes a tree the best one."""

from __future__ import annotations

from enum import StrEnum


class ParseMethod(StrEnum):
    """What makes a tree the best one."""

    VITERBI = "viterbi"  #: the most probable derivation
    MAX_RULE = "max-rule"  #: the greatest product of posterior rule probabilities
    MAX_SPAN = "max-span"  #: the greatest expected number of correct labelled spans
