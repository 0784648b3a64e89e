"""Treebanks: reading, normalising, binarising and counting constituency trees."""

from grammar.treebank.binarise import Binarisation, splice
from grammar.treebank.normalise import Normalisation, signature
from grammar.treebank.statistics import TreebankStatistics
from grammar.treebank.treebank import Refusal, Treebank

__all__ = [
    "Binarisation",
    "Normalisation",
    "Refusal",
    "Treebank",
    "TreebankStatistics",
    "signature",
    "splice",
]
