"""Numba kernels: plain arrays in, plain arrays out; the modules above this folder call them."""
