"""How much a sampled corpus looks like the treebank: word frequencies, sentence lengths, n-grams, side by side."""
