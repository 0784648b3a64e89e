"""OPT: GPT-2 with rectified linear units and positions counted from the attention mask (Zhang et al. 2022)."""
