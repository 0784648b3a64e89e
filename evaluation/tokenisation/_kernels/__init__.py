"""Kernels: from arrays and named tuples of arrays to the same; the modules above this folder call them."""
