"""Sums over the segmentations of a text into pieces (Cao & Rimell 2021): lattices, samples, estimators, evaluators."""
