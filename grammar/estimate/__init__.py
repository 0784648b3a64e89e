"""Estimate grammars: from trees, by relative frequencies or split-merge; from plain text; coarser or pruned ones."""

from truesource.grammar.estimate.inside_outside import Reestimated, inside_outside
from truesource.grammar.estimate.prune import Pruned, PruningCost, prune
from truesource.grammar.estimate.relative_frequency import relative_frequency
from truesource.grammar.estimate.split_merge import Induced, SplitMerge, project, split_merge

__all__ = [
    "Induced",
    "Pruned",
    "PruningCost",
    "Reestimated",
    "SplitMerge",
    "inside_outside",
    "project",
    "prune",
    "relative_frequency",
    "split_merge",
]
