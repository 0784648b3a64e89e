"""Treebanks, probabilistic grammars and everything exact about them. Knows no other package of the suite."""

if __name__ != "truesource.grammar":
    raise ImportError("this package is a part of truesource: import truesource.grammar")
