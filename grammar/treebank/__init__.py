"""Treebanks: reading, normalising, binarising and counting constituency trees."""

from truesource.grammar.treebank.binarise import Binarisation, splice
from truesource.grammar.treebank.normalise import Normalisation, signature
from truesource.grammar.treebank.statistics import TreebankStatistics
from truesource.grammar.treebank.treebank import Refusal, Treebank

__all__ = [
    "Binarisation",
    "Normalisation",
    "Refusal",
    "Treebank",
    "TreebankStatistics",
    "signature",
    "splice",
]
