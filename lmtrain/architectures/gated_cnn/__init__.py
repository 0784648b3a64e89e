"""Gated CNN: causal convolutions with gated linear units in residual blocks (Dauphin et al. 2017)."""
