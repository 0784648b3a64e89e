"""Kernels: they take and return arrays and named tuples of arrays, and are called by the modules of the parent."""
