"""Parsing: the best trees of sentences under a grammar, exactly or coarse to fine."""
