"""Treebanks, probabilistic grammars and exact inference with them. Imports no other package of the suite."""

if __name__ != "truesource.grammar":
    raise ImportError("this package is part of truesource; import truesource.grammar")
