"""Runs: a folder, the stages that fill it, and what does them in order."""
