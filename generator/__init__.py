"""Corpora sampled from a grammar, and the interfaces of the models that score them."""

if __name__ != "truesource.generator":
    raise ImportError("this package is part of truesource; import truesource.generator")
