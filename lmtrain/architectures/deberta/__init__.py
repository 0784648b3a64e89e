"""DeBERTa: a masked transformer whose attention sees words and distances apart (He et al. 2021, 2023)."""
