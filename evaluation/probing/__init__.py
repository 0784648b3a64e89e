"""What a probe is to predict, by the exact grammar, and how well it does so."""
