"""Llama: a causal transformer, rotary positions, RMS norm first, gated feed-forward layers (Touvron et al. 2023)."""
