"""Divergence of a model from the exact truth, context by context, from full distributions."""
