"""Measures of a model against the oracle, one module each."""
