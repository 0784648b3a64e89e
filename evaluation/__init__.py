"""The exact oracle and every measure that compares a model with it."""

if __name__ != "truesource.evaluation":
    raise ImportError("this package is a part of truesource: import truesource.evaluation")
