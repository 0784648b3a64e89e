"""Unigram-normalised perplexity (Roh et al. 2020), with the mutual information that it is an estimate of."""
