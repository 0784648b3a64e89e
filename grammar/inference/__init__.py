"""Exact inference: masses, closures, string, prefix, next-token and masked probabilities, and Viterbi trees."""
