"""Context that a model uses: divergence from the best predictors that see the last k words."""
