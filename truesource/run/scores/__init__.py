"""The scores of the models and their bounds."""
