"""Languages and models of all experiments start here: corpora drawn from a grammar, and what scores them."""

from generator.corpus import Corpus
from generator.sampler import Sampler, sample_treebank
from generator.text import read_sentences

__all__ = ["Corpus", "Sampler", "read_sentences", "sample_treebank"]
