"""Kernels: documents of pools of languages."""
