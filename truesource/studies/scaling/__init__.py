"""Sweeps: many models that differ in corpus size, shape and seed, trained and compared with the truth."""
