"""Kernels for documents of pools of languages."""
