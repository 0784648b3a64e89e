"""Languages and models of all experiments start here: corpora drawn from a grammar, and what scores them."""

if __name__ != "truesource.generator":
    raise ImportError("this package is a part of truesource: import truesource.generator")
