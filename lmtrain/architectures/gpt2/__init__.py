"""GPT-2: a causal transformer, layer norm first, tied word vectors (Radford et al. 2019)."""
