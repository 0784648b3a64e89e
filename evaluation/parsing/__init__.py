"""Parses compared with a treebank, and two parses of the same sentences with each other."""
