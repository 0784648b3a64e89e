"""Likeness of a sampled corpus and the treebank: word frequencies, sentence lengths, n-grams, side by side."""
