"""Exact inference: masses, closures, string, prefix, next-token, masked probabilities and Viterbi trees."""
