"""Ways to estimate a grammar from trees: relative frequencies, and split-merge training of substates."""

from grammar.estimate.relative_frequency import relative_frequency
from grammar.estimate.split_merge import Induced, SplitMerge, split_merge

__all__ = ["Induced", "SplitMerge", "relative_frequency", "split_merge"]
