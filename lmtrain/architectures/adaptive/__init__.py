"""Transformer with adaptive softmax: frequent words first, rare ones in clusters (Grave et al. 2017)."""
