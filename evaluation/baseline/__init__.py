"""Models trained on real sentences beside models trained on sampled ones, on real and on sampled text."""
