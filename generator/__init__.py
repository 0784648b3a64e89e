"""Corpora sampled from a grammar, and the interfaces of all that scores them."""

if __name__ != "truesource.generator":
    raise ImportError("this package is a part of truesource: import truesource.generator")
