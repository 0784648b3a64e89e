"""Memorisation of training sentences."""
