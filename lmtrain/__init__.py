"""Language models trained on a corpus: tokenisers, architectures, training, scoring."""

if __name__ != "truesource.lmtrain":
    raise ImportError("this package is a part of truesource: import truesource.lmtrain")
