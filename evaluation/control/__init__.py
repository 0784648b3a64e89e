"""Controlled generation: tilts of a model compared with the exact tilt of the truth."""
