"""The exact oracle and every measure that compares a model with it."""
