"""Treebanks, probabilistic grammars and everything exact about them. Knows no other package of the suite."""
