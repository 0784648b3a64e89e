"""The corpus, sampled from the grammar."""
