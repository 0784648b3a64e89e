"""Estimators of the marginal likelihood of a text over its segmentations."""
