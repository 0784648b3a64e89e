"""Sums over the ways to cut a text into pieces (Cao & Rimell 2021): lattices, samples, estimators, evaluators."""
