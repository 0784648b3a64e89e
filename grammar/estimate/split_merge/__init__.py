"""Split-merge training: substates of treebank labels, found by EM on observed trees (Petrov et al. 2006)."""

from truesource.grammar.estimate.split_merge.config import SplitMerge
from truesource.grammar.estimate.split_merge.project import project
from truesource.grammar.estimate.split_merge.result import Induced
from truesource.grammar.estimate.split_merge.train import split_merge

__all__ = ["Induced", "SplitMerge", "project", "split_merge"]
