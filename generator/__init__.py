"""Languages and models of all experiments start here: corpora drawn from a grammar, and what scores them."""

if __name__ != "truesource.generator":
    raise ImportError("this package is a part of truesource: import truesource.generator")

from truesource.generator.corpus import Corpus
from truesource.generator.sampler import Sampler, sample_treebank
from truesource.generator.text import read_sentences

__all__ = ["Corpus", "Sampler", "read_sentences", "sample_treebank"]
