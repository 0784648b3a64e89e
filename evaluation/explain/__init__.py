"""Explanations of why a model is off: settings that are changed one at a time, and reference models."""
