"""Probes: the labels that they predict, taken from the exact grammar, and how well they do."""
