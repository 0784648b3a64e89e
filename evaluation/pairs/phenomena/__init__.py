"""Phenomena of minimal pairs, in which the sentences of a pair differ: one module each."""
