"""The benchmark: one model, many languages of known truth, one table."""
