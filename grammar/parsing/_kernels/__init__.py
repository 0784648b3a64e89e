"""Kernels: arrays, and named tuples of arrays, in and out; the modules above this folder call them."""
