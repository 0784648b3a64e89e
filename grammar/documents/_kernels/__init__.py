"""Kernels of documents."""
