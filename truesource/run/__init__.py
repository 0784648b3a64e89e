"""Runs: a folder, its stages, and the runner that executes them in order."""
