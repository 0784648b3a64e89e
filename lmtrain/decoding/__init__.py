"""Drawing text from trained models: one token at a time, under a named decoding scheme."""
