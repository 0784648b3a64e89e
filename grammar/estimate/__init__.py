"""Estimate grammars: from trees, by relative frequencies or split-merge; from plain text; coarser or pruned ones."""

from grammar.estimate.inside_outside import Reestimated, inside_outside
from grammar.estimate.prune import Pruned, PruningCost, prune
from grammar.estimate.relative_frequency import relative_frequency
from grammar.estimate.split_merge import Induced, SplitMerge, project, split_merge

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
